package channels

import (
	"context"
	"errors"

	"github.com/clarify-broker/clarify/events"
)

// Adapter brings questions to people by one provider.
type Adapter interface {
	// Name is the configured channel's name: the token in the subjects it consumes and publishes on. It never changes.
	Name() events.Channel

	// Deliver makes exactly one attempt to bring an asked or reminded question to q.Delivery, within ctx. The error is nil
	// only when the provider has taken responsibility for the message and said so: the receipt's state is then accepted or
	// better, and ProviderID is the provider's own id for it. "No error" from a client library is no evidence.
	//
	// The error is an [*Error], whose class decides what the courier does next. Do not retry and do not sleep: return, and
	// the stored question comes again. Pass [Key] as the provider's idempotency key where it has one. Receipt.Ref holds
	// what [Updater] needs later, and neither tokens nor URLs with secrets; for a reminder, q.Delivery.Receipt is what the
	// first delivery returned, and the new Ref must still lead to every copy.
	//
	// Every text in q is untrusted: render it as text, never as markup, and see [Plain] for characters that lie.
	Deliver(ctx context.Context, q events.Question) (events.Receipt, error)
}

// Updater is an [Adapter] that can change what it delivered.
type Updater interface {
	// Update shows on every copy of the question what became of it (q.Closed), and takes its controls away. Doing so twice
	// changes nothing. The last receipt is q.Delivery.Receipt; it may be zero when the delivery never got one.
	Update(ctx context.Context, q events.Question) (events.Receipt, error)
}

// Reconciler is an [Adapter] that can find out whether an attempt whose outcome is unknown was accepted.
type Reconciler interface {
	// Reconcile looks for the message of [Key](q) at the provider, and sends nothing. It returns the receipt that Deliver
	// would have, [ErrAbsent] when the provider certainly does not have the message, and an [*Error] when it cannot tell.
	Reconcile(ctx context.Context, q events.Question) (events.Receipt, error)
}

// Compacter is an [Adapter] that has a smaller rendering to fall back on.
type Compacter interface {
	// DeliverCompact is Deliver with the smallest rendering that can still be answered. It is called once, after Deliver
	// returned an error of class [Content].
	DeliverCompact(ctx context.Context, q events.Question) (events.Receipt, error)
}

// ErrAbsent is returned by a [Reconciler] that has proof that the provider does not have the message.
var ErrAbsent = errors.New("the provider does not have the message")

// Key is the idempotency key of a question's message: the delivery's id, and for a reminder or a closing the phase after
// it, since those are messages of their own. It is a token of at most 128 characters, so it can stand in a header.
func Key(q events.Question) string {
	id := events.TokenFor(q.Delivery.ID)
	if q.Phase == events.PhaseRemind || q.Phase == events.PhaseClose {
		return id + "-" + string(q.Phase)
	}
	return id
}
