package events

// DecidedWire lets the schema tests see the members a stored decision has.
type DecidedWire = decidedWire
