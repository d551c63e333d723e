package webhook

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/clarify-broker/clarify/channels"
	"github.com/clarify-broker/clarify/channels/channeltest"
	"github.com/clarify-broker/clarify/events"
)

func question(e *Endpoint) events.Question {
	return channeltest.Question(channeltest.Provider{Adapter: e}, events.PhaseAsk)
}

// The vector of the Standard Webhooks specification and its libraries.
func TestSignatureVector(t *testing.T) {
	keys, err := parseSecrets([]string{"whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"})
	if err != nil {
		t.Fatal(err)
	}
	h := http.Header{}
	at := time.Unix(1614265330, 0)
	body := []byte(`{"test": 2432232314}`)
	sign(h, keys, "msg_p5jXN8AQM9LWM0D4loKWxJek", at, body)
	if got, want := h.Get("webhook-signature"), "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if id, err := verify(h, keys, at, body); err != nil || id != "msg_p5jXN8AQM9LWM0D4loKWxJek" {
		t.Errorf("got %q, %v", id, err)
	}
}

func TestVerify(t *testing.T) {
	both, _ := parseSecrets([]string{secretNew, secretOld})
	body, now := []byte(`{"a":1}`), time.Unix(1_800_000_000, 0)
	signed := func(change func(http.Header)) http.Header {
		h := http.Header{}
		sign(h, both[:1], "msg-1", now, body)
		change(h)
		return h
	}
	for name, c := range map[string]struct {
		change func(http.Header)
		keys   [][]byte
		now    time.Time
		body   string
		want   error
	}{
		"as_signed":                     {func(http.Header) {}, both[:1], now, `{"a":1}`, nil},
		"one_of_several_secrets":        {func(http.Header) {}, both, now, `{"a":1}`, nil},
		"one_of_several_signatures":     {func(h http.Header) { h.Set(headerSignature, "v1a,x v1,AAAA "+h.Get(headerSignature)) }, both, now, `{"a":1}`, nil},
		"just_in_time":                  {func(http.Header) {}, both, now.Add(5 * time.Minute), `{"a":1}`, nil},
		"a_clock_that_is_ahead":         {func(http.Header) {}, both, now.Add(-5 * time.Minute), `{"a":1}`, nil},
		"another_secret":                {func(http.Header) {}, both[1:], now, `{"a":1}`, errSignature},
		"no_secrets":                    {func(http.Header) {}, nil, now, `{"a":1}`, errSignature},
		"another_body":                  {func(http.Header) {}, both, now, `{"a":2}`, errSignature},
		"too_old":                       {func(http.Header) {}, both, now.Add(5*time.Minute + time.Second), `{"a":1}`, errSignature},
		"from_the_future":               {func(http.Header) {}, both, now.Add(-5*time.Minute - time.Second), `{"a":1}`, errSignature},
		"another_id":                    {func(h http.Header) { h.Set(headerID, "msg-2") }, both, now, `{"a":1}`, errSignature},
		"an_id_that_could_shift":        {func(h http.Header) { sign(h, both[:1], "msg.1", now, body) }, both, now, `{"a":1}`, errSignature},
		"another_timestamp":             {func(h http.Header) { h.Set(headerTimestamp, "1800000001") }, both, now, `{"a":1}`, errSignature},
		"a_timestamp_in_other_clothes":  {func(h http.Header) { h.Set(headerTimestamp, "+1800000000") }, both, now, `{"a":1}`, errSignature},
		"no_signature":                  {func(h http.Header) { h.Del(headerSignature) }, both, now, `{"a":1}`, errSignature},
		"an_empty_signature":            {func(h http.Header) { h.Set(headerSignature, "v1,") }, both, now, `{"a":1}`, errSignature},
		"no_id":                         {func(h http.Header) { h.Del(headerID) }, both, now, `{"a":1}`, errSignature},
		"no_timestamp":                  {func(h http.Header) { h.Del(headerTimestamp) }, both, now, `{"a":1}`, errSignature},
		"two_ids":                       {func(h http.Header) { h.Add(headerID, "msg-1") }, both, now, `{"a":1}`, errSignature},
		"a_flood_of_signatures":         {func(h http.Header) { h.Set(headerSignature, strings.Repeat("v1,AAAA ", 17)+h.Get(headerSignature)) }, both, now, `{"a":1}`, errSignature},
		"the_signature_of_other_scheme": {func(h http.Header) { h.Set(headerSignature, "v2"+strings.TrimPrefix(h.Get(headerSignature), "v1")) }, both, now, `{"a":1}`, errSignature},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := verify(signed(c.change), c.keys, c.now, []byte(c.body)); !errors.Is(err, c.want) {
				t.Errorf("got %v, want %v", err, c.want)
			}
		})
	}
}

