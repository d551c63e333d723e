// Package audit keeps the redacted, hash-chained record of everything that happened in the task log, and checks from it that
// the guarantees of the log held.
//
// # Guarantees
//
// Every transition and every refusal is recorded exactly once, in the order of the log, by any number of replicas: one
// writer is active at a time, fenced by the sequence the audit stream must end with, and where it goes on is what the last
// record says, so no crash can make it skip or repeat. Of several refusals on one subject only the first in the log counts;
// once that one has expired (refusals of unknown tasks do), a later one is a refusal of its own.
//
// A record holds no value that a person, agent or tool gave: see [Redact]. It holds the hash of the record before, so an
// edit, a removal and a reordering show; that the end was cut off shows against a [Manifest] that is kept elsewhere.
//
// [Verify] needs nothing but the records: no key, no policy, no log.
package audit
