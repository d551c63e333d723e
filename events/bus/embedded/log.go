package embedded

import (
	"fmt"
	"log/slog"
)

// logger passes on what an operator would act on.
type logger struct {
	log   *slog.Logger
	fatal chan string
}

func (l *logger) Noticef(string, ...any) {}
func (l *logger) Debugf(string, ...any)  {}
func (l *logger) Tracef(string, ...any)  {}

func (l *logger) Warnf(format string, v ...any) {
	l.log.Warn("nats-server warns", "text", fmt.Sprintf(format, v...))
}

func (l *logger) Errorf(format string, v ...any) {
	l.log.Error("nats-server reports an error", "text", fmt.Sprintf(format, v...))
}

// Fatalf ends the start; the process goes on, since it is not the server's to end.
func (l *logger) Fatalf(format string, v ...any) {
	text := fmt.Sprintf(format, v...)
	l.log.Error("nats-server gives up", "text", text)
	select {
	case l.fatal <- text:
	default:
	}
}
