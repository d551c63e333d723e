package audit

import (
	"slices"

	"github.com/clarify-broker/clarify/events"
)

func versionFaults() []fault {
	return []fault{
		{3, "step", "asked again after the release", func(all trail) trail {
			i := all.find(kind(events.Claimed))
			if i < 0 {
				return nil
			}
			all[i].Transition.Kind = events.Asked
			return all
		}},
		{3, "reopened", "waiting again after it was called off", func(all trail) trail {
			i := all.find(kind(events.Cancelled))
			if i < 0 || all.before(i) < 0 || !open(all[all.before(i)].Transition.Kind) {
				return nil
			}
			return all.insert(i, clone(all[all.before(i)]))
		}},
		{3, "reopened", "an answered pause counts as timed out later", func(all trail) trail {
			i := all.find(func(t *events.Transition) bool {
				return t.Kind == events.Claimed && t.Pause != nil && t.Pause.Status == events.PauseAnswered
			})
			if i < 0 {
				return nil
			}
			all[i].Transition.Pause.Status = events.PauseCancelled
			return all
		}},
		{3, "reopened", "an answered pause was left as superseded", func(all trail) trail {
			i := all.find(kind(events.Answered))
			if i < 0 || all.after(i) < 0 || all[all.after(i)].Transition.Left == nil {
				return nil
			}
			all[all.after(i)].Transition.Left.Status = events.PauseSuperseded
			return all
		}},
		{3, "reopened", "asked twice at one version", func(all trail) trail {
			i := all.find(kind(events.Asked))
			if i < 0 {
				return nil
			}
			return all.insert(i, clone(all[i]))
		}},
		{3, "superseded", "what was replaced is not named", at(func(t *events.Transition) bool { return t.Superseded != 0 },
			func(r *events.Record) { r.Transition.Superseded = 0 })},
		{3, "superseded", "what became of the replaced pause is not said", at(leavingReplaced, func(r *events.Record) { r.Transition.Left = nil })},
		{3, "version", "a candidate went back", at(func(t *events.Transition) bool { return t.Superseded > 1 }, func(r *events.Record) {
			r.Version = r.Transition.Superseded - 1
		})},
		{3, "version", "a candidate took the version of the one before", at(func(t *events.Transition) bool { return t.Superseded != 0 },
			func(r *events.Record) { r.Version = r.Transition.Superseded })},
		{3, "version", "a version grew without a pause", at(kind(events.Reached), func(r *events.Record) { r.Version++ })},
		{3, "version", "one pause at two versions", at(kind(events.Reached), func(r *events.Record) { r.Transition.Pause.Version-- })},
		{3, "version", "a new pause at the version of the one before", at(leaving(events.PauseAnswered), func(r *events.Record) {
			r.Version, r.Transition.Pause.Version = r.Transition.Left.Version, r.Transition.Left.Version
		})},
		{3, "version", "a pause of a later version", at(kind(events.Asked), func(r *events.Record) { r.Transition.Pause.Version++ })},
		{3, "status", "waiting, but its pause has ended", at(kind(events.Reached), func(r *events.Record) { r.Transition.Pause.Status = events.PauseAnswered })},
		{3, "status", "ended, but its pause waits", at(kind(events.TimedOut), func(r *events.Record) { r.Transition.Pause.Status = events.PauseWaiting })},
		{3, "status", "timed out, but its pause was answered", at(kind(events.TimedOut), func(r *events.Record) { r.Transition.Pause.Status = events.PauseAnswered })},
		{3, "pause", "a pause vanished", at(func(t *events.Transition) bool { return t.Kind == events.Claimed && t.Pause != nil },
			func(r *events.Record) { r.Transition.Pause = nil })},
		{3, "pause", "a new pause began with a reminder", at(kind(events.Reached), func(r *events.Record) { r.Transition.Pause.Question = "q-new" })},
		{3, "left", "how the pause before ended is not said", at(leaving(events.PauseAnswered), func(r *events.Record) { r.Transition.Left = nil })},
		{3, "late", "an answer after the release", at(func(t *events.Transition) bool { return t.Kind == events.Claimed && t.Pause != nil },
			func(r *events.Record) {
				r.Transition.Accepted = append(r.Transition.Accepted, events.Approved{
					Version: r.Version + 1, Kind: events.Clarification,
					Submission: "sub-late", Responder: events.ResponderRecord{Person: "luis", Channel: "slack", Assurance: events.Platform},
				})
			})},
		{3, "stale", "an answer to an older version", func(all trail) trail {
			i := all.find(func(t *events.Transition) bool {
				return answered(events.Clarification, events.Released, events.Stopped)(t) && t.Left == nil
			})
			if i < 0 {
				return nil
			}
			for j := range all[:i] { // nothing of the task was answered before
				if all[j].Task == all[i].Task && all[j].Transition != nil && len(all[j].Transition.Accepted) > 0 {
					return nil
				}
			}
			all[i].Transition.Accepted[0].Version--
			return all
		}},
	}
}

