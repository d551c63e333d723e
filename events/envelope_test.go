package events_test

import (
	"errors"
	"maps"
	"net/url"
	"strings"
	"testing"

	"github.com/clarify-broker/clarify/events"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"
)

// timerData is the smallest data of an event that there is.
const timerData = `{"agent":"a","task":"t","due":"2026-12-01T14:00:00Z"}`

// timerEvent is a structured event whose attributes are changed as given; "" takes one away.
func timerEvent(change map[string]string) []byte {
	members := map[string]jsontext.Value{
		"specversion": jsontext.Value(`"1.0"`), "id": jsontext.Value(`"e1"`), "source": jsontext.Value(`"/clarify/b1"`),
		"type": jsontext.Value(`"dev.clarify.timer.due.v1"`), "data": jsontext.Value(timerData),
	}
	for name, text := range change {
		members[name] = jsontext.Value(text)
		if text == "" {
			delete(members, name)
		}
	}
	text, err := json.Marshal(members, json.Deterministic(true))
	if err != nil {
		panic(err)
	}
	return text
}

func timerHeader(change map[string]string) map[string][]string {
	header := map[string][]string{"ce-specversion": {"1.0"}, "ce-id": {"e1"}, "ce-source": {"/clarify/b1"}, "ce-type": {"dev.clarify.timer.due.v1"}}
	for name, text := range change {
		header[name] = []string{text}
		if text == "" {
			delete(header, name)
		}
	}
	return header
}

func TestSealAndOpen(t *testing.T) {
	for _, name := range events.Types() {
		t.Run(name, func(t *testing.T) {
			want := events.Envelope{ID: "e1", Source: "/clarify/b1", Time: storyTime(5), TraceParent: "00-1-2-01", Data: storyEvents()[name]}
			body, err := events.Seal(want)
			if err != nil {
				t.Fatal(err)
			}
			got, err := events.Open(structured(), body)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("structured (-sealed +opened):\n%s", diff)
			}
			header, data := binary(t, body)
			got, err = events.Open(header, data)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("binary (-sealed +opened):\n%s", diff)
			}
		})
	}
}

// binary turns a structured event into binary mode, as any CloudEvents library with a NATS binding would.
func binary(t *testing.T, body []byte) (map[string][]string, []byte) {
	t.Helper()
	var members map[string]jsontext.Value
	if err := json.Unmarshal(body, &members); err != nil {
		t.Fatal(err)
	}
	header := map[string][]string{}
	for name, raw := range members {
		var text string
		if name == "data" {
			continue
		}
		if err := json.Unmarshal(raw, &text); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		header["ce-"+name] = []string{percent(text)}
	}
	return header, members["data"]
}

// percent encodes as the CloudEvents NATS binding says: space, the double quote, the percent sign and all but printable ASCII.
func percent(text string) string { return strings.ReplaceAll(url.QueryEscape(text), "+", "%20") }

