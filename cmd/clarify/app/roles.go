package app

import (
	"fmt"
	"slices"
	"strings"

	"github.com/clarify-broker/clarify/events"
	"github.com/clarify-broker/clarify/events/bus"
)

// Who are those that get permissions of their own.
type Who struct{ Agents, Channels []string }

// Role is what one credential may do. Each has an inbox prefix of its own: whoever may hear another's inbox hears what the
// server and the broker answer there, task states with their values among it.
type Role struct {
	Name      string   `json:"name"`
	For       string   `json:"for"`
	Publish   []string `json:"publish"`
	Subscribe []string `json:"subscribe"`
	Responds  bool     `json:"allow_responses,omitzero"`
}

// Roles lists the broker's role, the operator's, the auditor's, and one for each agent and channel.
func Roles(s events.Space, who Who) ([]Role, error) {
	roles := []Role{brokerRole(s), operatorRole(s), auditorRole(s)}
	for _, name := range who.Agents {
		a, err := events.ParseAgent(name)
		if err != nil {
			return nil, err
		}
		roles = append(roles, agentRole(s, a))
	}
	for _, name := range who.Channels {
		c, err := events.ParseChannel(name)
		if err != nil {
			return nil, err
		}
		roles = append(roles, channelRole(s, c))
	}
	return roles, nil
}

// String is the role as a block of a nats-server configuration.
func (r Role) String() string {
	var out strings.Builder
	fmt.Fprintf(&out, "# %s\n%s: {\n", r.For, strings.ToUpper(strings.ReplaceAll(r.Name, "-", "_")))
	fmt.Fprintf(&out, "  publish: [\n%s  ]\n  subscribe: [\n%s  ]\n", quoted(r.Publish), quoted(r.Subscribe))
	if r.Responds {
		out.WriteString("  allow_responses: { max: 1, expires: \"1m\" }\n")
	}
	out.WriteString("}\n")
	return out.String()
}

func quoted(subjects []string) string {
	var out strings.Builder
	for _, s := range subjects {
		fmt.Fprintf(&out, "    %q\n", s)
	}
	return out.String()
}

// stream is a stream's name on the server.
func stream(s events.Space, role bus.Stream) string {
	return strings.ToUpper(string(s)) + "_" + string(role)
}

// brokerRole is everything of the space: only brokers may write the task log, its refusals and timers, and the audit.
func brokerRole(s events.Space) Role {
	all := string(s) + ".>"
	kv := "$KV." + strings.ToUpper(string(s)) + "_POLICY.>"
	return Role{
		Name: "broker", For: "brokers, with the channels that run in their process", Responds: true,
		Publish:   []string{all, kv, "$JS.API.>", "$JS.ACK.>", "$JS.FC.>", "$SYS.REQ.SERVER.PING.JSZ"},
		Subscribe: []string{all, "_INBOX.>"},
	}
}

// agentRole is one agent's: it is named by its subjects alone.
func agentRole(s events.Space, a events.Agent) Role {
	tasks, pool := stream(s, bus.Tasks), "pool-"+string(a)
	return Role{
		Name: "agent-" + string(a), For: "agent " + string(a) + " and its executors (inbox prefix _INBOX_" + string(a) + ")",
		Publish: []string{
			s.Candidate(a, "*"), s.Cancel(a, "*"), s.AgentState(a, "*"), s.Claim(a, "*"), s.Effect(a, "*"),
			"$JS.API.CONSUMER.INFO." + tasks + "." + pool, "$JS.API.CONSUMER.MSG.NEXT." + tasks + "." + pool, "$JS.ACK." + tasks + "." + pool + ".>",
		},
		Subscribe: []string{s.Wake(a, "*", "*"), "_INBOX_" + string(a) + ".>"},
	}
}

// everyPlace matches all subjects of a family on one channel.
func everyPlace(s events.Space, family string, c events.Channel) string {
	return string(s) + "." + family + "." + string(c) + ".*.*.*"
}

// answers are what a channel hands in and hears back.
func answers(s events.Space, c events.Channel) (publish, subscribe []string) {
	return []string{everyPlace(s, "answer", c), everyPlace(s, "approval", c), s.AdapterState(c, "*", "*")}, []string{s.Verdicts(c)}
}

// channelRole is one channel's: it is asked, reports deliveries, and hands answers in. For answers without approvals, leave
// the approval subject out.
func channelRole(s events.Space, c events.Channel) Role {
	publish, subscribe := answers(s, c)
	questions, durable := stream(s, bus.Questions), "channel-"+string(c)
	publish = append(publish, everyPlace(s, "receipt", c), everyPlace(s, "report", c),
		"$JS.API.CONSUMER.CREATE."+questions+"."+durable+"."+s.Questions(c), "$JS.API.CONSUMER.INFO."+questions+"."+durable,
		"$JS.API.CONSUMER.MSG.NEXT."+questions+"."+durable, "$JS.ACK."+questions+"."+durable+".>")
	return Role{
		Name: "channel-" + string(c), For: "channel " + string(c) + " (inbox prefix _INBOX_" + string(c) + ")",
		Publish: publish, Subscribe: append(subscribe, "_INBOX_"+string(c)+".>"),
	}
}

// reading is what reads the audit to its end.
func reading(s events.Space) []string {
	audit := stream(s, bus.Audit)
	return []string{
		"$JS.API.STREAM.INFO." + audit, "$JS.API.STREAM.MSG.GET." + audit, "$JS.API.CONSUMER.CREATE." + audit + ".>",
		"$JS.API.CONSUMER.INFO." + audit + ".>", "$JS.API.CONSUMER.DELETE." + audit + ".>", "$JS.API.CONSUMER.MSG.NEXT." + audit + ".>",
		"$JS.FC." + audit + ".>",
	}
}

// operatorRole is the command line's: lists, cancels, reconciliations, the freeze, answers by the channel cli, the audit.
func operatorRole(s events.Space) Role {
	publish, subscribe := answers(s, cliName)
	publish = append(publish, s.Operator("*"), s.OperatorTask("*", "*", "*"))
	return Role{
		Name: "operator", For: "operators, and people who answer on the command line (inbox prefix _INBOX_operator)",
		Publish: slices.Concat(publish, reading(s)), Subscribe: append(subscribe, "_INBOX_operator.>"),
	}
}

// auditorRole reads the audit and nothing else.
func auditorRole(s events.Space) Role {
	return Role{
		Name: "auditor", For: "auditors: they read the audit and change nothing (inbox prefix _INBOX_auditor)",
		Publish: reading(s), Subscribe: []string{"_INBOX_auditor.>"},
	}
}