func TestClassify(t *testing.T) {
	now := time.Date(2026, 12, 1, 14, 0, 0, 0, time.UTC)
	for name, c := range map[string]struct {
		status int
		header http.Header
		body   int
		reach  events.Reach
		class  channels.Class
		code   string
		after  time.Duration
	}{
		"200_with_body":    {200, nil, 3, events.Delivered, 0, "", 0},
		"200_without_body": {200, nil, 0, events.ReachAccepted, 0, "", 0},
		"201":              {201, nil, 0, events.Delivered, 0, "", 0},
		"202":              {202, nil, 9, events.ReachAccepted, 0, "", 0},
		"204":              {204, nil, 0, events.Delivered, 0, "", 0},
		"409":              {409, nil, 0, events.ReachAccepted, 0, "", 0},
		"301":              {301, nil, 0, "", channels.Permanent, "redirect", 0},
		"307":              {307, nil, 0, "", channels.Permanent, "redirect", 0},
		"400":              {400, nil, 0, "", channels.Content, "bad_format", 0},
		"401":              {401, nil, 0, "", channels.Misconfigured, "auth_invalid", 0},
		"403":              {403, nil, 0, "", channels.Misconfigured, "auth_invalid", 0},
		"404":              {404, nil, 0, "", channels.Transient, "target_not_found", 0},
		"405":              {405, nil, 0, "", channels.Misconfigured, "method_not_allowed", 0},
		"408":              {408, nil, 0, "", channels.Transient, "provider_5xx", 0},
		"410":              {410, nil, 0, "", channels.Permanent, "gone", 0},
		"413":              {413, nil, 0, "", channels.Content, "too_long", 0},
		"415":              {415, nil, 0, "", channels.Content, "bad_format", 0},
		"418":              {418, nil, 0, "", channels.Permanent, "bad_format", 0},
		"422":              {422, nil, 0, "", channels.Content, "bad_format", 0},
		"425":              {425, nil, 0, "", channels.Transient, "provider_5xx", 0},
		"429_seconds":      {429, http.Header{"Retry-After": {"120"}}, 0, "", channels.Transient, "rate_limited", 2 * time.Minute},
		"503_date":         {503, http.Header{"Retry-After": {"Tue, 01 Dec 2026 14:05:00 GMT"}}, 0, "", channels.Transient, "provider_5xx", 5 * time.Minute},
		"503_past_date":    {503, http.Header{"Retry-After": {"Tue, 01 Dec 2020 14:05:00 GMT"}}, 0, "", channels.Transient, "provider_5xx", 0},
		"503_for_ever":     {503, http.Header{"Retry-After": {"2000000000"}}, 0, "", channels.Transient, "provider_5xx", 24 * time.Hour},
		"503_nonsense":     {503, http.Header{"Retry-After": {"-5"}}, 0, "", channels.Transient, "provider_5xx", 0},
		"500":              {500, nil, 0, "", channels.Transient, "provider_5xx", 0},
		"599":              {599, nil, 0, "", channels.Transient, "provider_5xx", 0},
		"abort_message":    {500, http.Header{"Webhook-Delivery": {"abort-message"}}, 0, "", channels.Permanent, "aborted", 0},
	} {
		t.Run(name, func(t *testing.T) {
			header := c.header
			if header == nil {
				header = http.Header{}
			}
			reach, fault := classify(c.status, header, c.body, now)
			if reach != c.reach || (fault == nil) != (c.class == 0) {
				t.Fatalf("got %q, %v", reach, fault)
			}
			if fault != nil && (fault.Class != c.class || fault.Code != c.code || fault.RetryAfter != c.after) {
				t.Errorf("got %v after %s", fault, fault.RetryAfter)
			}
		})
	}
	if _, f := classify(404, http.Header{}, 0, now); f.Tries != 3 {
		t.Errorf("404 is tried %d times", f.Tries)
	}
}

