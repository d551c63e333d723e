package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/user"
	"strings"
	"time"

	"github.com/clarify-broker/clarify/cmd/clarify/app"
	"github.com/clarify-broker/clarify/events"
	"github.com/clarify-broker/clarify/events/bus"
	"github.com/nats-io/nats.go"
)

// access says how a command reaches the server.
type access struct {
	url, creds string
	dir, space string
	inbox      string
	patience   time.Duration
}

// link is a connection to the server, as an operator has.
type link struct {
	*bus.Bus
	nc       *nats.Conn
	patience time.Duration
}

// where is the server's address: the one that was given, the one that runs in the folder, or the usual one.
func (a access) where() (string, error) {
	if a.url != "" {
		return a.url, nil
	}
	url, err := app.FindURL(a.dir)
	if errors.Is(err, os.ErrNotExist) {
		return nats.DefaultURL, nil
	}
	return url, err
}

// check refuses credentials that are not there: the server's own refusal would not name them.
func (a access) check() error {
	if a.creds == "" {
		return nil
	}
	if _, err := os.Stat(a.creds); err != nil {
		return &fault{code: usage, cause: err, text: "--creds: " + err.Error()}
	}
	return nil
}

func (t *terminal) dial(ctx context.Context, opts ...nats.Option) (*link, error) {
	if err := t.server.check(); err != nil {
		return nil, err
	}
	url, err := t.server.where()
	if err != nil {
		return nil, err
	}
	opts = append([]nats.Option{
		nats.Name("clarify command line"), nats.Timeout(t.server.patience), nats.CustomInboxPrefix(t.server.inbox),
		nats.ErrorHandler(func(*nats.Conn, *nats.Subscription, error) {}),
	}, opts...) // what a request is denied, its error says
	if t.server.creds != "" {
		opts = append(opts, nats.UserCredentials(t.server.creds))
	}
	nc, err := nats.Connect(url, opts...)
	if err != nil {
		return nil, t.noServer(url, err)
	}
	b, err := bus.Open(ctx, nc, bus.Options{Space: events.Space(t.server.space), AllowLazySync: true, Logger: t.log(slog.LevelError)})
	if err != nil {
		nc.Close()
		return nil, err
	}
	return &link{b, nc, t.server.patience}, nil
}

// noServer says which server was tried and how to reach another.
func (t *terminal) noServer(url string, err error) error {
	c := codeOf(err)
	if c == denied {
		return &fault{code: c, text: fmt.Sprintf("the server at %s does not let this credential in: %s", app.Redact(url), err), cause: err}
	}
	from := ""
	if file, err := app.FindURL(t.server.dir); t.server.url == "" && err == nil && file == url {
		from = ", as " + t.server.dir + " says"
	}
	return &fault{
		code: unreachable, cause: err,
		text: fmt.Sprintf("no server at %s%s (%s); start one with `clarify dev`, or name one with --nats-url", app.Redact(url), from, err),
	}
}

func (l *link) close() { l.nc.Close() }

// bounded is a context for one exchange with the broker.
func (l *link) bounded(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, l.patience)
}

func (l *link) request(ctx context.Context, subject string, request, reply any) error {
	ctx, cancel := l.bounded(ctx)
	defer cancel()
	return l.Ask(ctx, subject, request, reply)
}

func (l *link) list(ctx context.Context, r events.ListRequest) (events.ListReply, error) {
	var reply events.ListReply
	return reply, l.request(ctx, l.Space().Operator(events.VerbList), r, &reply)
}

// operate asks the broker to do something to one task.
func (l *link) operate(ctx context.Context, verb string, r events.OperatorRequest) (*events.View, error) {
	var reply events.OperatorReply
	if err := l.request(ctx, l.Space().OperatorTask(verb, r.Agent, r.Task), r, &reply); err != nil {
		return nil, err
	}
	switch {
	case reply.Error != "":
		return nil, fail(failure, "%s. Nothing changed.", reply.Error)
	case reply.Refused != nil:
		return reply.View, fail(refused, "%s. Nothing changed.", refusal(*reply.Refused, reply.View))
	}
	return reply.View, nil
}

// key names a task among all agents'.
type key struct {
	agent events.Agent
	task  events.Task
}

func (k key) String() string { return string(k.agent) + "/" + string(k.task) }

// findTask finds a task by <agent>/<task>, or by its name alone where only one agent has a task of that name.
func (l *link) findTask(ctx context.Context, ref string) (key, error) {
	if agent, task, both := strings.Cut(ref, "/"); both {
		k := key{events.Agent(agent), events.Task(task)}
		_, errA := events.ParseAgent(agent)
		_, errT := events.ParseTask(task)
		return k, errors.Join(errA, errT)
	}
	reply, err := l.list(ctx, events.ListRequest{Ended: true, Limit: most})
	if err != nil {
		return key{}, err
	}
	return pick(ref, reply, func(i events.ListItem) bool { return string(i.Task) == ref })
}

// most is how many tasks the broker lists at once.
const most = 1000

// pick is the one task that matches.
func pick(ref string, reply events.ListReply, match func(events.ListItem) bool) (key, error) {
	var hits []key
	for _, i := range reply.Items {
		if match(i) {
			hits = append(hits, key{i.Agent, i.Task})
		}
	}
	switch {
	case len(hits) == 1:
		return hits[0], nil
	case len(hits) > 1:
		return key{}, fail(usage, "%q is more than one: %s, %s, …; name it as <agent>/<task>", ref, hits[0], hits[1])
	case reply.More > 0:
		return key{}, fail(notFound, "%q is not among the newest %d tasks; name it as <agent>/<task>", ref, len(reply.Items))
	}
	return key{}, fail(notFound, "there is no task %q; `clarify ls --all` lists them", ref)
}

// findQuestion finds a task by its current question's id, by the beginning or the end of it, or by the task's own name.
func (l *link) findQuestion(ctx context.Context, ref string) (events.ListItem, error) {
	reply, err := l.list(ctx, events.ListRequest{Question: events.QuestionID(ref)})
	if err != nil {
		return events.ListItem{}, err
	}
	if len(reply.Items) == 1 {
		return reply.Items[0], nil
	}
	if reply, err = l.list(ctx, events.ListRequest{Waiting: true, Limit: most}); err != nil {
		return events.ListItem{}, err
	}
	k, err := pick(ref, reply, func(i events.ListItem) bool { return names(ref, i) })
	if err != nil {
		if codeOf(err) == notFound {
			err = fail(notFound, "no question %q is asked now; `clarify ls` lists those that wait, `clarify show <task>` tells what became of others", ref)
		}
		return events.ListItem{}, err
	}
	for _, i := range reply.Items {
		if (key{i.Agent, i.Task}) == k {
			return i, nil
		}
	}
	return events.ListItem{}, fail(notFound, "there is no question %q", ref)
}

// names reports that a reference means a waiting task's question.
func names(ref string, i events.ListItem) bool {
	k := key{i.Agent, i.Task}
	if ref == string(i.Task) || ref == k.String() {
		return true
	}
	id := strings.ToLower(string(i.Pause.Question))
	ref = strings.ToLower(ref)
	return len(ref) >= 6 && (strings.HasPrefix(id, ref) || strings.HasSuffix(id, ref))
}

// caller is the operating system's user, as an operator and as a responder is named.
func caller() string {
	if me, err := user.Current(); err == nil {
		return me.Username
	}
	return "operator"
}
