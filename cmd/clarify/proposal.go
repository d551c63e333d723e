package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/clarify-broker/clarify/events"
	"github.com/clarify-broker/clarify/events/gate"
	"github.com/nats-io/nats.go"
	"github.com/spf13/pflag"
)

// proposal is what ask and gate say of the action on the command line.
type proposal struct {
	agent, task, id, step string
	tool                  toolFlags
	args, jsonArgs        []string
	sources               []string
	about                 setting
	wait                  time.Duration
}

type toolFlags struct {
	name, server string
	annotations  []string
	schema       string
}

type setting struct {
	context, lang, requester string
	unattended               bool
}

// common are the flags that ask and gate share.
func (p *proposal) common(flags *pflag.FlagSet, wait time.Duration) {
	flags.StringVar(&p.agent, "agent", "", "the agent that proposes")
	flags.StringVar(&p.task, "task", "", "the task this is a step of")
	flags.StringVar(&p.id, "id", "", "id of this proposal; the same call has the same id by default, and re-attaches")
	flags.StringVar(&p.step, "step", "", "the step, in your words; the tool's name by default")
	flags.StringVar(&p.tool.server, "server", "cli", "where the tool comes from, for the policy")
	flags.StringArrayVar(&p.args, "arg", nil, "an argument, `name=text`; may be repeated")
	flags.StringArrayVar(&p.jsonArgs, "arg-json", nil, "an argument that is no text, `name=json`; may be repeated")
	flags.StringArrayVar(&p.sources, "source", nil, "where an argument came from: `name=user|lookup|record|default|inferred`; may be repeated")
	flags.StringVar(&p.about.context, "context", "", "what led here, for those who are asked")
	flags.StringVar(&p.about.lang, "lang", "", "language of those who are asked, such as es")
	flags.StringVar(&p.about.requester, "requester", "", "`id` of the person this is for")
	flags.BoolVar(&p.about.unattended, "unattended", false, "nobody is there to answer: the policy says what that means")
	flags.DurationVar(&p.wait, "wait", wait, "how long to wait; the question waits on, and the same call takes it up again")
}

func (p *proposal) candidate() (events.Candidate, error) {
	switch {
	case p.agent == "":
		return events.Candidate{}, fail(usage, "--agent is missing: say who proposes this")
	case p.task == "":
		return events.Candidate{}, fail(usage, "--task is missing: say which task this is a step of")
	case p.tool.name == "":
		return events.Candidate{}, fail(usage, "--tool is missing: say which tool would run")
	}
	c := events.Candidate{Agent: events.Agent(p.agent), Task: events.Task(p.task), ID: p.id, Step: cmp.Or(p.step, p.tool.name)}
	c.Context, c.Lang = p.about.context, p.about.lang
	if p.about.requester != "" {
		c.Requester = &events.Requester{ID: p.about.requester}
	}
	if p.about.unattended {
		attended := false
		c.Attended = &attended
	}
	var errs [3]error
	c.Arguments, errs[0] = arguments(p.args, p.jsonArgs)
	c.Tool, errs[1] = p.tool.tool()
	c.Provenance, errs[2] = provenance(p.sources)
	return c, errors.Join(errs[:]...)
}

func arguments(texts, documents []string) (events.Arguments, error) {
	args := events.Arguments{}
	put := func(flag, pair string, value func(string) (events.Secret, error)) error {
		name, said, two := strings.Cut(pair, "=")
		switch {
		case !two || name == "":
			return fail(usage, "--%s: write it like name=value", flag)
		case !args[name].IsZero():
			return fail(usage, "--%s: %q is given twice", flag, name)
		}
		v, err := value(said)
		args[name] = v
		return err
	}
	for _, pair := range texts {
		if err := put("arg", pair, func(s string) (events.Secret, error) { return events.SecretOf(s), nil }); err != nil {
			return nil, err
		}
	}
	for _, pair := range documents {
		err := put("arg-json", pair, func(s string) (events.Secret, error) {
			raw := events.Raw(s)
			if !raw.IsValid() {
				return events.Secret{}, fail(usage, "--arg-json: the value is not JSON; text goes into --arg, or in double quotes")
			}
			return events.NewSecret(raw), nil
		})
		if err != nil {
			return nil, err
		}
	}
	return args, nil
}

func (f toolFlags) tool() (events.Tool, error) {
	t := events.Tool{Name: f.name, Server: f.server}
	if len(f.annotations) > 0 {
		t.Annotations = &events.Annotations{}
	}
	for _, one := range f.annotations {
		name, said, given := strings.Cut(one, "=")
		yes := !given || said == "true"
		if given && said != "true" && said != "false" {
			return t, fail(usage, "--annotation: %q is neither true nor false", said)
		}
		hints := map[string]**bool{
			"readOnly": &t.Annotations.ReadOnly, "destructive": &t.Annotations.Destructive,
			"idempotent": &t.Annotations.Idempotent, "openWorld": &t.Annotations.OpenWorld,
		}
		hint := hints[name]
		if hint == nil {
			return t, fail(usage, "--annotation: %q is unknown; use readOnly, destructive, idempotent or openWorld", name)
		}
		*hint = &yes
	}
	if f.schema != "" {
		text, err := os.ReadFile(f.schema)
		if err != nil {
			return t, &fault{code: usage, text: "--input-schema: " + err.Error(), cause: err}
		}
		if t.InputSchema = events.Raw(text); !t.InputSchema.IsValid() {
			return t, fail(usage, "--input-schema: %s is not JSON", f.schema)
		}
	}
	return t, nil
}

