package inbox

import (
	"context"
	"errors"
	"net/http"

	"github.com/clarify-broker/clarify/channels"
	"github.com/clarify-broker/clarify/events"
)

// look shows a question, or what became of it. It changes nothing.
func (in *Inbox) look(w http.ResponseWriter, r *http.Request) {
	v, err := in.visit(r)
	if err != nil {
		in.turnAway(w, r, err)
		return
	}
	reply, ok := in.read(w, r, v)
	if !ok {
		return
	}
	f := form{}
	if pick := r.URL.Query().Get("pick"); pick != "" && len(reply.Question.Content.Fields) == 1 {
		f.Choice = map[string]string{reply.Question.Content.Fields[0].Name: pick} // a link in a message preselects; sending is the visitor's
	}
	in.show(w, r, http.StatusOK, view{visit: v, reply: reply, form: f})
}

// answer hands in what a visitor sent, and shows the verdict on the page they sent it from.
func (in *Inbox) answer(w http.ResponseWriter, r *http.Request) {
	v, err := in.visit(r)
	if err != nil {
		in.turnAway(w, r, err)
		return
	}
	r.Body = http.MaxBytesReader(w, r.Body, maxForm)
	if err := r.ParseForm(); err != nil {
		status := http.StatusBadRequest
		if _, ok := errors.AsType[*http.MaxBytesError](err); ok {
			status = http.StatusRequestEntityTooLarge
		}
		in.message(w, r, status, "unreadable")
		return
	}
	before, ok := in.read(w, r, v)
	if !ok {
		return
	}
	f := readForm(r.PostForm)
	if lacks := f.complete(before.Question); lacks != "" {
		in.show(w, r, http.StatusUnprocessableEntity, view{visit: v, reply: before, form: f, lacks: lacks})
		return
	}
	if f.isApproval() && v.bearer() {
		in.show(w, r, http.StatusForbidden, view{visit: v, reply: before, lacks: "form.bearer"})
		return
	}
	verdict, err := in.submit(r.Context(), v, f, before.Question)
	in.judged(w, r, view{visit: v, reply: before, form: f}, verdict, err)
}

func (in *Inbox) submit(ctx context.Context, v visit, f form, q *events.Question) (events.Verdict, error) {
	if f.isApproval() {
		return v.desk.SubmitApproval(ctx, f.approval(v))
	}
	return v.desk.Submit(ctx, f.answer(v, q))
}

// judged shows what became of a submission, beside what has become of its question by then.
func (in *Inbox) judged(w http.ResponseWriter, r *http.Request, shown view, verdict events.Verdict, err error) {
	if after, e := shown.visit.desk.Look(r.Context(), shown.visit.place); e == nil && after.Question != nil {
		shown.reply = after
	}
	if _, ok := errors.AsType[*events.Invalid](err); ok {
		shown.lacks = "form.invalid"
		in.show(w, r, http.StatusUnprocessableEntity, shown)
		return
	}
	switch {
	case err == nil:
		shown.verdict = &verdict
		in.show(w, r, channels.Status(verdict), shown)
	case errors.Is(err, channels.ErrPending):
		shown.pending = true
		in.show(w, r, http.StatusAccepted, shown)
	default:
		in.Log.Error("answer not stored", "channel", in.Name(), "agent", shown.visit.place.Agent, "task", shown.visit.place.Task,
			"state_version", shown.visit.place.Version, "error", err)
		shown.lacks = "form.not_stored"
		in.show(w, r, http.StatusServiceUnavailable, shown)
	}
}

// read asks the broker for the question of a visit. It answers the request itself when there is none.
func (in *Inbox) read(w http.ResponseWriter, r *http.Request, v visit) (events.QuestionReply, bool) {
	reply, err := v.desk.Look(r.Context(), v.place)
	switch {
	case err != nil:
		in.Log.Error("question not read", "channel", in.Name(), "agent", v.place.Agent, "task", v.place.Task, "state_version", v.place.Version, "error", err)
		in.message(w, r, http.StatusServiceUnavailable, "down")
		return reply, false
	case reply.Question == nil || reply.Pause == nil:
		in.message(w, r, http.StatusNotFound, "unknown")
		return reply, false
	case v.question != "" && reply.Pause.Version == v.place.Version && reply.Pause.Question != v.question:
		in.message(w, r, http.StatusNotFound, "unknown")
		return reply, false
	}
	return reply, true
}
