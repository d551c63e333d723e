package policy

import (
	"github.com/clarify-broker/clarify/events"
)

// file is the whole of a policy file, in the words of its author. The keys are closed: anything else is a problem.
type file struct {
	APIVersion string   `yaml:"apiVersion,required" oneof:"clarify/v1" hint:"write apiVersion: clarify/v1"`
	Kind       string   `yaml:"kind,required" oneof:"Policy" hint:"write kind: Policy"`
	Metadata   metadata `yaml:"metadata,required"`
	Defaults   defaults `yaml:"defaults"`

	Trust   []trusted `yaml:"trust"`   // who may define tools and loosen decisions by annotations
	Catalog []listed  `yaml:"catalog"` // tools as MCP's tools/list shows them
	Classes []*class  `yaml:"classes"` // first match
	Tools   []*entry  `yaml:"tools"`   // first match
	people
}

// people is the part of a file about whom to ask, how, and what they see.
type people struct {
	Questions  questions       `yaml:"questions"`
	Routes     []*route        `yaml:"routes,required" hint:"say whom questions go to, such as [{to: [{channel: inbox, who: requester}], deadline: 30m}]"` // first match
	Unattended unattended      `yaml:"unattended,required" hint:"say what happens when nobody is there, such as {ask: stop, approve: stop}"`               // nobody is there: said explicitly or not at all
	Escalation escalation      `yaml:"escalation"`
	Redact     redact          `yaml:"redact"`
	Retention  events.Duration `yaml:"retention"` // of a task, once final
}

type metadata struct {
	Name    string `yaml:"name,required"`
	Version string `yaml:"version"`
}

// defaults is what holds where no line of the file says otherwise. There is no way to write "allow".
type defaults struct {
	UnknownTool   string `yaml:"unknownTool" oneof:"stop escalate"`
	Otherwise     string `yaml:"otherwise" oneof:"stop escalate"`
	OnPolicyError string `yaml:"onPolicyError" oneof:"stop"`

	Provenance        provenance `yaml:"provenance"`
	RequireProvenance []string   `yaml:"requireProvenance" oneof:"identity recipient resource effect plain"`
	EscalateTo        string     `yaml:"escalateTo"` // a person's id or role:<role>
	Approvers         []string   `yaml:"approvers"`  // of tools whose entry names none
}

// provenance says, per role, where a value may come from to count as known.
type provenance struct {
	Identity  []string `yaml:"identity" oneof:"user lookup record"`
	Recipient []string `yaml:"recipient" oneof:"user lookup record"`
	Resource  []string `yaml:"resource" oneof:"user lookup record default"`
	Effect    []string `yaml:"effect" oneof:"user lookup record default inferred"`
	Plain     []string `yaml:"plain" oneof:"user lookup record default inferred"`
}

// listed is one tool of the catalog.
type listed struct {
	Name        string   `yaml:"name,required"`
	Server      string   `yaml:"server"` // glob; any when empty
	Title       string   `yaml:"title"`
	Description string   `yaml:"description"`
	Annotations hints    `yaml:"annotations"`
	InputSchema jsonText `yaml:"inputSchema"`

	schema *schema
}

// hints are MCP's.
type hints struct {
	Title       string `yaml:"title"`
	ReadOnly    *bool  `yaml:"readOnlyHint"`
	Destructive *bool  `yaml:"destructiveHint"`
	Idempotent  *bool  `yaml:"idempotentHint"`
	OpenWorld   *bool  `yaml:"openWorldHint"`
}

// class is what a call of a kind of tool is worth.
type class struct {
	Name string    `yaml:"name,required"`
	When condition `yaml:"when"` // over tool and agent; always when empty
	worth
}

type worth struct {
	Consequence string `yaml:"consequence,required" oneof:"low high" hint:"say low or high"`
	Reversible  bool   `yaml:"reversible"`
	Approval    string `yaml:"approval" oneof:"none required"` // required when empty
	Idempotent  bool   `yaml:"idempotent"`
}

// entry is what the file says about the tools its globs match.
type entry struct {
	Match  string `yaml:"match,required"` // glob over the tool's name; a literal one also makes the tool known
	Server string `yaml:"server"`         // glob over the server's name; any when empty
	Decide string `yaml:"decide" oneof:"stop escalate"`
	To     string `yaml:"to"`
	Say    string `yaml:"say"`
	rules
	overrides
}

