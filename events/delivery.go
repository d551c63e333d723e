package events

import "time"

// Reach is how far a delivery got. Nothing is claimed that was not seen.
type Reach string

// How far a delivery got, in order; undelivered is final for its target.
const (
	Held          Reach = "held"      // quiet hours or a rate limit: nobody was contacted yet
	Attempted     Reach = "attempted" // tried and failed, will be tried again
	ReachAccepted Reach = "accepted"  // the provider took it
	Delivered     Reach = "delivered" // proof beyond acceptance
	Seen          Reach = "seen"      // never inferred from a GET
	NotDelivered  Reach = "undelivered"
)

// Reached reports that somebody's provider took it.
func (r Reach) Reached() bool { return r == ReachAccepted || r == Delivered || r == Seen }

// Delivery is one target of a question and its latest receipt.
type Delivery struct {
	ID      string      `json:"id"` // DeliveryID: the idempotency key everywhere
	Step    int         `json:"step"`
	Target  RouteTarget `json:"target"`
	To      []Person    `json:"to,omitempty"` // resolved recipients
	Receipt Receipt     `json:"receipt,omitzero"`
}

// Person is somebody the directory knows, with the addresses a channel needs.
type Person struct {
	ID        string            `json:"id"`
	Name      string            `json:"name,omitzero"`
	Addresses map[string]string `json:"addresses,omitempty"` // by channel
}

// Receipt is an adapter's word on one attempt.
type Receipt struct {
	State      Reach             `json:"state"`
	Attempt    int               `json:"attempt,omitzero"`
	Seq        uint64            `json:"seq,omitzero"` // grows per delivery; a lower one never overwrites
	ProviderID string            `json:"provider_id,omitzero"`
	Ref        map[string]string `json:"ref,omitempty"` // what an update needs; no tokens, no URLs with secrets
	Code       string            `json:"code,omitzero"` // stable machine code of the last error
	RetryAfter Duration          `json:"retry_after,omitzero"`
	At         time.Time         `json:"at,omitzero"`
}

// DeliveryReport carries a receipt to the broker: the data of delivery.reported.v1.
type DeliveryReport struct {
	Agent    Agent      `json:"agent"`
	Task     Task       `json:"task"`
	Version  Version    `json:"version"`
	Question QuestionID `json:"question"`
	Delivery string     `json:"delivery"`
	Receipt  Receipt    `json:"receipt"`
}

// Validate checks what a broker needs to place the receipt. The error is an [*Invalid].
func (r DeliveryReport) Validate() error {
	switch r.Receipt.State {
	case Held, Attempted, ReachAccepted, Delivered, Seen, NotDelivered:
	default:
		return invalid("receipt.state", "use held, attempted, accepted, delivered, seen or undelivered", "%.20q is unknown", r.Receipt.State)
	}
	if r.Receipt.State.Reached() && r.Receipt.ProviderID == "" {
		return invalid("receipt.provider_id", "report accepted only with the provider's id for the message", "is missing")
	}
	if r.Delivery == "" || len(r.Delivery) > maxName {
		return invalid("delivery", "name the delivery the question carried", "is missing or too long")
	}
	return nil
}