func TestGuard(t *testing.T) {
	ranges := special()
	for address, want := range map[string]bool{
		"93.184.215.14":          true,
		"2606:2800:21f:cb07::1":  true,
		"127.0.0.1":              false,
		"127.255.255.254":        false,
		"0.0.0.0":                false,
		"10.1.2.3":               false,
		"172.16.0.1":             false,
		"172.31.255.255":         false,
		"172.32.0.1":             true,
		"192.168.1.1":            false,
		"169.254.169.254":        false, // the cloud's metadata
		"100.64.0.1":             false, // CGNAT
		"100.128.0.1":            true,
		"192.0.0.8":              false,
		"198.18.0.1":             false,
		"224.0.0.1":              false,
		"255.255.255.255":        false,
		"::":                     false,
		"::1":                    false,
		"::7f00:1":               false, // IPv4-compatible loopback
		"::ffff:127.0.0.1":       false,
		"::ffff:169.254.169.254": false,
		"::ffff:93.184.215.14":   true,
		"::ffff:10.0.0.1":        false,
		"::ffff:100.64.0.1":      false,
		"64:ff9b::7f00:1":        false, // NAT64 of loopback
		"64:ff9b:1::a00:1":       false,
		"2002:7f00:1::":          false, // 6to4 of loopback
		"2001:0:53aa:64c::1":     false, // Teredo
		"fe80::1":                false,
		"fe80::1%eth0":           false,
		"fd00::1":                false,
		"fec0::1":                false,
		"ff02::1":                false,
	} {
		if got := public(netip.MustParseAddr(address), ranges); got != want {
			t.Errorf("%s: public is %t, want %t", address, got, want)
		}
	}
	control := publicOnly(ranges)
	for _, address := range []string{"127.0.0.1:443", "[::1]:443", "localhost:443", "nonsense", "[fe80::1%lo]:443"} {
		if err := control("tcp4", address, nil); !errors.Is(err, errBlocked) {
			t.Errorf("%s: got %v", address, err)
		}
	}
	if err := control("unix", "93.184.215.14:443", nil); !errors.Is(err, errBlocked) {
		t.Errorf("a socket that is not TCP: got %v", err)
	}
}

func TestDeliver(t *testing.T) {
	t.Run("sends_a_signed_cloudevent", func(t *testing.T) {
		r := startReceiver(t, status(204))
		e := endpoint(t, r, secretNew, secretOld)
		q := question(e)
		q.Delivery.To = []events.Person{{ID: "ana", Addresses: map[string]string{"slack": "U061", "webhook": "ana@corp"}}}
		receipt, err := e.Deliver(t.Context(), q)
		if err != nil || receipt.State != events.Delivered || receipt.ProviderID != q.Delivery.ID {
			t.Fatalf("got %+v, %v", receipt, err)
		}
		for _, secret := range []string{secretNew, secretOld} {
			keys, _ := parseSecrets([]string{secret})
			if id, err := verify(r.requests[0].Header, keys, time.Now(), r.bodies[0]); err != nil || id != q.Delivery.ID {
				t.Errorf("%q, %v", id, err)
			}
		}
		got, err := events.Open(r.requests[0].Header, r.bodies[0])
		if err != nil || got.ID != q.Delivery.ID || got.Data.(events.Question).Question != q.Question {
			t.Errorf("got %+v, %v", got, err)
		}
		if bytes.Contains(r.bodies[0], []byte("U061")) || !bytes.Contains(r.bodies[0], []byte("ana@corp")) {
			t.Error("it carries another channel's address, or lacks its own")
		}
	})
	t.Run("a_closing_is_a_message_of_its_own", func(t *testing.T) {
		r := startReceiver(t, status(204))
		e := endpoint(t, r)
		ask, closed := question(e), channeltest.Question(channeltest.Provider{Adapter: e}, events.PhaseClose)
		if _, err := e.Deliver(t.Context(), ask); err != nil {
			t.Fatal(err)
		}
		if _, err := e.Update(t.Context(), closed); err != nil {
			t.Fatal(err)
		}
		if a, b := r.requests[0].Header.Get("webhook-id"), r.requests[1].Header.Get("webhook-id"); a == b {
			t.Errorf("both are %s", a)
		}
	})
	t.Run("follows_no_redirect", func(t *testing.T) {
		r := startReceiver(t, nil)
		r.does = status(http.StatusTemporaryRedirect, "Location", r.URL+"/elsewhere")
		e := endpoint(t, r)
		if _, err := e.Deliver(t.Context(), question(e)); channels.ClassOf(err) != channels.Permanent || r.count() != 1 {
			t.Errorf("got %v after %d requests", err, r.count())
		}
	})
	t.Run("reads_a_bounded_answer", func(t *testing.T) {
		r := startReceiver(t, func(w http.ResponseWriter, q *http.Request) {
			for q.Context().Err() == nil {
				if _, err := w.Write(make([]byte, 1<<20)); err != nil {
					return
				}
			}
		})
		e := endpoint(t, r)
		if receipt, err := e.Deliver(t.Context(), question(e)); err != nil || receipt.State != events.Delivered {
			t.Errorf("got %+v, %v", receipt, err)
		}
	})
	t.Run("dials_no_private_address", func(t *testing.T) {
		r := startReceiver(t, status(204))
		_, port, _ := net.SplitHostPort(r.Listener.Addr().String())
		for _, host := range []string{"127.0.0.1", "localhost", "[::ffff:127.0.0.1]", "0.0.0.0"} {
			e, err := New(Config{URL: fmt.Sprintf("https://%s:%s/", host, port), Secrets: []string{secretNew}})
			if err != nil {
				t.Fatal(err)
			}
			if _, err := e.Deliver(t.Context(), question(e)); err == nil || err.Error() != "config blocked_address" {
				t.Errorf("%s: got %v", host, err)
			}
		}
		if r.count() != 0 {
			t.Errorf("%d requests arrived", r.count())
		}
	})
	t.Run("trusts_no_unknown_certificate", func(t *testing.T) {
		r := startReceiver(t, status(204))
		e, err := New(Config{URL: r.URL, Secrets: []string{secretNew}, AllowPrivate: true})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := e.Deliver(t.Context(), question(e)); channels.ClassOf(err) != channels.Misconfigured || err.Error() != "config tls_required" {
			t.Errorf("got %v", err)
		}
	})
	t.Run("nobody_listens", func(t *testing.T) {
		r := startReceiver(t, status(204))
		e := endpoint(t, r)
		r.Close()
		if _, err := e.Deliver(t.Context(), question(e)); err == nil || err.Error() != "transient network_before_send" {
			t.Errorf("got %v", err)
		}
	})
	t.Run("no_answer_in_time", func(t *testing.T) {
		release := make(chan struct{})
		r := startReceiver(t, func(http.ResponseWriter, *http.Request) { <-release })
		t.Cleanup(func() { close(release) })
		e := endpoint(t, r)
		e.client.Timeout = 200 * time.Millisecond
		if _, err := e.Deliver(context.Background(), question(e)); err == nil || err.Error() != "transient timeout_after_send" {
			t.Errorf("got %v", err)
		}
	})
}

