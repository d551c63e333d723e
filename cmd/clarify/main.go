// Command clarify is the clarification broker, and all there is to run it, answer it and look into it.
package main

import (
	"context"
	"os"
	"os/signal"
	"runtime/debug"
	"syscall"
)

func main() { os.Exit(run()) }

// gcPercent trades memory for processor: what a broker holds is small beside what it reads and writes.
const gcPercent = 400

func run() int {
	if _, set := os.LookupEnv("GOGC"); !set {
		debug.SetGCPercent(gcPercent)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	t := &terminal{in: os.Stdin, out: os.Stdout, err: os.Stderr}
	return int(t.execute(ctx, os.Args[1:]))
}
