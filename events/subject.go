package events

import (
	"fmt"
	"strconv"
	"strings"
)

// Space is the first token of every subject, so that several Clarifys can share an account.
type Space string

// DefaultSpace is used unless the configuration says otherwise.
const DefaultSpace Space = "clarify"

func (s Space) join(tokens ...string) string { return string(s) + "." + strings.Join(tokens, ".") }

func (v Version) token() string { return strconv.FormatUint(uint64(v), 10) }

// Candidate is where an agent proposes.
func (s Space) Candidate(a Agent, t Task) string { return s.join("candidate", string(a), string(t)) }

// Cancel is where an agent calls a task off.
func (s Space) Cancel(a Agent, t Task) string { return s.join("cancel", string(a), string(t)) }

// Task is the log's subject of one transition.
func (s Space) Task(a Agent, t Task, k Kind) string {
	return s.join("task", string(a), string(t), string(k))
}

// TaskAll matches all transitions of one task. It is the guard of every write about the task, the same text in every writer.
func (s Space) TaskAll(a Agent, t Task) string { return s.join("task", string(a), string(t), "*") }

// Refused is where a refusal of one submission or candidate is kept. The id is made a token.
func (s Space) Refused(a Agent, t Task, id string) string {
	return s.join("refused", string(a), string(t), TokenFor(id))
}

// RefusedAllOf matches every refusal of one task.
func (s Space) RefusedAllOf(a Agent, t Task) string {
	return s.join("refused", string(a), string(t), "*")
}

// RefusedAll matches every refusal.
func (s Space) RefusedAll() string { return s.join("refused", "*", "*", "*") }

// Timer is where a task's wake-up is armed; Due is where the server delivers it.
func (s Space) Timer(a Agent, t Task) string { return s.join("timer", string(a), string(t)) }

// Due is where the server delivers a task's wake-up.
func (s Space) Due(a Agent, t Task) string { return s.join("due", string(a), string(t)) }

// Wake is where waiters hear, without the body, that a task moved.
func (s Space) Wake(a Agent, t Task, k Kind) string {
	return s.join("wake", string(a), string(t), string(k))
}

// Place is one pause on one channel: the tokens that question, receipt, answer, approval, verdict and report subjects share.
type Place struct {
	Channel Channel
	Agent   Agent
	Task    Task
	Version Version
}

func (s Space) at(family string, p Place) string {
	return s.join(family, string(p.Channel), string(p.Agent), string(p.Task), p.Version.token())
}

// Question is where a channel is asked.
func (s Space) Question(p Place) string { return s.at("question", p) }

// Receipt is where a channel stores a delivery report when no broker answers Report.
func (s Space) Receipt(p Place) string { return s.at("receipt", p) }

// Answer is where a channel submits answers.
func (s Space) Answer(p Place) string { return s.at("answer", p) }

// Approval is where a channel submits approvals.
func (s Space) Approval(p Place) string { return s.at("approval", p) }

// Verdict is where a channel hears what became of a submission.
func (s Space) Verdict(p Place) string { return s.at("verdict", p) }

// Report is where a channel reports a delivery and waits until it is stored.
func (s Space) Report(p Place) string { return s.at("report", p) }

// Questions matches everything one channel is asked: the filter of its durable consumer.
func (s Space) Questions(c Channel) string { return s.join("question", string(c), "*", "*", "*") }

// Verdicts matches every verdict on the submissions of one channel.
func (s Space) Verdicts(c Channel) string { return s.join("verdict", string(c), "*", "*", "*") }

// Reports matches every Report subject.
func (s Space) Reports() string { return s.join("report", "*", "*", "*", "*") }

// AgentState is where an agent asks what became of a task.
func (s Space) AgentState(a Agent, t Task) string {
	return s.join("state", "agent", string(a), string(t))
}

// AdapterState is where a channel asks what became of a question.
func (s Space) AdapterState(c Channel, a Agent, t Task) string {
	return s.join("state", "adapter", string(c), string(a), string(t))
}

// Claim is where an executor claims a release.
func (s Space) Claim(a Agent, t Task) string { return s.join("claim", string(a), string(t)) }

// Effect is where an executor reports an outcome.
func (s Space) Effect(a Agent, t Task) string { return s.join("effect", string(a), string(t)) }