func TestConfig(t *testing.T) {
	good := Config{URL: "https://hooks.example.com/clarify", Secrets: []string{secretNew}}
	if err := good.Validate(); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		change func(*Config)
		want   string
	}{
		"no_url":            {func(c *Config) { c.URL = "" }, "webhook.url: is missing"},
		"relative_url":      {func(c *Config) { c.URL = "hooks" }, "absolute URL"},
		"plain_http":        {func(c *Config) { c.URL = "http://hooks.example.com" }, "not https"},
		"file":              {func(c *Config) { c.URL = "file:///etc/passwd"; c.AllowPrivate = true }, "absolute URL"},
		"user_in_url":       {func(c *Config) { c.URL = "https://hunter2:x@example.com" }, "carries a user"},
		"host_not_allowed":  {func(c *Config) { c.AllowHosts = []string{"other.example.com"} }, "allow_hosts"},
		"no_secret":         {func(c *Config) { c.Secrets = nil }, "either secrets or secret_file"},
		"two_sources":       {func(c *Config) { c.SecretFile = "x" }, "either secrets or secret_file"},
		"short_secret":      {func(c *Config) { c.Secrets = []string{"whsec_aHVudGVyMg=="} }, "secrets[0]: is 7 bytes"},
		"empty_secret":      {func(c *Config) { c.Secrets = []string{"whsec_"} }, "secrets[0]: is 0 bytes"},
		"secret_not_base64": {func(c *Config) { c.Secrets = []string{"whsec_hunter2!"} }, "not base64"},
		"secret_unprefixed": {func(c *Config) { c.Secrets = []string{"hunter2"} }, "whsec_"},
		"slow":              {func(c *Config) { c.Timeout = events.Duration(time.Hour) }, "webhook.timeout"},
		"bad_channel":       {func(c *Config) { c.Channel = "a.b" }, "channel"},
	} {
		t.Run(name, func(t *testing.T) {
			bad := good
			c.change(&bad)
			_, err := New(bad)
			if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "hunter2") {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
}
