package broker

import (
	"slices"
	"strings"

	"github.com/clarify-broker/clarify/events"
)

// Anyone stands for whoever the channel lets in. It must be written out: an empty list of responders means nobody.
const Anyone = "anyone"

const (
	requester = "requester"
	owner     = "owner"
	role      = "role:"
	barred    = "not:" // prefix of a responder who may not answer although others like them may
)

// Directory knows people by one id each, with their roles and their addresses.
type Directory struct {
	People []Person `yaml:"people"`
}

// Person is somebody in the directory. Addresses are by channel; a channel verifies that a responder owns one of them.
type Person struct {
	ID        string            `yaml:"id"`
	Name      string            `yaml:"name"`
	Roles     []string          `yaml:"roles"`
	Addresses map[string]string `yaml:"addresses"`
}

// resolve returns who a route's target stands for. "anyone" is found and names nobody.
func (d Directory) resolve(who string, by *events.Requester, to string) (people []events.Person, found bool) {
	switch {
	case who == Anyone:
		return nil, true
	case who == owner && to != "":
		return d.resolve(to, by, "")
	case who == requester && by != nil:
		who = by.ID
	}
	roleName, isRole := strings.CutPrefix(who, role)
	for _, p := range d.People {
		if p.ID == who || isRole && slices.Contains(p.Roles, roleName) {
			people = append(people, events.Person{ID: p.ID, Name: p.Name, Addresses: p.Addresses})
		}
	}
	return people, len(people) > 0
}

func (d Directory) ids(who string, by *events.Requester, to string) []string {
	if who == Anyone {
		return []string{Anyone}
	}
	people, _ := d.resolve(who, by, to)
	ids := make([]string, 0, len(people))
	for _, p := range people {
		ids = append(ids, p.ID)
	}
	return ids
}

// responders are those the plan asks.
func (d Directory) responders(p events.Plan, by *events.Requester, to string) []string {
	ids := []string{}
	for _, step := range p.Route {
		for _, t := range step.Targets {
			ids = append(ids, d.ids(t.Who, by, to)...)
		}
	}
	return distinct(ids)
}

// approvers are those the decision names. Nobody approves their own request unless the policy names the requester.
func (d Directory) approvers(a events.Approve, by *events.Requester) []string {
	ids := []string{}
	for _, who := range a.From {
		ids = append(ids, d.ids(who, by, "")...)
	}
	if by != nil && !slices.Contains(a.From, requester) {
		ids = slices.DeleteFunc(ids, func(id string) bool { return id == by.ID })
		if len(ids) > 0 {
			ids = append(ids, barred+by.ID)
		}
	}
	return distinct(ids)
}

func (d Directory) owners(to string, by *events.Requester) []string {
	return distinct(d.ids(to, by, ""))
}

// bars reports that an entry of the responders bars somebody. How an agent spells a person is no way around it.
func bars(entry, id string) bool {
	who, is := strings.CutPrefix(entry, barred)
	return is && strings.EqualFold(strings.TrimSpace(who), strings.TrimSpace(id))
}

func distinct(ids []string) []string {
	slices.Sort(ids)
	return slices.Compact(ids)
}

// identify fills in the directory's id of a responder: the person who has the subject as address on that channel, or whose
// id it is where the channel itself logs people in.
func (d Directory) identify(r events.Responder) events.Responder {
	r.Person = ""
	for _, p := range d.People {
		owns := r.Subject != "" && p.Addresses[string(r.Channel)] == r.Subject
		if owns || r.Assurance == events.Login && p.ID == r.Subject {
			r.Person = p.ID
			if r.Name == "" {
				r.Name = p.Name
			}
		}
	}
	return r
}

// allowed reports whether a responder is among those who may answer. Nobody is, of an empty list, and nobody the channel
// cannot name.
func allowed(responders []string, r events.Responder) bool {
	if r.Subject == "" || slices.ContainsFunc(responders, func(id string) bool { return bars(id, r.Person) || bars(id, r.Subject) }) {
		return false
	}
	return slices.Contains(responders, Anyone) || r.Person != "" && slices.Contains(responders, r.Person)
}
