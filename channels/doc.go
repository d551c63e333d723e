// Package channels brings questions to people and their answers back: the interface an adapter implements, the courier that
// hands questions to adapters and reports what became of each, the desk that submits answers and says truthfully what became
// of them, the reply tokens that tie a link or an address to one question, and the fixed sentences people read.
//
//	candidate ──▶ decision ──▶ question ──▶ person ──▶ answer ──▶ release ──▶ effect ──▶ audit
//	                           ~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~
//
// An adapter makes one attempt and says what it saw. It never retries, never sleeps, never judges an answer, and never
// claims more than it has evidence for. Retrying is the redelivery of the stored question; judging is the broker's.
//
// # Guarantees
//
// A question is acknowledged only after its receipt was stored, so each is tried at least once and a crash costs another
// attempt under the same idempotency key ([Key]). A target that cannot be reached, or not before the question's time is
// up, is reported undelivered: never silence.
//
// A person is told "saved" only after the broker's verdict, which follows the durable append. Until then the answer is
// "received, checking" ([ErrPending]).
//
// Logs and errors carry ids, codes and counts: no text of a question, no address, no token, no URL.
package channels
