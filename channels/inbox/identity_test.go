package inbox

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/clarify-broker/clarify/events"
)

func request(remote, host string, headers ...string) *http.Request {
	r := httptest.NewRequest(http.MethodGet, "/", nil)
	r.RemoteAddr, r.Host = remote, host
	for i := 0; i+1 < len(headers); i += 2 {
		r.Header.Add(headers[i], headers[i+1])
	}
	return r
}

func TestOSUser(t *testing.T) {
	who, err := Config{}.Visitors()
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		request *http.Request
		known   bool
	}{
		"loopback":                    {request("127.0.0.1:5555", "localhost:8080"), true},
		"loopback_by_address":         {request("127.0.0.1:5555", "127.0.0.1:8080"), true},
		"loopback_v6":                 {request("[::1]:5555", "[::1]:8080"), true},
		"loopback_mapped":             {request("[::ffff:127.0.0.1]:5555", "localhost"), true},
		"another_machine":             {request("192.168.1.7:5555", "localhost:8080"), false},
		"a_name_that_resolves_here":   {request("127.0.0.1:5555", "rebind.example.com:8080"), false},
		"a_name_that_only_looks_like": {request("127.0.0.1:5555", "localhost.example.com"), false},
		"passed_on_by_a_proxy":        {request("127.0.0.1:5555", "localhost", "X-Forwarded-For", "203.0.113.9"), false},
		"no_address":                  {request("@", "localhost"), false},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := who(c.request)
			if (err == nil) != c.known || c.known != (got.Subject != "") {
				t.Fatalf("got %+v, %v", got, err)
			}
			if !c.known && !errors.Is(err, ErrStranger) {
				t.Errorf("got %v", err)
			}
			if c.known && (got.Assurance != events.Platform || got.Channel != "inbox") {
				t.Errorf("got %+v", got)
			}
		})
	}
}

func TestTrustedHeader(t *testing.T) {
	who, err := Config{Header: "X-Forwarded-User", From: []string{"10.0.0.7/32"}}.Visitors()
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		request *http.Request
		want    string
	}{
		"from_the_proxy":       {request("10.0.0.7:1", "inbox.example.com", "X-Forwarded-User", "ana"), "ana"},
		"mapped":               {request("[::ffff:10.0.0.7]:1", "inbox.example.com", "X-Forwarded-User", "ana"), "ana"},
		"from_elsewhere":       {request("10.0.0.8:1", "inbox.example.com", "X-Forwarded-User", "ana"), ""},
		"from_loopback":        {request("127.0.0.1:1", "localhost", "X-Forwarded-User", "ana"), ""},
		"without_the_header":   {request("10.0.0.7:1", "inbox.example.com"), ""},
		"an_empty_header":      {request("10.0.0.7:1", "inbox.example.com", "X-Forwarded-User", " "), ""},
		"two_headers":          {request("10.0.0.7:1", "inbox.example.com", "X-Forwarded-User", "ana", "X-Forwarded-User", "root"), ""},
		"a_header_without_end": {request("10.0.0.7:1", "inbox.example.com", "X-Forwarded-User", strings.Repeat("a", 300)), ""},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := who(c.request)
			if got.Subject != c.want || (err == nil) != (c.want != "") {
				t.Fatalf("got %+v, %v", got, err)
			}
			if c.want != "" && got.Assurance != events.Login {
				t.Errorf("got %+v", got)
			}
		})
	}
}

func TestConfig(t *testing.T) {
	for name, c := range map[string]struct {
		config Config
		want   string
	}{
		"channel":          {Config{Channel: "a.b"}, "channel"},
		"base_unrooted":    {Config{Base: "inbox"}, "inbox.base"},
		"base_with_slash":  {Config{Base: "/inbox/"}, "inbox.base"},
		"base_with_brace":  {Config{Base: "/{x}"}, "inbox.base"},
		"zone":             {Config{Zone: "Mars/Olympus"}, "inbox.zone"},
		"header_unguarded": {Config{Header: "X-User"}, "needs inbox.from"},
		"from_unused":      {Config{From: []string{"10.0.0.7/32"}}, "inbox.header"},
		"from_no_cidr":     {Config{Header: "X-User", From: []string{"10.0.0.7"}}, "inbox.from[0]"},
		"from_everywhere":  {Config{Header: "X-User", From: []string{"0.0.0.0/0"}}, "inbox.from[0]"},
		"header_name":      {Config{Header: "X User", From: []string{"10.0.0.7/32"}}, "inbox.header"},
	} {
		t.Run(name, func(t *testing.T) {
			if err := c.config.Validate(); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
}
