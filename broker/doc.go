// Package broker turns decisions into pauses, answers into releases, and silence into anything but consent.
//
// A task's state is one value, [events.State]; the last message of the task in the log is its state. The transitions are
// pure functions of the state, the input and the moment (clarification.go and the files of the stages); [Ledger.Apply] is
// the one place that appends them.
//
// # Guarantees
//
// Inputs (candidates, answers, approvals, receipts, timers) are delivered at least once, to any replica, in any order. Each
// transition is idempotent: the state knows what caused it.
//
// Every append is guarded by the sequence that was read, over all subjects of the task, so of any number of writers exactly
// one wins, and the others read again. A refusal, or that there is nothing to do, is only concluded from a leader's read.
// An append that is not acknowledged proves nothing: the task is read again and decided again.
//
// At most one answer is accepted per (task, version), at most one release is made per (task, version), and one executor
// claims it, for as long as the task is kept and not for a window. A version that ended never reopens.
//
// Silence, a deadline, a cancel, a failed delivery and a lost connection never release anything. What may run after a
// deadline is the policy's documented default on a reversible action, decided again at that moment and recorded as that.
//
// Work that follows from a transition (questions, timers, closing of surfaces, audit) is derived from the log, so a crash
// anywhere means that it is done again, under the same ids.
package broker