func TestSealSaysWhatSubscribersFilterOn(t *testing.T) {
	body, err := events.Seal(events.Envelope{Source: "/agents/crm-bot", TraceParent: "00-1-2-01", Data: storyCandidate()})
	if err != nil {
		t.Fatal(err)
	}
	var got struct {
		Subject     string `json:"subject"`
		Taskid      string `json:"taskid"`
		Version     string `json:"stateversion"`
		TraceParent string `json:"traceparent"`
		ContentType string `json:"datacontenttype"`
		ID          string `json:"id"`
	}
	if err := json.Unmarshal(body, &got); err != nil {
		t.Fatal(err)
	}
	if len(got.ID) != 26 {
		t.Errorf("id %q is no ULID", got.ID)
	}
	got.ID = ""
	want := got
	want.Subject, want.Taskid, want.Version, want.TraceParent, want.ContentType = "crm-bot/t-42", "t-42", "7", "00-1-2-01", "application/json"
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestSealRefuses(t *testing.T) {
	noDecision := storyAsk()
	noDecision.Decision = events.Decided{}
	for name, e := range map[string]events.Envelope{
		"no_event":         {Source: "/a", Data: "text"},
		"nothing":          {Source: "/a"},
		"a_pointer":        {Source: "/a", Data: new(storyCandidate())},
		"a_reply":          {Source: "/a", Data: events.ClaimReply{}},
		"an_unknown_kind":  {Source: "/a", Data: events.State{Kind: "bogus"}},
		"an_unknown_phase": {Source: "/a", Data: events.Question{Phase: "bogus"}},
		"no_source":        {Data: storyAnswer()},
		"no_decision":      {Source: "/a", Data: noDecision},
		"invalid_utf8":     {Source: "/a", Data: events.CancelRequest{Agent: "a", Task: "t", Version: 1, Reason: "\xff"}},
		"a_broken_value":   {Source: "/a", Data: events.Answer{Values: []events.Given{{Field: "f", Value: events.NewSecret(events.Raw("{" + canary))}}}},
	} {
		t.Run(name, func(t *testing.T) {
			body, err := events.Seal(e)
			if err == nil {
				t.Fatalf("sealed: %s", body)
			}
			if strings.Contains(err.Error(), canary) {
				t.Errorf("quotes a value: %v", err)
			}
		})
	}
}

func TestOpenTakes(t *testing.T) {
	want := events.Envelope{ID: "e1", Source: "/clarify/b1", Data: events.Timer{Agent: "a", Task: "t", Due: storyTime(0)}}
	spanish := want
	spanish.ID = "¿qué? 100 % «ñandú»"
	traced := want
	traced.TraceParent = "00-1-2-01"
	for name, test := range map[string]struct {
		header map[string][]string
		body   []byte
		want   events.Envelope
	}{
		"structured":                   {structured(), timerEvent(nil), want},
		"content_type_in_capitals":     {map[string][]string{"CONTENT-TYPE": {"Application/CloudEvents+JSON; charset=UTF-8"}}, timerEvent(nil), want},
		"extensions_of_others":         {structured(), timerEvent(map[string]string{"traceparent": `"00-1-2-01"`, "tenant": `"x"`, "hot": "true", "size": "-7", "none": "null"}), traced},
		"time_of_a_zone":               {structured(), timerEvent(map[string]string{"time": "null", "datacontenttype": `"application/json; charset=utf-8"`}), want},
		"base64":                       {structured(), timerEvent(map[string]string{"data": "", "data_base64": `"eyJhZ2VudCI6ImEiLCJ0YXNrIjoidCIsImR1ZSI6IjIwMjYtMTItMDFUMTQ6MDA6MDBaIn0="`}), want},
		"binary":                       {timerHeader(nil), []byte(timerData), want},
		"binary_in_capitals":           {map[string][]string{"Ce-SpecVersion": {"1.0"}, "CE-ID": {"e1"}, "cE-source": {"/clarify/b1"}, "Ce-Type": {"dev.clarify.timer.due.v1"}}, []byte(timerData), want},
		"binary_with_extensions":       {timerHeader(map[string]string{"ce-traceparent": "00-1-2-01", "ce-tenant": "x"}), []byte(timerData), traced},
		"binary_beside_a_content_type": {timerHeader(map[string]string{"Content-Type": "application/json"}), []byte(timerData), want},
		"percent_encoded":              {timerHeader(map[string]string{"ce-id": percent(spanish.ID)}), []byte(timerData), spanish},
		"raw_utf8":                     {timerHeader(map[string]string{"ce-id": "¿qué? 100 %25 «ñandú»"}), []byte(timerData), spanish},
		"headers_of_the_server":        {timerHeader(map[string]string{"Nats-Msg-Id": "other", "Nats-Expected-Last-Sequence": "9", "Nats-Schedule": "@every 1s"}), []byte(timerData), want},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := events.Open(test.header, test.body)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestOpenRefuses(t *testing.T) {
	type input struct {
		header map[string][]string
		body   []byte
		field  string
	}
	inputs := map[string]input{
		"no_header":             {nil, timerEvent(nil), "content-type"},
		"plain_json":            {map[string][]string{"Content-Type": {"application/json"}}, timerEvent(nil), "content-type"},
		"a_batch":               {map[string][]string{"Content-Type": {"application/cloudevents-batch+json"}}, timerEvent(nil), "content-type"},
		"another_format":        {map[string][]string{"Content-Type": {"application/cloudevents+avro"}}, timerEvent(nil), "content-type"},
		"two_events":            {structured(), append(timerEvent(nil), timerEvent(nil)...), "body"},
		"text_behind":           {structured(), append(timerEvent(nil), "x"...), "body"},
		"not_json":              {structured(), []byte(canary), "body"},
		"a_list":                {structured(), []byte(`[]`), "body"},
		"an_attribute_twice":    {structured(), []byte(`{"specversion":"1.0","id":"` + canary + `","id":"b"}`), "id"},
		"twice_by_escape":       {structured(), []byte(`{"specversion":"1.0","id":"` + canary + `","\u0069d":"b"}`), "id"},
		"data_twice":            {structured(), timerEvent(map[string]string{"data_base64": `"e30="`}), "data_base64"},
		"data_too_deep":         {structured(), timerEvent(map[string]string{"data": nested(33)}), "body"},
		"far_too_deep":          {structured(), timerEvent(map[string]string{"other": nested(100)}), "body"},
		"unknown_in_data":       {structured(), timerEvent(map[string]string{"data": `{"agent":"a","` + "x" + `":"` + canary + `"}`}), "x"},
		"duplicate_in_data":     {structured(), []byte(`{"specversion":"1.0","data":{"agent":"` + canary + `","agent":"b"}}`), "data.agent"},
		"binary_header_twice":   {map[string][]string{"ce-specversion": {"1.0"}, "ce-id": {"a", "b"}}, []byte(timerData), "ce-id"},
		"binary_header_by_case": {map[string][]string{"ce-specversion": {"1.0"}, "ce-id": {"a"}, "CE-ID": {"a"}}, []byte(timerData), "ce-id"},
		"bad_percent":           {timerHeader(map[string]string{"ce-id": canary + "%zz"}), []byte(timerData), "ce-id"},
		"percent_to_bad_utf8":   {timerHeader(map[string]string{"ce-id": "%ff"}), []byte(timerData), "id"},
		"percent_to_control":    {timerHeader(map[string]string{"ce-id": "a%0ab"}), []byte(timerData), "id"},
		"binary_without_body":   {timerHeader(nil), nil, "body"},
		"binary_unknown_member": {timerHeader(nil), []byte(`{"x":"` + canary + `"}`), "x"},
	}
	for name, change := range map[string][2]string{
		"no_specversion": {"specversion", ""}, "specversion_0_3": {"specversion", `"0.3"`}, "specversion_as_number": {"specversion", "1.0"},
		"no_id": {"id", ""}, "empty_id": {"id", `""`}, "id_as_number": {"id", "5"}, "null_id": {"id", "null"}, "long_id": {"id", `"` + strings.Repeat("x", 257) + `"`},
		"control_in_id": {"id", `"a\u0000b"`}, "no_source": {"source", ""}, "bad_source": {"source", `"%zz"`}, "no_type": {"type", ""}, "bad_time": {"time", `"yesterday"`},
		"unknown_type": {"type", `"dev.clarify.task.bogus.v1"`}, "another_prefix": {"type", `"com.example.timer.due.v1"`}, "another_version": {"type", `"dev.clarify.timer.due.v2"`},
		"xml": {"datacontenttype", `"text/xml"`}, "bad_media_type": {"datacontenttype", `";"`},
		"no_data": {"data", ""}, "null_data": {"data", "null"}, "data_as_text": {"data", `"{}"`},
		"base64_as_number": {"data_base64", "5"}, "base64_broken": {"data_base64", `"*"`}, "base64_empty_list": {"data_base64", "[]"},
		"extension_as_object": {"tenant", "{}"}, "extension_in_capitals": {"TraceParent", `"x"`}, "extension_without_a_name": {"", `"x"`}, "id_in_capitals": {"ID", `"x"`},
	} {
		inputs[name] = input{structured(), timerEvent(map[string]string{change[0]: change[1]}), ""}
	}
	for name, in := range inputs {
		t.Run(name, func(t *testing.T) {
			got, err := events.Open(in.header, in.body)
			inv, ok := errors.AsType[*events.Invalid](err)
			if !ok {
				t.Fatalf("got %+v, %v", got, err)
			}
			if in.field != "" && inv.Field != in.field {
				t.Errorf("blames %s, want %s", inv.Field, in.field)
			}
			if strings.Contains(err.Error(), canary) || len(err.Error()) > 700 {
				t.Errorf("quotes the input: %v", err)
			}
		})
	}
}

// TestOpenIsDeterministic: the order of a map of headers decides nothing.
func TestOpenIsDeterministic(t *testing.T) {
	header := timerHeader(map[string]string{"ce-time": "x", "Content-Type": "application/json"})
	first, firstErr := events.Open(header, []byte(timerData))
	for range 50 {
		again, err := events.Open(maps.Clone(header), []byte(timerData))
		if diff := cmp.Diff(first, again); diff != "" || err.Error() != firstErr.Error() {
			t.Fatalf("%v then %v %s", firstErr, err, diff)
		}
	}
}

// TestOpenNamesTheEventItCannotRead, so that its refusal can be told to somebody.
func TestOpenNamesTheEventItCannotRead(t *testing.T) {
	got, err := events.Open(structured(), timerEvent(map[string]string{"data": `{"x":1}`}))
	if err == nil || got.ID != "e1" || got.Source != "/clarify/b1" {
		t.Errorf("got %+v, %v", got, err)
	}
}
