package broker

import "github.com/clarify-broker/clarify/events"

// attempt is what was tried on a task, as a refusal names it.
type attempt struct {
	key     Key
	of      string // answer, approval, candidate, cancel, claim, effect or reconcile
	id      string
	version events.Version
}

// refused changes nothing and says why.
func (a attempt) refused(s Snapshot, reason events.Reason, m Moment) Change {
	return Change{Refusal: &events.Refusal{
		Agent: a.key.Agent, Task: a.key.Task, Version: a.version, Current: s.State.Version,
		Of: a.of, ID: a.id, Reason: reason, At: m.Now,
	}}
}