func provenance(sources []string) (map[string]events.Provenance, error) {
	out := map[string]events.Provenance{}
	for _, one := range sources {
		name, from, two := strings.Cut(one, "=")
		if !two || name == "" {
			return nil, fail(usage, "--source: write it like name=user")
		}
		out[name] = events.Provenance{From: events.Origin(from)}
	}
	return out, nil
}

// missing takes a field that is missing, with its question behind an =, if there is one.
func missing(one string) events.Missing {
	field, question, _ := strings.Cut(one, "=")
	return events.Missing{Field: field, Question: question}
}

// alternative takes an option of a field: a value, with a label behind an =, if there is one.
func alternative(field, one string) events.Alternative {
	value, label, _ := strings.Cut(one, "=")
	return events.Alternative{Arguments: events.Arguments{field: events.SecretOf(value)}, Label: cmp.Or(label, value), Weight: 1}
}

// agentLink is a connection as an agent has one: with no rights but the agent's own.
type agentLink struct {
	*link
	gate *gate.Gate
}

func (l *agentLink) close() { l.gate.Close(); l.link.close() }

func (t *terminal) open(ctx context.Context, agent events.Agent) (*agentLink, error) {
	if _, err := events.ParseAgent(string(agent)); err != nil {
		return nil, err
	}
	l, err := t.dial(ctx, nats.CustomInboxPrefix("_INBOX_"+string(agent)))
	if err != nil {
		return nil, err
	}
	g, err := gate.New(l.Bus, agent)
	if err != nil {
		l.close()
		return nil, err
	}
	return &agentLink{l, g}, nil
}

// freezeLook is how long a candidate may take to be in the log before the broker is asked whether releases are frozen, in
// which case it takes none.
const freezeLook = 2 * time.Second

// propose returns when the broker has the candidate, for which it has as long as for any request: --wait is for people.
func (l *agentLink) propose(ctx context.Context, c events.Candidate) error {
	limit := time.Now().Add(l.patience)
	for {
		try, cancel := context.WithTimeout(ctx, min(freezeLook, time.Until(limit)))
		_, err := l.gate.Submit(try, c)
		cancel()
		w, isWaiting := errors.AsType[*gate.Waiting](err)
		if !isWaiting || w.State != "" || ctx.Err() != nil {
			return err
		}
		why, asked := l.frozen(ctx)
		if why != "" {
			return &fault{code: waiting, cause: err, text: "NOT EXECUTED: releases are frozen (" + why + "); nobody refused it"}
		}
		if time.Now().After(limit) {
			return &fault{code: unreachable, cause: err, text: "NOT EXECUTED: " + untaken(asked) + ", so nothing was decided; nobody refused it"}
		}
	}
}

// frozen asks the broker why it withholds releases; it is empty when it does not. An agent's own credential may not ask.
func (l *link) frozen(ctx context.Context) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, min(freezeLook, l.patience))
	defer cancel()
	var h events.Health
	err := l.Ask(ctx, l.Space().Operator(events.VerbHealth), events.OperatorRequest{}, &h)
	return h.Frozen, err
}

// untaken says why a candidate is not in the log, as far as asking the broker's health told.
func untaken(asked error) string {
	switch {
	case asked == nil:
		return "the broker did not take it in time"
	case codeOf(asked) == denied:
		return "no broker took it (none answers, or releases are frozen)"
	}
	return "no broker answers"
}

// patient bounds waiting for a release, and not what runs then.
type patient struct {
	cancel context.CancelCauseFunc
	timer  *time.Timer
}

var errWaited = fmt.Errorf("the wait is over: %w", context.DeadlineExceeded)

func waitFor(ctx context.Context, d time.Duration) (context.Context, *patient) {
	ctx, cancel := context.WithCancelCause(ctx)
	return ctx, &patient{cancel, time.AfterFunc(d, func() { cancel(errWaited) })}
}

// begin ends the waiting, since the tool starts. It fails when the wait was over a moment before.
func (p *patient) begin() error {
	if !p.timer.Stop() {
		return errors.New("the wait was over before it started")
	}
	return nil
}

func (p *patient) end() { p.timer.Stop(); p.cancel(nil) }

// readAll reads what a person or program typed, up to the size of an answer.
func readAll(r io.Reader) (string, error) {
	text, err := io.ReadAll(io.LimitReader(r, events.MaxAnswer))
	return strings.TrimRight(string(text), "\r\n"), err
}
