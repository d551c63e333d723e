// Package events is Clarify's wire contract: what agents, brokers, channels and auditors say to each other, the subjects
// they say it on, and nothing else.
//
//	candidate ──▶ decision ──▶ question ──▶ person ──▶ answer ──▶ release ──▶ effect ──▶ audit
//	events/gate    policy        broker      channels    broker     broker     events/gate  broker/audit
//
// Every event is a CloudEvent 1.0 whose type starts with [TypePrefix]. [Seal] makes one from a value of this package and
// [Open] reads one back; the data of each type has a JSON Schema under schema/. Subjects are built by one function each and
// read back by [Space.Parse].
//
// # Input from outside
//
// JSON is decoded strictly ([Decode]): duplicate members, unknown members, invalid UTF-8, trailing data, a nesting deeper
// than [MaxDepth] and bodies over the caller's limit are refused. Numbers keep their text, so 2^53+1 survives. Tokens that
// become part of a subject are refused rather than rewritten ([ParseTask]); [TokenFor] derives one from any string.
//
// # Secrets
//
// Values that agents and people give are held as [Secret]: no formatter, logger or encoder prints them. Only the events
// that must carry them (candidate.proposed, answer.submitted, task.*, and the reply to a claim) are sealed with the values
// in the clear.
package events
