package bench

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/clarify-broker/clarify/events"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// floorRounds is how often each floor is measured: enough for a 99th percentile, and over in a second or two.
const floorRounds = 400

// Floor is what a disk and server can do at best, one at a time.
type Floor struct {
	Sync    Spread `json:"write_4k_fsync"`
	Publish Spread `json:"durable_publish"`     // 1 KiB on a stream with the server's own sync setting
	Round   Spread `json:"publish_consume_ack"` // until the ack is confirmed, on a work queue
	Storage string `json:"storage"`
}

// MeasureFloor measures the floor on the folder dir and the server of nc. Its streams are removed again.
func MeasureFloor(ctx context.Context, dir string, nc *nats.Conn) (f Floor, err error) {
	if f.Sync, err = syncFloor(dir); err != nil {
		return f, fmt.Errorf("write and sync in %s: %w", dir, err)
	}
	js, err := jetstream.New(nc)
	if err != nil {
		return f, err
	}
	name := "CLARIFY_FLOOR_" + events.NewID()
	stream, err := js.CreateStream(ctx, jetstream.StreamConfig{Name: name, Subjects: []string{name}, Retention: jetstream.WorkQueuePolicy})
	if err != nil {
		return f, fmt.Errorf("make the floor's stream: %w", err)
	}
	defer func() { _ = js.DeleteStream(context.WithoutCancel(ctx), name) }()
	f.Storage = stream.CachedInfo().Config.Storage.String()
	body := make([]byte, 1024)
	publish := func() error { _, err := js.Publish(ctx, name, body); return err }
	if f.Publish, err = repeat(publish); err != nil {
		return f, fmt.Errorf("publish: %w", err)
	}
	if err := stream.Purge(ctx); err != nil {
		return f, err
	}
	f.Round, err = roundFloor(ctx, stream, publish)
	return f, err
}

func repeat(op func() error) (Spread, error) {
	took := make([]time.Duration, floorRounds)
	for i := range took {
		start := time.Now()
		if err := op(); err != nil {
			return Spread{}, err
		}
		took[i] = time.Since(start)
	}
	return spread(took), nil
}

func syncFloor(dir string) (Spread, error) {
	file, err := os.CreateTemp(dir, "floor-*")
	if err != nil {
		return Spread{}, err
	}
	defer func() { _ = file.Close(); _ = os.Remove(file.Name()) }()
	block := make([]byte, 4096)
	return repeat(func() error {
		if _, err := file.Write(block); err != nil {
			return err
		}
		return file.Sync()
	})
}

func roundFloor(ctx context.Context, stream jetstream.Stream, publish func() error) (Spread, error) {
	consumer, err := stream.CreateConsumer(ctx, jetstream.ConsumerConfig{Durable: "floor", AckPolicy: jetstream.AckExplicitPolicy})
	if err != nil {
		return Spread{}, err
	}
	messages, err := consumer.Messages()
	if err != nil {
		return Spread{}, err
	}
	defer messages.Stop()
	return repeat(func() error {
		if err := publish(); err != nil {
			return err
		}
		m, err := messages.Next()
		if err != nil {
			return err
		}
		return m.DoubleAck(ctx)
	})
}