func leavingReplaced(t *events.Transition) bool {
	return t.Superseded != 0 && t.Left != nil && t.Left.Version == t.Superseded
}

func silenceFaults() []fault {
	return []fault{
		{4, "silence", "handed over after a deadline the policy does not let pass", at(leaving(events.PauseTimedOut), func(r *events.Record) {
			r.Transition.Left.AfterDeadline = events.DeadlineStop
		})},
		{4, "silence", "a question to people was dropped", at(leaving(events.PauseAnswered), func(r *events.Record) {
			r.Transition.Left.Status = events.PauseSuperseded
		})},
		{4, "silence", "it went on after it was called off", at(leaving(events.PauseAnswered), func(r *events.Record) {
			r.Transition.Left.Status = events.PauseCancelled
		})},
		{4, "silence", "a time-out taken for an answer", at(releasedFrom(events.FromAfterDeadline), func(r *events.Record) {
			r.Transition.Release.From = events.FromAnswer
		})},
		{4, "silence", "a failed delivery taken for an answer", at(releasedFrom(events.FromAnswer), func(r *events.Record) {
			r.Transition.Pause.Status = events.PauseUndelivered
		})},
		{4, "refused", "a refused answer was accepted after all", func(all trail) trail {
			i := all.find(answered(events.Clarification, events.Released, events.Stopped))
			if i < 0 || all.before(i) < 0 {
				return nil
			}
			j := all.before(i)
			refused := clone(all[j])
			refused.Entry = events.Entry{Refusal: &events.RefusalRecord{
				Of: "answer", Reason: events.InvalidValue,
				ID: string(all[i].Transition.Accepted[0].Submission), Current: refused.Version,
			}}
			return all.insert(j, refused)
		}},
		{4, "refused", "a refused answer called the task off", func(all trail) trail {
			i := all.find(kind(events.Cancelled))
			if i < 0 || all.before(i) < 0 {
				return nil
			}
			j := all.before(i)
			refused := clone(all[j])
			refused.Entry = events.Entry{Refusal: &events.RefusalRecord{Of: "answer", Reason: events.Incomplete, ID: all[i].Cause, Current: refused.Version}}
			return all.insert(j, refused)
		}},
		{4, "responder", "a time-out names somebody", at(kind(events.TimedOut), func(r *events.Record) { r.Transition.By = "luis" })},
		{4, "responder", "a release after the deadline names somebody", at(releasedFrom(events.FromAfterDeadline), func(r *events.Record) { r.Transition.By = "luis" })},
		{4, "responder", "a time-out has an answer", at(kind(events.TimedOut), func(r *events.Record) {
			r.Transition.Accepted = append(r.Transition.Accepted, events.Approved{
				Version: r.Version, Question: r.Transition.Pause.Question,
				Kind: r.Transition.Pause.Kind, Submission: "sub-x", Responder: events.ResponderRecord{Person: "luis", Channel: "slack"},
			})
		})},
		{4, "stale", "judged on an older state", func(all trail) trail {
			i := slices.IndexFunc(all, func(r events.Record) bool { return r.Refusal != nil && r.After != 0 })
			if i < 0 || all.before(i) < 0 || all[all.before(i)].After == 0 {
				return nil
			}
			all[i].After = all[all.before(i)].After
			return all
		}},
		{4, "untrue", "an open version called stale", instead(refusal(events.WrongKind), func(r *events.Record) { r.Refusal.Reason = events.StaleVersion })},
		{4, "untrue", "an open pause called ended", instead(refusal(events.WrongKind), func(r *events.Record) { r.Refusal.Reason = events.NotPending })},
		{4, "untrue", "a waiting task called busy", instead(refusal(events.WrongKind), func(r *events.Record) { r.Refusal.Reason = events.Busy })},
		{4, "untrue", "somebody was turned away who may answer", instead(refusal(events.NotAllowed), func(r *events.Record) { r.Refusal.Responder.Person = "luis" })},
		{4, "untrue", "a newer candidate called stale", instead(refusal(events.StaleVersion), func(r *events.Record) { r.Version++ })},
		{4, "untrue", "another current version", instead(refusal(events.WrongKind), func(r *events.Record) { r.Refusal.Current++ })},
	}
}

