// Package gate stands in front of an agent's tools: it proposes the action, waits until a person or the policy has decided,
// and runs the tool at most once, only when it was released.
//
// [Gate.Do] is the whole cycle. [Gate.Submit], [Gate.Wait] and [Gate.Result] are its parts, for an agent that proposes on one
// machine while [Gate.Serve] runs the tools on another.
//
// # Guarantees
//
// A tool runs only with a claim that was granted for exactly this step, over arguments whose digest is the one that was
// decided and shown; the digest is computed again here, over the arguments the tool is given. One executor gets the claim.
// An identical repeat of a call gets the recorded result and does not run the tool again.
//
// Waiting is bounded by the context and reads only. Giving up, a lost connection and a restart never cancel a question and
// never release anything: the same candidate, or its [Ticket], re-attaches to whatever has become of it.
//
// Silence is never consent. Every way not to be released is an error of a type of its own whose text starts with "NOT
// EXECUTED:" and says who did not decide. A kind of state this version does not know is an error as well.
//
// An outcome is reported until the broker says that it is stored. When that does not succeed, the error is an [*InDoubt]:
// the tool may have run, nobody will run it again by itself, and a person says what became of it.
//
// Wake-ups may be lost and only save time: the broker is asked for the state on start, after a reconnect and at growing
// intervals of 1 to 30 seconds.
//
// # Rights
//
// An agent's credential needs to publish on clarify.{candidate,cancel,claim,effect,state.agent}.<agent>.* and to subscribe to
// clarify.wake.<agent>.*.* and its inbox, _INBOX_<agent>.> with [Connect]. [Gate.Serve] needs to ask about, pull from and
// acknowledge to the consumer pool-<agent> as well. Nothing else is used.
package gate
