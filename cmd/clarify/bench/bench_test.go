package bench_test

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/clarify-broker/clarify/broker"
	"github.com/clarify-broker/clarify/cmd/clarify/bench"
	"github.com/clarify-broker/clarify/events/bus/bustest"
	"github.com/clarify-broker/clarify/policy"
)

func TestRun(t *testing.T) {
	b := bustest.Start(t)
	p, err := policy.Parse("bench/policy.yaml", bench.Policy)
	if err != nil {
		t.Fatal(err)
	}
	br, err := broker.New(b, broker.Config{Policy: p, AuditKey: []byte("0123456789abcdef"), Logger: slog.New(slog.NewTextHandler(t.Output(), nil))})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- br.Run(ctx) }()
	defer func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}()
	levels := 0
	err = bench.Run(ctx, b, bench.Plan{Concurrency: []int{1, 16, 128}, Each: 3 * time.Second}, func(l bench.Level) {
		levels++
		if l.Cycles == 0 || l.Effects != int64(l.Cycles) {
			t.Errorf("concurrency %d: %d cycles, %d effects", l.Concurrency, l.Cycles, l.Effects)
		}
		t.Logf("%+v", l)
	})
	if err != nil {
		t.Fatal(err)
	}
	if levels != 3 {
		t.Errorf("%d levels", levels)
	}
}
