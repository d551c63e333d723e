package channels

import (
	"context"
	"errors"

	"github.com/clarify-broker/clarify/events"
	"github.com/clarify-broker/clarify/events/bus"
)

// attempt makes one attempt. Before a second one, and after one whose outcome is unknown, it asks the provider whether it
// already has the message, where the adapter can.
func (r *round) attempt(ctx context.Context, m bus.Message, q events.Question) (events.Receipt, error) {
	if m.Deliveries > 1 && !r.ledger.read(Key(q)).absent {
		switch receipt, err := r.reconcile(ctx, q); {
		case err == nil:
			return receipt, nil
		case !errors.Is(err, ErrAbsent): // whatever is wrong with looking, the message may be there
			f := faultOf(err)
			return events.Receipt{}, &Error{Class: Ambiguous, Code: f.Code, RetryAfter: f.RetryAfter, Err: err}
		}
	}
	receipt, err := r.once(ctx, q, r.adapter.Deliver)
	if err != nil && ClassOf(err) == Content {
		if compact, ok := r.adapter.(Compacter); ok {
			receipt, err = r.once(ctx, q, compact.DeliverCompact)
		}
	}
	if err == nil || ClassOf(err) != Ambiguous {
		return receipt, err
	}
	switch found, cannot := r.reconcile(ctx, q); {
	case cannot == nil:
		return found, nil
	case errors.Is(cannot, ErrAbsent) && r.canReconcile():
		return events.Receipt{}, Fault(Transient, faultOf(err).Code, err)
	}
	return events.Receipt{}, err
}

// once gives the adapter its budget, and believes a success only with the provider's own id for the message.
func (r *round) once(ctx context.Context, q events.Question, try func(context.Context, events.Question) (events.Receipt, error)) (events.Receipt, error) {
	ctx, cancel := context.WithTimeout(ctx, r.budget)
	defer cancel()
	receipt, err := try(ctx, q)
	if err == nil && (!receipt.State.Reached() || receipt.ProviderID == "") {
		return events.Receipt{}, Fault(Ambiguous, CodeNoEvidence, nil)
	}
	return receipt, err
}

func (r *round) canReconcile() bool {
	_, ok := r.adapter.(Reconciler)
	return ok
}

// reconcile returns ErrAbsent also when the adapter cannot look: then the idempotency key is what there is.
func (r *round) reconcile(ctx context.Context, q events.Question) (events.Receipt, error) {
	rec, ok := r.adapter.(Reconciler)
	if !ok {
		return events.Receipt{}, ErrAbsent
	}
	return r.once(ctx, q, rec.Reconcile)
}
