package channels

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/clarify-broker/clarify/events"
)

// ErrToken is returned for every reply token that is not one of ours: garbage, a wrong MAC, a key that is gone. Which of
// them it was is nobody's business.
var ErrToken = errors.New("not a reply token of ours")

// Ticket is what a reply token proves: that the link, button or address was made for this recipient, to answer this version
// of this question on this channel. It proves nothing of who holds it.
type Ticket struct {
	Place     events.Place
	Question  events.QuestionID
	Delivery  string // the delivery's id
	Recipient string // who it was made for: the subject that the channel's answers carry
}

// KeyConfig is one key of a keyring.
type KeyConfig struct {
	ID         string `json:"id"`
	Secret     string `json:"secret,omitzero"`      // at least 32 characters
	SecretFile string `json:"secret_file,omitzero"` // read at start in place of Secret
}

// KeyringConfig lists the keys of reply tokens. The first makes tokens, all of them check: put a new key first and keep the
// old ones as long as questions that carry them may be open. Every replica has the same keys.
type KeyringConfig struct {
	Keys []KeyConfig `json:"keys"`
}

// Validate checks everything but the contents of files.
func (c KeyringConfig) Validate() error {
	if len(c.Keys) == 0 {
		return errors.New("reply_tokens.keys: is empty; give at least one key with an id and a secret of 32 characters or more")
	}
	seen := map[string]bool{}
	for i, k := range c.Keys {
		at := fmt.Sprintf("reply_tokens.keys[%d]", i)
		switch {
		case k.ID == "" || len(k.ID) > maxKeyID:
			return fmt.Errorf("%s.id: give 1 to %d characters", at, maxKeyID)
		case seen[k.ID]:
			return fmt.Errorf("%s.id: appears twice; ids of keys are unique", at)
		case (k.Secret == "") == (k.SecretFile == ""):
			return fmt.Errorf("%s: give either secret or secret_file", at)
		case k.Secret != "" && len(k.Secret) < minSecret:
			return fmt.Errorf("%s.secret: is %d characters, at least %d are needed", at, len(k.Secret), minSecret)
		}
		seen[k.ID] = true
	}
	return nil
}

const (
	minSecret  = 32
	maxKeyID   = 16
	macSize    = 16 // half of SHA-256's output, as RFC 2104 §5 allows
	maxToken   = 2048
	tokenForm  = 1 // first byte of every token
	macContext = "clarify reply token v1\x00"
)

type key struct {
	id     string
	secret []byte
}

// Keyring makes and checks reply tokens. Any replica with the same keys checks what another one made; nothing is stored.
type Keyring struct{ keys []key }

// NewKeyring reads the keys.
func NewKeyring(c KeyringConfig) (*Keyring, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	ring := &Keyring{}
	for i, k := range c.Keys {
		secret := k.Secret
		if k.SecretFile != "" {
			text, err := os.ReadFile(k.SecretFile)
			if err != nil {
				return nil, fmt.Errorf("reply_tokens.keys[%d].secret_file: %w", i, err)
			}
			secret = strings.TrimSpace(string(text))
		}
		if len(secret) < minSecret {
			return nil, fmt.Errorf("reply_tokens.keys[%d]: the secret is %d characters, at least %d are needed", i, len(secret), minSecret)
		}
		ring.keys = append(ring.keys, key{k.ID, []byte(secret)})
	}
	return ring, nil
}

// Sign makes the token of a ticket: URL-safe, without padding, about 100 to 200 characters. Whoever holds it can answer as
// the recipient where a bearer may: it belongs in a message to that recipient, never in a log.
func (r *Keyring) Sign(t Ticket) string {
	k := r.keys[0]
	body := []byte{tokenForm}
	for _, part := range []string{k.id, string(t.Question), string(t.Place.Channel), string(t.Place.Agent), string(t.Place.Task), t.Delivery, t.Recipient} {
		body = binary.AppendUvarint(body, uint64(len(part)))
		body = append(body, part...)
	}
	body = binary.AppendUvarint(body, uint64(t.Place.Version))
	return base64.RawURLEncoding.EncodeToString(append(body, k.mac(body)...))
}

// Verify checks a token and returns its ticket. Every failure is [ErrToken].
func (r *Keyring) Verify(token string) (Ticket, error) {
	if len(token) > maxToken {
		return Ticket{}, ErrToken
	}
	raw, err := base64.RawURLEncoding.DecodeString(token)
	if err != nil || base64.RawURLEncoding.EncodeToString(raw) != token || // the decoder skips line ends and spare bits
		len(raw) <= macSize || raw[0] != tokenForm {
		return Ticket{}, ErrToken
	}
	body, sum := raw[:len(raw)-macSize], raw[len(raw)-macSize:]
	id, rest, ok := cutPart(body[1:])
	if !ok || !r.signed(id, body, sum) {
		return Ticket{}, ErrToken
	}
	return readTicket(rest)
}

// signed tries the key that the token names, in constant time; an unknown key costs the same.
func (r *Keyring) signed(id string, body, sum []byte) bool {
	use := key{secret: r.keys[0].secret}
	known := false
	for _, k := range r.keys {
		if k.id == id {
			use, known = k, true
		}
	}
	return hmac.Equal(use.mac(body), sum) && known
}

func (k key) mac(body []byte) []byte {
	h := hmac.New(sha256.New, k.secret)
	h.Write([]byte(macContext))
	h.Write(body)
	return h.Sum(nil)[:macSize]
}

func readTicket(rest []byte) (Ticket, error) {
	var t Ticket
	var question, channel, agent, task string
	for _, into := range []*string{&question, &channel, &agent, &task, &t.Delivery, &t.Recipient} {
		var ok bool
		if *into, rest, ok = cutPart(rest); !ok {
			return Ticket{}, ErrToken
		}
	}
	version, n := binary.Uvarint(rest)
	if n <= 0 || n != len(rest) {
		return Ticket{}, ErrToken
	}
	t.Question = events.QuestionID(question)
	t.Place = events.Place{Channel: events.Channel(channel), Agent: events.Agent(agent), Task: events.Task(task), Version: events.Version(version)}
	return t, nil
}

func cutPart(b []byte) (string, []byte, bool) {
	size, n := binary.Uvarint(b)
	if n <= 0 || size > uint64(len(b)-n) {
		return "", nil, false
	}
	return string(b[n : n+int(size)]), b[n+int(size):], true
}
