package policy

import (
	"fmt"
	"slices"

	"github.com/clarify-broker/clarify/events"
)

func (l *linter) routes() {
	rest := -1 // the route that takes all that is left
	for i, w := range l.file.Routes {
		path := fmt.Sprintf("routes[%d]", i)
		if rest >= 0 {
			l.fail(path, "is never reached: routes[%d] has no condition", rest)
		} else if w.When.text == "" {
			rest = i
		}
		l.way(path, w.way)
	}
	if rest < 0 {
		l.fail("routes", "has no last resort; end it with a route without when")
	}
	if own := l.file.Escalation.Route; own != nil {
		l.way("escalation.route", *own)
		if own.AfterDeadline == "default" || own.AfterDeadline == "escalate" {
			l.fail("escalation.route.afterDeadline", "use hold or stop: the owner has the case, there is nobody further")
		}
		if l.owner() == "" {
			l.fail("escalation.route", "leads to nobody; name the owner in escalation.to")
		}
	}
}

func (l *linter) way(path string, w way) {
	if len(w.To) == 0 {
		l.fail(path+".to", "is empty; name at least one channel and who is asked there")
	}
	for i, s := range w.To {
		l.step(fmt.Sprintf("%s.to[%d]", path, i), s)
	}
	if w.Cap > 0 && w.Deadline > w.Cap {
		l.fail(path+".deadline", "is later than the cap")
	}
	if w.Remind > 0 && w.Deadline > 0 && w.Remind >= w.Deadline {
		l.fail(path+".remind", "is not before the deadline")
	}
	if w.AfterDeadline == "escalate" && l.owner() == "" {
		l.fail(path+".afterDeadline", "escalates to nobody; name the owner in defaults.escalateTo")
	}
}

func (l *linter) step(path string, s step) {
	one := s.Channel != "" || s.Who != ""
	if one == (len(s.All) > 0) {
		l.fail(path, "give either channel and who, or all with several of them")
		return
	}
	if one {
		l.target(path, s.Channel, s.Who)
	}
	for i, t := range s.All {
		l.target(fmt.Sprintf("%s.all[%d]", path, i), t.Channel, t.Who)
	}
}

func (l *linter) target(path, channel, who string) {
	if _, err := events.ParseChannel(channel); err != nil {
		l.fail(path+".channel", "name a channel: 1 to 64 letters, digits, _ and -")
	}
	if who == "" {
		l.fail(path+".who", "is missing: requester, anyone, owner, role:<role> or a person's id")
	}
	l.mention(path+".channel", Mention{Channel: channel})
	l.who(path+".who", who)
}

// afterDeadline checks that silence means the default only where some field has one that may be used.
func (l *linter) afterDeadline() {
	var late []string // defaults that wait for the deadline
	usable := false
	for i, e := range l.file.Tools {
		for name, f := range e.Fields {
			if f.Default == nil || l.irreversible(e) {
				continue
			}
			usable = true
			if f.Default.Use == "after-deadline" {
				late = append(late, join(fmt.Sprintf("tools[%d].fields", i), name))
			}
		}
	}
	waits := false
	for i, w := range l.file.Routes {
		if w.AfterDeadline != "default" {
			continue
		}
		waits = true
		if !usable {
			l.fail(fmt.Sprintf("routes[%d].afterDeadline", i), "no field of a reversible tool has a documented default")
		}
	}
	slices.Sort(late)
	for _, path := range late {
		if !waits {
			l.fail(path+".default.use", "is never used: no route says afterDeadline: default")
		}
	}
}