func authorityFaults() []fault {
	allAnswers := func(spoil func(*events.Record, *events.Approved)) func(trail) trail {
		return at(answered(events.Clarification, events.Released, events.Stopped), func(r *events.Record) { spoil(r, &r.Transition.Accepted[0]) })
	}
	return []fault{
		{5, "kind", "an approval is asked for as a clarification", at(kind(events.Asked), func(r *events.Record) { r.Transition.Pause.Kind = events.Approval })},
		{5, "kind", "a clarification became an approval", at(kind(events.Reached), func(r *events.Record) {
			r.Transition.Pause.Kind = map[events.PauseKind]events.PauseKind{events.Approval: events.Clarification}[r.Transition.Pause.Kind]
		})},
		{5, "responders", "a stranger's answer", allAnswers(func(_ *events.Record, a *events.Approved) { a.Responder.Person = "mallory" })},
		{5, "responders", "an answer of somebody who is barred", allAnswers(func(_ *events.Record, a *events.Approved) { a.Responder.Person = "ana" })},
		{5, "responders", "an answer although nobody may", func(all trail) trail {
			i := all.find(answered(events.Clarification, events.Released, events.Stopped))
			if i < 0 {
				return nil
			}
			for j := i; j >= 0 && all[j].Transition.Candidate == all[i].Transition.Candidate; j = all.before(j) {
				all[j].Transition.Pause.Responders = []string{}
			}
			return all
		}},
		{5, "responders", "who may answer changed", at(kind(events.Reached), func(r *events.Record) { r.Transition.Pause.Responders = []string{"anyone"} })},
		{5, "question", "an answer to another question", allAnswers(func(_ *events.Record, a *events.Approved) { a.Question = "q-other" })},
		{5, "stand-in", "an answer accepted as an approval", allAnswers(func(_ *events.Record, a *events.Approved) { a.Kind = events.Approval })},
		{5, "stand-in", "an answer releases as an approval", at(releasedFrom(events.FromAnswer), func(r *events.Record) { r.Transition.Release.From = events.FromApproval })},
		{5, "stand-in", "an approval releases as an answer", at(releasedFrom(events.FromApproval), func(r *events.Record) { r.Transition.Release.From = events.FromAnswer })},
		{5, "own", "somebody approved their own request", at(releasedFrom(events.FromApproval), func(r *events.Record) { r.Transition.Requester = "luis" })},
		{5, "denied", "denied by nobody", at(kind(events.Denied), func(r *events.Record) {
			r.Transition.Accepted = r.Transition.Accepted[:len(r.Transition.Accepted)-1]
		})},
	}
}

