package broker

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/clarify-broker/clarify/events"
	"github.com/clarify-broker/clarify/events/bus"
)

// Index is what waits and what moves, tailed from the log once per replica. It serves lists, health and the watchdog, never
// a decision.
type Index struct {
	mu      sync.Mutex
	tasks   map[Key]*entry
	refused map[Key]map[string]struct{} // ids of what was refused
	current bool                        // the whole log has been read once
}

// entry is a task as the lists and the watchdog need it.
type entry struct {
	item    events.ListItem
	state   events.State // without candidate and answers
	checked time.Time    // when the watchdog last looked for its questions
}

// NewIndex returns an empty index.
func NewIndex() *Index {
	return &Index{tasks: map[Key]*entry{}, refused: map[Key]map[string]struct{}{}}
}

func (x *Index) follow(b *bus.Bus) func(context.Context) error {
	filters := []string{b.Space().Task("*", "*", "*"), b.Space().RefusedAll()}
	return func(ctx context.Context) error {
		if empty(ctx, b, filters) {
			x.caughtUp()
		}
		return b.Tail(ctx, bus.Tasks, 1, filters, func(_ context.Context, m bus.Message) error {
			switch v := m.Envelope.Data.(type) {
			case events.State:
				x.note(v)
			case events.Refusal:
				if m.After > 0 { // one of a task nobody knows expires by itself
					x.noteRefusal(Key{v.Agent, v.Task}, v.ID)
				}
			}
			if m.Pending == 0 {
				x.caughtUp()
			}
			return nil
		})
	}
}

// empty reports that the log has nothing of what is followed.
func empty(ctx context.Context, b *bus.Bus, filters []string) bool {
	for _, f := range filters {
		if _, err := b.Last(ctx, bus.Tasks, f); !errors.Is(err, bus.ErrNotFound) {
			return false
		}
	}
	return true
}

func (x *Index) caughtUp() {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.current = true
}

func (x *Index) noteRefusal(k Key, id string) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.refused[k] == nil {
		x.refused[k] = map[string]struct{}{}
	}
	x.refused[k][id] = struct{}{}
}

// mayBeRefused reports that a refusal of the id is on record, or that this replica does not know yet. One that another
// replica recorded a moment ago may be missed: whoever judges again by the same rules says the same.
func (x *Index) mayBeRefused(k Key, id string) bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	_, ok := x.refused[k][id]
	return ok || !x.current
}

func (x *Index) note(s events.State) {
	item := listed(s)
	if Final(s.Kind) && item.Pause != nil {
		item.Pause.Fields = nil
	}
	s = timing(s)
	x.mu.Lock()
	defer x.mu.Unlock()
	x.tasks[Key{item.Agent, item.Task}] = &entry{item: item, state: s}
}

// timing is what of a state says when something is due: no value that somebody gave, since it is kept as long as the task.
func timing(s events.State) events.State {
	why := events.Basis{Traits: events.Traits{Retention: s.Decision.Basis().Traits.Retention}}
	slim := events.State{Agent: s.Agent, Task: s.Task, Kind: s.Kind, At: s.At, Decision: events.Decided{Decision: events.Stop{Why: why}}}
	if lookup(s) {
		slim.Decision.Decision = events.Ask{Why: why, Lookup: "yes"}
	}
	slim.Claim = s.Claim
	if p := s.Pause; p != nil {
		slim.Pause = &events.Pause{
			Kind: p.Kind, Version: p.Version, Status: p.Status, Clock: p.Clock,
			Delivering: events.Delivering{Plan: p.Plan, Next: p.Next, Stepped: p.Stepped},
		}
		for _, d := range p.Deliveries {
			slim.Pause.Deliveries = append(slim.Pause.Deliveries, events.Delivery{Receipt: events.Receipt{State: d.Receipt.State}})
		}
	}
	return slim
}

func listed(s events.State) events.ListItem {
	return events.ListItem{
		Agent: s.Agent, Task: s.Task, Version: s.Version, Kind: s.Kind, Step: s.Candidate.Step,
		Tool: s.Candidate.Tool.Name, At: s.At, Pause: pauseView(s),
	}
}

// pauseView is a pause without values.
func pauseView(s events.State) *events.PauseView {
	p := s.Pause
	if p == nil {
		return nil
	}
	v := events.PauseView{
		Question: p.Question, Kind: p.Kind, Version: p.Version, Status: p.Status, Fields: bare(p.Fields),
		Deadline: p.Deadline, Cap: p.Cap, Overdue: p.Overdue,
	}
	for _, d := range p.Deliveries {
		if !slices.Contains(v.Channels, d.Target.Channel) {
			v.Channels = append(v.Channels, d.Target.Channel)
		}
	}
	if acc, ok := acceptedAt(s, p.Version); ok {
		v.AnsweredBy, v.AnsweredAt = &acc.Responder, acc.At
	}
	return &v
}

// ready reports that the whole log has been read once.
func (x *Index) ready() bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.current
}

func (x *Index) size() (tasks, open int) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, e := range x.tasks {
		if waiting(e.state) {
			open++
		}
	}
	return len(x.tasks), open
}

// list answers an operator, newest first.
func (x *Index) list(r events.ListRequest) events.ListReply {
	x.mu.Lock()
	items := []events.ListItem{}
	for _, e := range x.tasks {
		if matches(r, e) {
			items = append(items, e.item)
		}
	}
	x.mu.Unlock()
	slices.SortFunc(items, func(a, b events.ListItem) int {
		return cmp.Or(b.At.Compare(a.At), cmp.Compare(a.Agent, b.Agent), cmp.Compare(a.Task, b.Task))
	})
	limit := min(cmp.Or(r.Limit, 100), 1000, len(items))
	return events.ListReply{Items: items[:limit], More: len(items) - limit}
}

func matches(r events.ListRequest, e *entry) bool {
	switch {
	case r.Agent != "" && r.Agent != e.item.Agent,
		r.Question != "" && (e.item.Pause == nil || e.item.Pause.Question != r.Question),
		r.Waiting && !waiting(e.state),
		!r.Ended && r.Question == "" && Final(e.item.Kind):
		return false
	}
	return true
}

// late returns the tasks whose wake-up is overdue by more than grace or whose answer is to be decided again.
func (x *Index) late(wake func(events.State) time.Time, now time.Time, grace time.Duration) []Key {
	x.mu.Lock()
	defer x.mu.Unlock()
	var out []Key
	if !x.current {
		return nil // what is read again is long past
	}
	for k, e := range x.tasks {
		at := wake(e.state)
		if !at.IsZero() && now.After(at.Add(grace)) || e.item.Kind == events.Answered {
			out = append(out, k)
		}
	}
	return out
}

// forget drops a task that is no longer in the log.
func (x *Index) forget(k Key) {
	x.mu.Lock()
	defer x.mu.Unlock()
	delete(x.tasks, k)
	delete(x.refused, k)
}

// unheard returns the tasks with a question that no receipt has come for within patience, each at most once in that time.
func (x *Index) unheard(now time.Time, patience time.Duration) []Key {
	x.mu.Lock()
	defer x.mu.Unlock()
	var out []Key
	for k, e := range x.tasks {
		if p := e.state.Pause; waiting(e.state) && now.After(p.Stepped.Add(patience)) && now.After(e.checked.Add(patience)) &&
			slices.ContainsFunc(p.Deliveries, silent) {
			e.checked = now
			out = append(out, k)
		}
	}
	return out
}

// silent reports that no channel has said anything about a delivery.
func silent(d events.Delivery) bool { return d.Receipt.State == "" }