// rules is the part of an entry that says when its tools may run as proposed.
type rules struct {
	Fields    map[string]field `yaml:"fields"`
	Reconcile []*rule          `yaml:"reconcile"`
	Authority []*rule          `yaml:"authority"`
	Approval  approval         `yaml:"approval"`
}

// overrides is the part of an entry that takes the place of its tools' class.
type overrides struct {
	Class      *worth `yaml:"class"`
	Reversible *bool  `yaml:"reversible"`
	Idempotent *bool  `yaml:"idempotent"`
}

// field is what the file says about one argument of a tool.
type field struct {
	Role     events.Role   `yaml:"role" oneof:"identity recipient resource effect plain"`
	Ask      string        `yaml:"ask"` // the question
	Changes  string        `yaml:"changes" oneof:"objective authority evidence effect"`
	Default  *defaultValue `yaml:"default"`
	Lookup   string        `yaml:"lookup"`                        // a read tool the agent should try before a person is asked
	Secret   bool          `yaml:"secret"`                        // never shown again
	FreeText string        `yaml:"freeText" oneof:"always never"` // always, never, or (when empty) where there are no options
	MaxRunes int           `yaml:"maxRunes"`                      // of a typed answer
	Severity *float64      `yaml:"severity"`                      // what a wrong value costs; the class's when absent
}

type defaultValue struct {
	Value      jsonText `yaml:"value,required"`
	Documented string   `yaml:"documented,required" hint:"say where people can read what the default is"` // where it is written down
	Use        string   `yaml:"use" oneof:"now after-deadline"`
}

// rule is one line of reconcile or authority.
type rule struct {
	ID     string    `yaml:"id,required"`
	When   condition `yaml:"when,required"`
	Say    string    `yaml:"say"`
	Decide string    `yaml:"decide" oneof:"stop escalate"` // authority only
	To     string    `yaml:"to"`                           // authority only
}

type approval struct {
	From []string        `yaml:"from"` // person ids, role:<role>, requester, anyone
	Show []string        `yaml:"show"` // arguments to show; all when empty
	TTL  events.Duration `yaml:"ttl"`  // how long the question may wait
}

// questions are the limits of asking and the costs that choose among questions.
type questions struct {
	MaxPerTask     *int     `yaml:"maxPerTask"`
	MaxConsecutive *int     `yaml:"maxConsecutive"`
	MaxPerField    *int     `yaml:"maxPerField"`
	MaxOptions     *int     `yaml:"maxOptions"`
	Batch          *int     `yaml:"batch"`    // fields in one question, where they are independent
	StopCost       *float64 `yaml:"stopCost"` // what a stopped task costs, on the scale of severity
	Severity       severity `yaml:"severity"`
	Cost           costs    `yaml:"cost"`
}

type severity struct {
	Low  *float64 `yaml:"low"`
	High *float64 `yaml:"high"`
}

type costs struct {
	Base      *float64 `yaml:"base"`
	PerOption *float64 `yaml:"perOption"`
	Repeat    *float64 `yaml:"repeat"`
	Sensitive *float64 `yaml:"sensitive"`
}

// route is whom a question goes to.
type route struct {
	When condition `yaml:"when"` // over everything, and question; always when empty
	way
}

// way is how people are reached and what silence means.
type way struct {
	To            []step          `yaml:"to,required"`
	Deadline      events.Duration `yaml:"deadline"`
	Cap           events.Duration `yaml:"cap"`
	Remind        events.Duration `yaml:"remind"`
	AfterDeadline string          `yaml:"afterDeadline" oneof:"hold stop default escalate"` // stop when empty
}

// step is one target, or All targets together.
type step struct {
	Channel string          `yaml:"channel"`
	Who     string          `yaml:"who"`
	All     []target        `yaml:"all"`
	After   events.Duration `yaml:"after"`
}

type target struct {
	Channel string `yaml:"channel,required"`
	Who     string `yaml:"who,required"`
}

// unattended is what becomes of a question when the agent says nobody is there.
type unattended struct {
	Ask     string `yaml:"ask,required" oneof:"hold stop escalate"`
	Approve string `yaml:"approve,required" oneof:"hold stop escalate"`
}

type escalation struct {
	To    string `yaml:"to"` // the owner where no rule names one
	Route *way   `yaml:"route"`
}

type redact struct {
	Fields []string `yaml:"fields"` // globs over names of arguments, without regard to case
	Keep   string   `yaml:"keep" oneof:"last4 nothing"`
}
