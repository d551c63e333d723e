package gate

import (
	"errors"
	"strings"
	"testing"

	"github.com/clarify-broker/clarify/events"
)

func proposal() events.Candidate {
	return events.Candidate{
		Task: "t-42", Step: "update-record", Tool: events.Tool{Name: "crm.update_record", Server: "mcp://crm"},
		Arguments: events.Arguments{"customer_id": events.SecretOf("c-207"), "phone": events.SecretOf("+34 600 000 000")},
	}
}

func TestComplete(t *testing.T) {
	g := &Gate{agent: "crm-bot"}
	for name, tt := range map[string]struct {
		change func(*events.Candidate)
		field  string
	}{
		"no_task":            {func(c *events.Candidate) { c.Task = "" }, "task"},
		"task_with_a_dot":    {func(c *events.Candidate) { c.Task = "a.b" }, "task"},
		"other_agent":        {func(c *events.Candidate) { c.Agent = "other" }, "agent"},
		"no_step":            {func(c *events.Candidate) { c.Step = "" }, "step"},
		"no_arguments":       {func(c *events.Candidate) { c.Arguments = nil }, "arguments"},
		"argument_not_json":  {func(c *events.Candidate) { c.Arguments["x"] = events.NewSecret([]byte("nope")) }, "arguments.x"},
		"member_given_twice": {func(c *events.Candidate) { c.Arguments["x"] = events.NewSecret([]byte(`{"a":1,"a":2}`)) }, "arguments.x"},
		"over_128_KiB":       {func(c *events.Candidate) { c.Arguments["x"] = events.SecretOf(strings.Repeat("a", 129<<10)) }, "body"},
		"nests_over_32_deep": {func(c *events.Candidate) {
			c.Arguments["x"] = events.NewSecret([]byte(strings.Repeat("[", 40) + strings.Repeat("]", 40)))
		}, "body"},
		"alternative_no_json": {func(c *events.Candidate) {
			c.Candidates = []events.Alternative{{Arguments: events.Arguments{"x": events.NewSecret([]byte("{"))}}}
		}, "candidates.0.x"},
	} {
		t.Run(name, func(t *testing.T) {
			c := proposal()
			tt.change(&c)
			_, err := g.complete(c)
			if inv, ok := errors.AsType[*events.Invalid](err); !ok || inv.Field != tt.field {
				t.Errorf("got %v, want an Invalid about %s", err, tt.field)
			}
		})
	}
}

func TestComplete_names_the_same_call_the_same(t *testing.T) {
	g := &Gate{agent: "crm-bot"}
	id := func(change func(*events.Candidate)) string {
		c := proposal()
		change(&c)
		c, err := g.complete(c)
		if err != nil {
			t.Fatal(err)
		}
		return c.ID
	}
	same := func(*events.Candidate) {}
	if a, b := id(same), id(same); a != b {
		t.Errorf("one call is named %s and %s", a, b)
	}
	if a, b := id(same), id(func(c *events.Candidate) { c.Arguments["phone"] = events.SecretOf("1") }); a == b {
		t.Errorf("two calls are both named %s", a)
	}
	if got := id(func(c *events.Candidate) { c.Version = 7 }); got != "t-42:update-record:7" {
		t.Errorf("got %s", got)
	}
	if got := id(func(c *events.Candidate) { c.ID = "mine" }); got != "mine" {
		t.Errorf("got %s", got)
	}
	long := id(func(c *events.Candidate) {
		c.Task, c.Step = events.Task(strings.Repeat("t", 128)), strings.Repeat("s. ", 80)
	})
	if len(long) > 256 {
		t.Errorf("an id of %d bytes would be refused", len(long))
	}
}