func chainFaults() []fault {
	return []fault{
		{8, "entry", "a transition that is a refusal too", at(kind(events.Asked), func(r *events.Record) {
			r.Refusal = &events.RefusalRecord{Of: "answer", ID: "x", Reason: events.Incomplete}
		})},
		{8, "unreadable", "a message nobody could read", at(kind(events.Asked), func(r *events.Record) {
			r.Entry = events.Entry{Unreadable: events.UnreadableEvent}
		})},
		{8, "order", "two records changed places", func(all trail) trail {
			for i := 1; i < len(all); i++ {
				if all[i].Task != all[i-1].Task {
					all[i], all[i-1] = all[i-1], all[i]
					return all
				}
			}
			return nil
		}},
		{8, "order", "one transition recorded twice", func(all trail) trail { return slices.Insert(slices.Clone(all), 10, clone(all[9])) }},
		{8, "secret", "a token in a record", at(kind(events.Asked), func(r *events.Record) { r.Cause = "xoxb-123-456-secret" })},
		{8, "value", "an answer in the clear", at(answered(events.Clarification, events.Released), func(r *events.Record) {
			for field := range r.Transition.Accepted[0].Values {
				r.Transition.Accepted[0].Values[field] = "42"
			}
		})},
		{8, "value", "an address in the clear", at(answered(events.Clarification, events.Released), func(r *events.Record) {
			r.Transition.Accepted[0].Responder.Subject = "luis@example.com"
		})},
		{8, "missing", "a transition was left out", func(all trail) trail {
			i := all.find(kind(events.Reached))
			if i < 0 || all.after(i) < 0 {
				return nil
			}
			return slices.Delete(slices.Clone(all), i, i+1)
		}},
		{8, "missing", "the first transition of a task was left out", func(all trail) trail {
			i := slices.IndexFunc(all, func(r events.Record) bool { return r.Transition != nil && r.After == 0 })
			if i < 0 || all.after(i) < 0 {
				return nil
			}
			return slices.Delete(slices.Clone(all), i, i+1)
		}},
		{8, "kind", "a kind there is not", at(kind(events.Reached), func(r *events.Record) { r.Transition.Kind = "paused" })},
		{8, "repeated", "one submission refused twice", func(all trail) trail {
			i := slices.IndexFunc(all, func(r events.Record) bool {
				return r.Refusal != nil && r.After != 0 && r.Refusal.Of == "answer"
			})
			if i < 0 {
				return nil
			}
			again := clone(all[i])
			out := all.insert(i, again)
			out[i+1].After = all[i].After
			return out
		}},
	}
}

func savedFaults() []fault {
	return []fault{
		{9, "high", "the log had been further", func(all trail) trail { all[5].High += 100; return all }},
		{9, "loss", "the log came back shorter", func(all trail) trail {
			lost := events.Record{
				Logged: events.Logged{Log: all[9].Log, High: all[9].Log, At: all[9].At}, Agent: events.AboutLog, Task: events.AboutLog,
				Entry: events.Entry{Loss: &events.Loss{Was: all[9].High + 50, Now: all[9].Log}},
			}
			return slices.Insert(slices.Clone(all), 10, lost)
		}},
		{9, "forgotten", "the log forgot a question that waited", func(all trail) trail {
			i := all.find(kind(events.Reached))
			if i < 0 || all.after(i) < 0 {
				return nil
			}
			all[all.after(i)].After = 0
			return all
		}},
		{9, "forgotten", "a refusal judged on nothing", instead(refusal(events.WrongKind), func(r *events.Record) { r.After = 0 })},
		{9, "lost", "an accepted answer is gone", at(func(t *events.Transition) bool { return t.Kind == events.Claimed && len(t.Accepted) > 0 },
			func(r *events.Record) { r.Transition.Accepted = nil })},
		{9, "lost", "an accepted answer changed", at(func(t *events.Transition) bool {
			return t.Kind == events.Claimed && len(t.Accepted) > 0 && len(t.Accepted[0].Values) > 0
		}, func(r *events.Record) {
			for field := range r.Transition.Accepted[0].Values {
				r.Transition.Accepted[0].Values[field] = other("x")
			}
		})},
		{9, "lost", "somebody was told of an answer that is not there", instead(refusal(events.WrongKind), func(r *events.Record) { r.Refusal.Reason = events.Duplicate })},
		{9, "lost", "somebody was told of another answer", instead(refusal(events.Duplicate), func(r *events.Record) { r.Refusal.AnsweredBy.Person = "eva" })},
		{9, "lost", "answered without an answer", at(answered(events.Clarification, events.Released), func(r *events.Record) { r.Transition.Accepted = nil })},
	}
}
