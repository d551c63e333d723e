package main

import (
	"errors"
	"fmt"

	"github.com/clarify-broker/clarify/cmd/clarify/app"
	"github.com/clarify-broker/clarify/policy"
)

// problem is one thing wrong with a file, as a program reads it.
type problem struct {
	File     string   `json:"file"`
	Line     int      `json:"line"`
	Column   int      `json:"column"`
	Path     string   `json:"path,omitzero"`
	Severity severity `json:"severity"`
	Message  string   `json:"message"`
}

type severity string

const (
	wrong   severity = "error"   // the file cannot be used
	unmeant severity = "warning" // it can, and says what was probably not meant
)

// problemsOf are the problems that an error holds. An error without places is one of the whole file.
func problemsOf(file string, err error) []problem {
	var out []problem
	if all, is := errors.AsType[app.Problems](err); is {
		for _, p := range all {
			out = append(out, placed(p, wrong))
		}
		return out
	}
	if all, is := errors.AsType[policy.Problems](err); is {
		for _, p := range all {
			out = append(out, placed(app.Problem(p), wrong))
		}
		return out
	}
	return []problem{{File: file, Line: 1, Column: 1, Severity: wrong, Message: err.Error()}}
}

func placed(p app.Problem, s severity) problem {
	return problem{p.File, p.Line, p.Column, p.Path, s, p.Text}
}

// warnings are what the author of a policy file probably did not mean.
func warnings(p *policy.Policy) []app.Problem {
	var out []app.Problem
	for _, w := range p.Warnings() {
		out = append(out, app.Problem(w))
	}
	return out
}

// warn is the warnings among the problems of a program, or lines on standard error for people.
func (t *terminal) warn(all []app.Problem) []problem {
	var out []problem
	for _, w := range all {
		if t.format == text {
			fmt.Fprintln(t.err, "warning:", w)
		}
		out = append(out, placed(w, unmeant))
	}
	return out
}

// judged writes what a check found where a program reads, and ends with the check's error.
func (t *terminal) judged(found []problem, err error) error {
	if t.format == text {
		return err
	}
	if found == nil {
		found = []problem{}
	}
	return errors.Join(list(t, found, "", func(problem) string { return "" }, ""), err)
}
