package channels

import (
	"encoding/base64"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/clarify-broker/clarify/events"
	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

const (
	secretA = "an old secret of at least 32 characters"
	secretB = "a new secret of at least 32 characters!"
)

func ring(t testing.TB, keys ...KeyConfig) *Keyring {
	t.Helper()
	r, err := NewKeyring(KeyringConfig{keys})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func ticket() Ticket {
	return Ticket{
		Place:    events.Place{Channel: "email", Agent: "crm-bot", Task: "t-42", Version: 7},
		Question: "01K9ZZZZZZZZZZZZZZZZZZZZZZ", Delivery: "01K9.7.ana", Recipient: "ana@example.com",
	}
}

func TestToken(t *testing.T) {
	old, both := ring(t, KeyConfig{ID: "a", Secret: secretA}), ring(t, KeyConfig{ID: "b", Secret: secretB}, KeyConfig{ID: "a", Secret: secretA})
	token := old.Sign(ticket())
	t.Run("another_replica_reads_it", func(t *testing.T) {
		got, err := both.Verify(token)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(ticket(), got); diff != "" {
			t.Fatal(diff)
		}
	})
	t.Run("fits_a_url", func(t *testing.T) {
		if strings.ContainsAny(token, "+/=. ") || len(token) > 200 {
			t.Fatalf("%d characters: %s", len(token), token)
		}
	})
	t.Run("a_key_that_is_gone_is_refused", func(t *testing.T) {
		refused(t, ring(t, KeyConfig{ID: "b", Secret: secretB}), token)
	})
	t.Run("a_key_of_the_same_id_is_refused", func(t *testing.T) {
		refused(t, ring(t, KeyConfig{ID: "a", Secret: secretB}), token)
	})
	t.Run("garbage_is_refused", func(t *testing.T) {
		for _, s := range []string{"", "a", "!!!!", token + "A", token[1:], token + "=", token + "\n", " " + token, strings.Repeat("A", 5000), base64.RawURLEncoding.EncodeToString(make([]byte, 40))} {
			refused(t, old, s)
		}
	})
	t.Run("every_bit_counts", func(t *testing.T) {
		raw, _ := base64.RawURLEncoding.DecodeString(token)
		for i := range raw {
			for bit := range 8 {
				raw[i] ^= 1 << bit
				refused(t, old, base64.RawURLEncoding.EncodeToString(raw))
				raw[i] ^= 1 << bit
			}
		}
	})
}

func refused(t *testing.T, r *Keyring, token string) {
	t.Helper()
	if got, err := r.Verify(token); !errors.Is(err, ErrToken) || got != (Ticket{}) {
		t.Fatalf("%q: got %v, %v", token, got, err)
	}
}

func TestTokenOfAnyTicket(t *testing.T) {
	r := ring(t, KeyConfig{ID: "a", Secret: secretA})
	text := rapid.StringN(0, 40, 100)
	rapid.Check(t, func(rt *rapid.T) {
		one, two := drawn(rt, text, "one"), drawn(rt, text, "two")
		got, err := r.Verify(r.Sign(one))
		if err != nil || got != one {
			rt.Fatalf("got %v, %v, want %v", got, err, one)
		}
		if one != two && r.Sign(one) == r.Sign(two) {
			rt.Fatalf("%v and %v have one token", one, two)
		}
	})
}

func drawn(rt *rapid.T, text *rapid.Generator[string], name string) Ticket {
	draw := func(part string) string { return text.Draw(rt, name+" "+part) }
	return Ticket{Place: events.Place{
		Channel: events.Channel(draw("channel")), Agent: events.Agent(draw("agent")), Task: events.Task(draw("task")),
		Version: events.Version(rapid.Uint64().Draw(rt, name+" version")),
	}, Question: events.QuestionID(draw("question")), Delivery: draw("delivery"), Recipient: draw("recipient")}
}

func FuzzVerify(f *testing.F) {
	r := ring(f, KeyConfig{ID: "a", Secret: secretA})
	f.Add(r.Sign(ticket()))
	f.Fuzz(func(t *testing.T, s string) {
		if got, err := r.Verify(s); err == nil && r.Sign(got) != s {
			t.Fatalf("%q is another text of a token", s)
		}
	})
}

func TestKeyringConfig(t *testing.T) {
	for name, c := range map[string]struct {
		keys []KeyConfig
		want string
	}{
		"no_keys":       {nil, "is empty"},
		"no_id":         {[]KeyConfig{{Secret: secretA}}, "keys[0].id"},
		"id_twice":      {[]KeyConfig{{ID: "a", Secret: secretA}, {ID: "a", Secret: secretB}}, "keys[1].id: appears twice"},
		"no_secret":     {[]KeyConfig{{ID: "a"}}, "either secret or secret_file"},
		"both":          {[]KeyConfig{{ID: "a", Secret: secretA, SecretFile: "x"}}, "either secret or secret_file"},
		"short_secret":  {[]KeyConfig{{ID: "a", Secret: "hunter2"}}, "keys[0].secret: is 7 characters"},
		"absent_file":   {[]KeyConfig{{ID: "a", SecretFile: "/nonexistent"}}, "keys[0].secret_file"},
		"too_short_ids": {[]KeyConfig{{ID: strings.Repeat("k", 17), Secret: secretA}}, "keys[0].id"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := NewKeyring(KeyringConfig{c.keys})
			if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "hunter2") {
				t.Fatalf("got %v, want %q", err, c.want)
			}
		})
	}
	t.Run("file", func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "key")
		if err := os.WriteFile(path, []byte(secretA+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		fromFile, fromText := ring(t, KeyConfig{ID: "a", SecretFile: path}), ring(t, KeyConfig{ID: "a", Secret: secretA})
		if _, err := fromText.Verify(fromFile.Sign(ticket())); err != nil {
			t.Fatal(err)
		}
	})
}
