package app

import (
	"context"
	"errors"
	"fmt"
)

// stack is what has been started, by name. Unwinding it stops the last that started first.
type stack struct {
	steps  []step
	failed chan error // of parts that ended by themselves
}

type step struct {
	name string
	stop func() error
}

func newStack() *stack { return &stack{failed: make(chan error, 1)} }

func (s *stack) push(name string, stop func() error) { s.steps = append(s.steps, step{name, stop}) }

// launch runs a part until its step is unwound, which waits for its end. A part that ends by itself is reported on failed.
func (s *stack) launch(ctx context.Context, name string, run func(context.Context) error) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	ended := make(chan error, 1)
	go func() {
		err := run(ctx)
		if ctx.Err() == nil {
			s.report(name, err)
		}
		ended <- err
	}()
	s.push(name, func() error {
		cancel()
		if err := <-ended; err != nil && !errors.Is(err, context.Canceled) {
			return err
		}
		return nil
	})
}

// report keeps the first part that ended by itself; the others follow from it.
func (s *stack) report(name string, err error) {
	if err == nil {
		err = errors.New("ended by itself")
	}
	select {
	case s.failed <- fmt.Errorf("%s: %w", name, err):
	default:
	}
}

// unwind stops everything and joins what went wrong on the way.
func (s *stack) unwind() error {
	var errs []error
	for len(s.steps) > 0 {
		last := s.steps[len(s.steps)-1]
		s.steps = s.steps[:len(s.steps)-1]
		if err := last.stop(); err != nil {
			errs = append(errs, fmt.Errorf("stop %s: %w", last.name, err))
		}
	}
	return errors.Join(errs...)
}
