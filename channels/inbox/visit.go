package inbox

import (
	"errors"
	"net/http"
	"strconv"

	"github.com/clarify-broker/clarify/channels"
	"github.com/clarify-broker/clarify/events"
)

// visit is who looks at which question, and where their answer goes.
type visit struct {
	place    events.Place
	who      events.Responder
	desk     *channels.Desk
	question events.QuestionID // what a link was made for; empty without one
}

var errNotFound = errors.New("no such question")

// bearer reports that nothing is known of the visitor but that they hold a link.
func (v visit) bearer() bool { return v.who.Assurance == events.Bearer }

// visit reads whom a request is from and what it is about. A visitor who is identified counts as that, also on a link that
// was made for somebody else: who they are is the stronger claim.
func (in *Inbox) visit(r *http.Request) (visit, error) {
	var v visit
	var ticket *channels.Ticket
	if token := r.PathValue("token"); token != "" {
		t, err := in.verify(token)
		if err != nil {
			return visit{}, errNotFound
		}
		ticket, v.place, v.question = &t, t.Place, t.Question
	} else {
		place, err := placeOf(r)
		if err != nil {
			return visit{}, errNotFound
		}
		v.place = place
	}
	v.who, v.desk = events.Responder{}, in.Desk
	who, err := in.Identify(r)
	switch {
	case err == nil:
		v.who = who
	case ticket == nil:
		return visit{}, ErrStranger
	case in.desks[ticket.Place.Channel] == nil:
		return visit{}, errNotFound
	default:
		v.desk = in.desks[ticket.Place.Channel]
		v.who = events.Responder{Channel: ticket.Place.Channel, Subject: ticket.Recipient, Assurance: events.Bearer}
	}
	v.place.Channel = v.desk.Channel()
	return v, nil
}

func (in *Inbox) verify(token string) (channels.Ticket, error) {
	if in.Keys == nil {
		return channels.Ticket{}, channels.ErrToken
	}
	return in.Keys.Verify(token)
}

func placeOf(r *http.Request) (events.Place, error) {
	agent, err := events.ParseAgent(r.PathValue("agent"))
	if err != nil {
		return events.Place{}, err
	}
	task, err := events.ParseTask(r.PathValue("task"))
	if err != nil {
		return events.Place{}, err
	}
	version, err := strconv.ParseUint(r.PathValue("version"), 10, 64)
	if err != nil || version == 0 {
		return events.Place{}, errNotFound
	}
	return events.Place{Agent: agent, Task: task, Version: events.Version(version)}, nil
}

// turnAway answers a request that did not get as far as a question.
func (in *Inbox) turnAway(w http.ResponseWriter, r *http.Request, err error) {
	if errors.Is(err, ErrStranger) {
		in.message(w, r, http.StatusForbidden, "stranger")
		return
	}
	in.message(w, r, http.StatusNotFound, "unknown")
}
