package events

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
)

// Agent is who proposes actions. It comes from the credential (the subject it may publish on), never from a payload.
type Agent string

// Task is one line of execution of an agent, with one current step.
type Task string

// Channel is a way to reach people: the name of a configured adapter.
type Channel string

// Version is a task's state version. It only grows; (task, version) names exactly one pause.
type Version uint64

// QuestionID is the ULID a pause gets when it is made.
type QuestionID string

// SubmissionID names one submission of a person: unguessable, and the same when a provider delivers the same click again.
type SubmissionID string

// maxVersion leaves room for every pause that can follow, and survives clients that hold numbers as doubles.
const maxVersion = 1 << 53

const (
	maxAgent = 64
	maxTask  = 128
)

// isToken reports that s is ^[A-Za-z0-9_][A-Za-z0-9_-]{0,127}$.
func isToken(s string) bool {
	for i := range len(s) {
		switch c := s[i]; {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', c == '_', c == '-' && i > 0:
		default:
			return false
		}
	}
	return s != "" && len(s) <= maxTask
}

// Invalid says which member of an input is wrong, what is wrong with it, and how to mend it.
type Invalid struct {
	Field   string
	Problem string
	Fix     string
}

func (e *Invalid) Error() string {
	if e.Fix == "" {
		return e.Field + ": " + e.Problem
	}
	return e.Field + ": " + e.Problem + "; " + e.Fix
}

func invalid(field, fix, problem string, args ...any) error {
	return &Invalid{Field: field, Problem: fmt.Sprintf(problem, args...), Fix: fix}
}

// ParseAgent accepts a token of at most 64 characters. The error is an [*Invalid].
func ParseAgent(s string) (Agent, error) { return Agent(s), checkToken("agent", s, maxAgent) }

// ParseTask accepts a token of at most 128 characters. A dot, * or > in it would change the subject it stands in, and so
// what its holder may do: it is refused, never rewritten. The error is an [*Invalid].
func ParseTask(s string) (Task, error) { return Task(s), checkToken("task", s, maxTask) }

// ParseChannel accepts a token of at most 64 characters. The error is an [*Invalid].
func ParseChannel(s string) (Channel, error) { return Channel(s), checkToken("channel", s, maxAgent) }

// ParseSubmission accepts a token of at most 128 characters. The error is an [*Invalid].
func ParseSubmission(s string) (SubmissionID, error) {
	return SubmissionID(s), checkToken("submission", s, maxTask)
}

func checkToken(field, s string, limit int) error {
	const fix = "use 1 to %d letters, digits, _ and - that do not start with -"
	switch {
	case s == "":
		return invalid(field, fmt.Sprintf(fix, limit), "is empty")
	case len(s) > limit:
		return invalid(field, fmt.Sprintf(fix, limit), "is %d characters long", len(s))
	case !isToken(s):
		return invalid(field, fmt.Sprintf(fix, limit)+" (events.TokenFor derives one)", "%.80q is not a token", s)
	}
	return nil
}

// TokenFor derives a token from any string, for frameworks whose ids contain dots or colons: what is legal in it, then a
// hash of the whole, so that different strings give different tokens. A string that already is a token of at most 64
// characters is returned as it is.
func TokenFor(s string) string {
	if len(s) <= maxAgent && isToken(s) {
		return s
	}
	keep := strings.Map(func(r rune) rune {
		if r < 128 && isToken(string(r)) {
			return r
		}
		return '_'
	}, s)
	if keep == "" {
		keep = "_"
	}
	sum := sha256.Sum256([]byte(s))
	return keep[:min(len(keep), 40)] + "-" + hex.EncodeToString(sum[:10])
}

// NewQuestionID makes a question's id. It is made once, when the pause is made.
func NewQuestionID() QuestionID { return QuestionID(NewID()) }

// NewSubmissionID makes an unguessable submission id of 130 random bits, for surfaces whose provider has none of its own.
func NewSubmissionID() SubmissionID { return SubmissionID(rand.Text()) }
