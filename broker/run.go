package broker

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
)

// stage is one part of a broker that runs until its context ends.
type stage struct {
	name string
	run  func(context.Context) error
}

// runAll runs the stages together. The first that fails ends the others; it returns when all have ended, with the reason.
func runAll(ctx context.Context, log *slog.Logger, stages []stage) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var wg sync.WaitGroup
	for _, s := range stages {
		wg.Go(func() {
			err := s.run(ctx)
			if err == nil || errors.Is(err, context.Canceled) && ctx.Err() != nil {
				return
			}
			log.Error("stage ended", "stage", s.name, "error", err)
			cancel(fmt.Errorf("%s: %w", s.name, err))
		})
	}
	wg.Wait()
	if err := context.Cause(ctx); err != nil && !errors.Is(err, context.Canceled) {
		return err
	}
	return nil
}
