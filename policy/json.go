package policy

import (
	"bytes"
	stdjson "encoding/json"
	"errors"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"cel.dev/cel-go/common/types/traits"
	"github.com/clarify-broker/clarify/events"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// errNumber is returned for numbers whose exact value would fill the memory: 1e999999999 is ten bytes of JSON.
var errNumber = errors.New("a number has more than 400 digits")

const maxDigits = 400

// decode turns JSON into what the schema validator takes: maps, slices, strings, bools, nil, and numbers as their text.
func decode(raw events.Raw) (any, error) {
	if len(raw) == 0 {
		return nil, nil
	}
	if raw[0] == '"' && bytes.IndexByte(raw[1:], '"') == len(raw)-2 && bytes.IndexByte(raw, '\\') < 0 && utf8.Valid(raw) {
		return string(raw[1 : len(raw)-1]), nil // most arguments: a string without escapes
	}
	return decodeNext(jsontext.NewDecoder(bytes.NewReader(raw)))
}

func decodeNext(dec *jsontext.Decoder) (any, error) {
	tok, err := dec.ReadToken()
	if err != nil {
		return nil, err
	}
	switch tok.Kind() {
	case '{':
		m := map[string]any{}
		for dec.PeekKind() != '}' {
			name, err := dec.ReadToken()
			if err != nil {
				return nil, err
			}
			key := name.String()
			if m[key], err = decodeNext(dec); err != nil {
				return nil, err
			}
		}
		_, err = dec.ReadToken()
		return m, err
	case '[':
		list := []any{}
		for dec.PeekKind() != ']' {
			v, err := decodeNext(dec)
			if err != nil {
				return nil, err
			}
			list = append(list, v)
		}
		_, err = dec.ReadToken()
		return list, err
	case '"':
		return tok.String(), nil
	case '0':
		return number(tok.String())
	case 't', 'f':
		return tok.Kind() == 't', nil
	}
	return nil, nil
}

func number(text string) (any, error) {
	mantissa, exp, _ := strings.Cut(strings.ToLower(text), "e")
	if len(mantissa) > maxDigits {
		return nil, errNumber
	}
	if exp != "" {
		if n, err := strconv.Atoi(exp); err != nil || n > maxDigits || n < -maxDigits {
			return nil, errNumber
		}
	}
	return stdjson.Number(text), nil
}

// encode is the inverse of decode, members in order of name.
func encode(v any) events.Raw {
	raw, err := json.Marshal(v, json.Deterministic(true), json.WithMarshalers(json.MarshalToFunc(
		func(enc *jsontext.Encoder, n stdjson.Number) error { return enc.WriteValue(events.Raw(n)) })))
	if err != nil {
		panic("policy: a value that was decoded has no JSON form")
	}
	return raw
}

// celValue turns a decoded value into CEL's. Whole numbers that fit are int, the rest double, as a reader of JSON expects.
func celValue(v any) ref.Val {
	switch v := v.(type) {
	case map[string]any:
		return celMap(v)
	case []any:
		list := make([]ref.Val, len(v))
		for i, item := range v {
			list[i] = celValue(item)
		}
		return types.NewRefValList(types.DefaultTypeAdapter, list)
	case string:
		return types.String(v)
	case bool:
		return types.Bool(v)
	case stdjson.Number:
		if i, err := v.Int64(); err == nil {
			return types.Int(i)
		}
		f, err := v.Float64()
		if err != nil {
			return types.NewErr("a number is out of range")
		}
		return types.Double(f)
	}
	return types.NullValue
}

// orderedMap is a CEL map that is walked in order of its keys: Go's own order would make the cost of a comprehension, and
// with it a decision at the limit, a matter of luck.
type orderedMap struct {
	traits.Mapper
	keys []string
}

func celMap(m map[string]any) ref.Val {
	values := make(map[string]any, len(m))
	keys := make([]string, 0, len(m))
	for k, v := range m {
		values[k] = celValue(v)
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return orderedMap{types.NewStringInterfaceMap(types.DefaultTypeAdapter, values), keys}
}

// Iterator walks the keys in order.
func (m orderedMap) Iterator() traits.Iterator {
	return types.NewStringList(types.DefaultTypeAdapter, m.keys).Iterator()
}
