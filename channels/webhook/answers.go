package webhook

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"log/slog"
	"mime"
	"net/http"
	"time"

	"github.com/clarify-broker/clarify/channels"
	"github.com/clarify-broker/clarify/events"
	"github.com/go-json-experiment/json"
)

// Answers is where the endpoint's owner POSTs answers: answer.submitted.v1 and approval.submitted.v1 as structured
// CloudEvents, signed as questions are, with one of the same secrets. The signature is checked before anything is parsed.
//
// The responder's subject and name are the sender's word for who answered, and count as far as the directory knows that
// subject on this channel; without one the endpoint itself answered. The submission id is made out of webhook-id and body,
// so that sending the same again is the same submission.
//
// The status is channels.Status of the verdict, whose JSON is the body; 202 when the answer is stored and not judged yet;
// 400 for what is no event, 401 for a signature that is missing, wrong or more than five minutes off, 413 and 415; 503 with
// Retry-After when it could not be stored.
func (e *Endpoint) Answers(desk *channels.Desk, log *slog.Logger) http.Handler {
	if log == nil {
		log = slog.Default()
	}
	inbound := &inbound{endpoint: e, desk: desk, log: log}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /{$}", inbound.serve)
	return mux
}

type inbound struct {
	endpoint *Endpoint
	desk     *channels.Desk
	log      *slog.Logger
}

// problem is why a request was not an answer. Its texts are fixed or name members, never values.
type problem struct {
	Error  string `json:"error"`
	Detail string `json:"detail,omitzero"`
}

func (in *inbound) serve(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxResponse))
	if err != nil {
		if _, ok := errors.AsType[*http.MaxBytesError](err); ok {
			write(w, http.StatusRequestEntityTooLarge, problem{Error: "too_large", Detail: "send at most 64 KiB"})
			return
		}
		write(w, http.StatusBadRequest, problem{Error: "unreadable", Detail: "the body did not arrive whole"})
		return
	}
	id, err := verify(r.Header, in.endpoint.keys, time.Now(), body)
	if err != nil {
		in.log.Warn("webhook answer refused", "channel", in.endpoint.name, "reason", "signature")
		write(w, http.StatusUnauthorized, problem{Error: "signature", Detail: errSignature.Error()})
		return
	}
	contentType := r.Header.Get("Content-Type")
	if media, _, err := mime.ParseMediaType(contentType); err != nil || media != events.ContentType {
		write(w, http.StatusUnsupportedMediaType, problem{Error: "content_type", Detail: "send " + events.ContentType})
		return
	}
	e, err := events.Open(map[string][]string{"Content-Type": {contentType}}, body)
	if err != nil {
		write(w, http.StatusBadRequest, invalid(err))
		return
	}
	in.judge(r.Context(), w, submissionID(in.endpoint.name, id, body), e.Data)
}

func (in *inbound) judge(ctx context.Context, w http.ResponseWriter, id events.SubmissionID, data any) {
	var v events.Verdict
	var err error
	switch a := data.(type) {
	case events.Answer:
		a.Submission, a.Responder, a.ReceivedAt = id, in.responder(a.Responder), time.Time{}
		v, err = in.desk.Submit(ctx, a)
	case events.ApprovalAnswer:
		a.Submission, a.Responder, a.ReceivedAt = id, in.responder(a.Responder), time.Time{}
		v, err = in.desk.SubmitApproval(ctx, a)
	default:
		write(w, http.StatusBadRequest, problem{Error: "type", Detail: "send answer.submitted.v1 or approval.submitted.v1"})
		return
	}
	if _, ok := errors.AsType[*events.Invalid](err); ok {
		write(w, http.StatusBadRequest, invalid(err))
		return
	}
	switch {
	case err == nil:
		write(w, channels.Status(v), v)
	case errors.Is(err, channels.ErrPending):
		write(w, http.StatusAccepted, pending{Status: "received, checking", Submission: id})
	default:
		in.log.Error("webhook answer not stored", "channel", in.endpoint.name, "error", err)
		w.Header().Set("Retry-After", "5")
		write(w, http.StatusServiceUnavailable, problem{Error: "not_stored", Detail: "send it again with the same webhook-id and body"})
	}
}

// pending is said of an answer that is stored and not judged yet. It is no verdict.
type pending struct {
	Status     string              `json:"status"`
	Submission events.SubmissionID `json:"submission"`
}

// responder is what the signature proves of the responder: that the endpoint's owner says so.
func (in *inbound) responder(claimed events.Responder) events.Responder {
	r := events.Responder{Channel: in.endpoint.name, Subject: claimed.Subject, Name: claimed.Name, Assurance: events.Platform}
	if r.Subject == "" {
		r.Subject = string(in.endpoint.name)
	}
	return r
}

// submissionID is the same for the same message. The body is in it, so that another answer under a used webhook-id is
// judged for itself and not told what became of the first.
func submissionID(channel events.Channel, id string, body []byte) events.SubmissionID {
	h := sha256.New()
	for _, part := range []string{"clarify webhook submission", string(channel), id} {
		h.Write([]byte(part))
		h.Write([]byte{0})
	}
	h.Write(body)
	return events.SubmissionID("wh-" + hex.EncodeToString(h.Sum(nil)[:20]))
}

func invalid(err error) problem {
	inv, ok := errors.AsType[*events.Invalid](err)
	if !ok {
		return problem{Error: "malformed"}
	}
	return problem{Error: "malformed", Detail: channels.Plain(inv.Error())}
}

func write(w http.ResponseWriter, status int, body any) {
	text, err := json.Marshal(body, json.Deterministic(true))
	if err != nil {
		status, text = http.StatusInternalServerError, []byte(`{"error":"internal"}`)
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(text)
}
