package events

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/big"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// MaxDepth is how deep JSON from outside may nest.
const MaxDepth = 32

const maxPlace = 120 // runes of a member's path in an error

// Raw is one JSON value as text.
type Raw = jsontext.Value

// Decode reads exactly one JSON value into v, strictly: duplicate members, unknown members, invalid UTF-8, trailing data,
// nesting deeper than [MaxDepth] and more than limit bytes are refused. The error names the place, never the value.
func Decode(data []byte, limit int, v any) error {
	if len(data) > limit {
		return invalid("body", "send less", "is %d bytes, the limit is %d", len(data), limit)
	}
	if err := checkDepth(data, depthOf(v)); err != nil {
		return err
	}
	err := json.Unmarshal(data, v, json.RejectUnknownMembers(true))
	if err == nil {
		return nil
	}
	if inv, ok := errors.AsType[*Invalid](err); ok {
		return inv
	}
	return jsonProblem(err)
}

// depthOf lets what the broker writes nest deeper than what it reads: it holds arguments, schemas and results that came from
// outside at up to [MaxDepth], a few levels further down.
func depthOf(v any) int {
	switch v.(type) {
	case *State, *Question, *ClaimReply, *StateReply, *QuestionReply, *ListReply, *OperatorReply:
		return 2 * MaxDepth
	}
	return MaxDepth
}

// checkDepth refuses what nests too deeply, before anything is made of it. It counts brackets; whether they match, and all
// else, the decoder says.
func checkDepth(data []byte, limit int) error {
	depth, text := 0, false
	for i := 0; i < len(data); i++ {
		switch c := data[i]; {
		case text && c == '\\':
			i++
		case c == '"':
			text = !text
		case text:
		case c == '{' || c == '[':
			if depth++; depth > limit {
				return tooDeep(data, limit)
			}
		case c == '}' || c == ']':
			depth--
		}
	}
	return nil
}

// tooDeep says where it is that data nests too deeply.
func tooDeep(data []byte, limit int) error {
	dec := jsontext.NewDecoder(bytes.NewReader(data))
	for dec.StackDepth() <= limit {
		if _, err := dec.ReadToken(); err != nil {
			return jsonProblem(err)
		}
	}
	return invalid("body", "flatten it", "nests deeper than %d levels at %s", limit, place(dec.StackPointer()))
}

// jsonProblem keeps where and what of a decoding error and drops the input it may quote.
func jsonProblem(err error) error {
	if syn, ok := errors.AsType[*jsontext.SyntacticError](err); ok {
		problem := "is not valid JSON at byte " + strconv.FormatInt(syn.ByteOffset, 10)
		if errors.Is(syn.Err, jsontext.ErrDuplicateName) {
			problem = "appears twice"
		}
		return &Invalid{Field: place(syn.JSONPointer), Problem: problem, Fix: "send one UTF-8 JSON value whose members are unique"}
	}
	if sem, ok := errors.AsType[*json.SemanticError](err); ok {
		if errors.Is(sem.Err, json.ErrUnknownName) {
			return &Invalid{Field: place(sem.JSONPointer), Problem: "is not a member this event has", Fix: "remove it or correct its name"}
		}
		return &Invalid{Field: place(sem.JSONPointer), Problem: fmt.Sprintf("cannot be this JSON %s", sem.JSONKind), Fix: "see the event's schema"}
	}
	return &Invalid{Field: "body", Problem: "is not valid JSON", Fix: "send one UTF-8 JSON value"}
}

// place names a member by its path. Names come from outside too: what cannot be printed is replaced, what is long is cut.
func place(p jsontext.Pointer) string {
	if p == "" {
		return "body"
	}
	path := []rune(strings.ReplaceAll(strings.TrimPrefix(string(p), "/"), "/", "."))
	if len(path) > maxPlace {
		path = append(path[:maxPlace], '…')
	}
	for i, r := range path {
		if !strconv.IsPrint(r) {
			path[i] = '?'
		}
	}
	return string(path)
}

// Canonical returns the one text of a JSON value that digests are made over: RFC 8785, except that numbers are exact
// decimals, since doubles would make 2^53 and 2^53+1 equal.
func Canonical(v Raw) (Raw, error) {
	var out bytes.Buffer
	enc := jsontext.NewEncoder(&out, jsontext.CanonicalizeRawInts(false), jsontext.CanonicalizeRawFloats(false))
	dec := jsontext.NewDecoder(bytes.NewReader(v))
	for {
		tok, err := dec.ReadToken()
		if errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return nil, jsonProblem(err)
		}
		if tok.Kind() == '0' {
			err = enc.WriteValue(Raw(exactDecimal(tok.String())))
		} else {
			err = enc.WriteToken(tok)
		}
		if err != nil {
			return nil, jsonProblem(err)
		}
	}
	sorted := Raw(bytes.TrimSpace(out.Bytes()))
	err := sorted.Format(jsontext.ReorderRawObjects(true), jsontext.CanonicalizeRawInts(false), jsontext.CanonicalizeRawFloats(false))
	return sorted, err
}

// exactDecimal writes a JSON number without redundant zeros or exponent forms, keeping every digit: 1.50e1 is 15.
func exactDecimal(s string) string {
	mantissa, exp, _ := strings.Cut(strings.ToLower(s), "e")
	neg := strings.HasPrefix(mantissa, "-")
	whole, frac, _ := strings.Cut(strings.TrimPrefix(mantissa, "-"), ".")
	power := new(big.Int)
	if exp != "" {
		power.SetString(strings.TrimPrefix(exp, "+"), 10)
	}
	power.Sub(power, big.NewInt(int64(len(frac))))
	digits := strings.TrimLeft(whole+frac, "0")
	trimmed := strings.TrimRight(digits, "0")
	power.Add(power, big.NewInt(int64(len(digits)-len(trimmed))))
	if trimmed == "" {
		return "0"
	}
	text := placePoint(trimmed, power)
	if neg {
		return "-" + text
	}
	return text
}

// placePoint writes digits × 10^power, plainly where ECMAScript would (RFC 8785 §3.2.2.3), else in scientific form.
func placePoint(digits string, power *big.Int) string {
	point := new(big.Int).Add(power, big.NewInt(int64(len(digits))))
	if n := point.Int64(); point.IsInt64() && n > -6 && n <= 21 {
		switch {
		case n <= 0:
			return "0." + strings.Repeat("0", int(-n)) + digits
		case int(n) >= len(digits):
			return digits + strings.Repeat("0", int(n)-len(digits))
		}
		return digits[:n] + "." + digits[n:]
	}
	exp := point.Sub(point, big.NewInt(1))
	sign := "+"
	if exp.Sign() < 0 {
		sign = ""
	}
	if len(digits) > 1 {
		digits = digits[:1] + "." + digits[1:]
	}
	return digits + "e" + sign + exp.String()
}
