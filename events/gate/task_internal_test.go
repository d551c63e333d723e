package gate

import (
	"testing"

	"github.com/clarify-broker/clarify/events"
)

func TestChild(t *testing.T) {
	g := &Gate{agent: "crm-bot"}
	parent := g.Task("t-42")
	child := parent.Child("search: EU")
	if _, err := events.ParseTask(string(child.ID())); err != nil {
		t.Error(err)
	}
	if parent.Child("search: EU") != child {
		t.Error("one step has two children")
	}
	if again := (&Gate{agent: "crm-bot"}).Task("t-42").Child("search: EU"); again.ID() != child.ID() {
		t.Error("after a restart the same step has another child")
	}
	ids := map[events.Task]bool{
		parent.ID(): true, child.ID(): true, parent.Child("search: US").ID(): true,
		child.Child("search: EU").ID(): true, g.Task("t-43").Child("search: EU").ID(): true,
	}
	if len(ids) != 5 {
		t.Errorf("children collide: %v", ids)
	}
}