// Operator is where an operator asks for something about all tasks.
func (s Space) Operator(verb string) string { return s.join("operator", verb) }

// OperatorTask is where an operator asks for something about one task.
func (s Space) OperatorTask(verb string, a Agent, t Task) string {
	return s.join("operator", verb, string(a), string(t))
}

// Audit is where a task's audit records are.
func (s Space) Audit(a Agent, t Task) string { return s.join("audit", string(a), string(t)) }

// Subject is a subject taken apart. Members that its family does not have are zero.
type Subject struct {
	Family  string // candidate, task, answer, …: the token after the space
	Channel Channel
	Agent   Agent
	Task    Task
	Version Version
	Kind    Kind   // task and wake
	ID      string // refused: the token of the submission or candidate
	Verb    string // operator
	Role    string // state: agent or adapter
}

// Place returns the pause and channel a subject names.
func (s Subject) Place() Place { return Place{s.Channel, s.Agent, s.Task, s.Version} }

var shapes = map[string][]string{ //nolint:gochecknoglobals // the grammar, read only
	"candidate": {"agent", "task"}, "cancel": {"agent", "task"}, "timer": {"agent", "task"}, "due": {"agent", "task"},
	"claim": {"agent", "task"}, "effect": {"agent", "task"}, "audit": {"agent", "task"},
	"task": {"agent", "task", "kind"}, "wake": {"agent", "task", "kind"}, "refused": {"agent", "task", "id"},
	"question": {"channel", "agent", "task", "version"}, "receipt": {"channel", "agent", "task", "version"},
	"answer": {"channel", "agent", "task", "version"}, "approval": {"channel", "agent", "task", "version"},
	"verdict": {"channel", "agent", "task", "version"}, "report": {"channel", "agent", "task", "version"},
}

// Parse takes a subject of this space apart. Every token is checked; a wildcard, an empty or an over-long token is an error.
func (s Space) Parse(subject string) (Subject, error) {
	rest, ok := strings.CutPrefix(subject, string(s)+".")
	if !ok {
		return Subject{}, invalid("subject", "", "%.80q is not in space %q", subject, s)
	}
	tokens := strings.Split(rest, ".")
	out := Subject{Family: tokens[0]}
	shape := shapes[tokens[0]]
	switch {
	case tokens[0] == "state" && len(tokens) > 1 && tokens[1] == "agent":
		out.Role, tokens, shape = "agent", tokens[1:], []string{"agent", "task"}
	case tokens[0] == "state" && len(tokens) > 1 && tokens[1] == "adapter":
		out.Role, tokens, shape = "adapter", tokens[1:], []string{"channel", "agent", "task"}
	case tokens[0] == "operator" && len(tokens) > 1:
		tokens, shape = tokens[1:], []string{"agent", "task"}
		if out.Verb = tokens[0]; len(tokens) == 1 {
			shape = nil
		}
		if err := checkToken("verb", out.Verb, maxAgent); err != nil {
			return Subject{}, fmt.Errorf("subject: %w", err)
		}
	case shape == nil:
		return Subject{}, invalid("subject", "", "%.80q is of no known family", subject)
	}
	if len(tokens)-1 != len(shape) {
		return Subject{}, invalid("subject", "", "%.80q has %d tokens, its family has %d", subject, len(tokens)-1, len(shape))
	}
	for i, part := range shape {
		if err := out.set(part, tokens[i+1]); err != nil {
			return Subject{}, fmt.Errorf("subject: %w", err)
		}
	}
	return out, nil
}

func (s *Subject) set(part, tok string) (err error) {
	switch part {
	case "agent":
		s.Agent, err = ParseAgent(tok)
	case "task":
		s.Task, err = ParseTask(tok)
	case "channel":
		s.Channel, err = ParseChannel(tok)
	case "kind":
		s.Kind, err = Kind(tok), checkToken("kind", tok, maxAgent)
	case "id":
		s.ID, err = tok, checkToken("id", tok, maxTask)
	case "version":
		var n uint64
		n, err = strconv.ParseUint(tok, 10, 64)
		if err != nil || n == 0 || strconv.FormatUint(n, 10) != tok {
			return invalid("version", "use a number from 1", "%.40q is no version", tok)
		}
		s.Version = Version(n)
	}
	return err
}
