package audit

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"

	"github.com/clarify-broker/clarify/events"
)

// Link puts r behind prev in the chain: its sequence, the hash of the record before and its own. The zero prev makes r the
// first. It fails only for a record that has no JSON form.
func Link(prev events.Record, r *events.Record) error {
	r.Seq, r.Prev = prev.Seq+1, prev.Hash
	r.High = max(r.High, r.Log, prev.High)
	if r.Loss != nil {
		r.High = max(r.Log, r.Loss.Now)
	}
	hash, err := hashOf(*r)
	if err != nil {
		return err
	}
	r.Hash = hash
	return nil
}

// hashOf is the SHA-256 over the canonical record without its hash.
func hashOf(r events.Record) (events.Digest, error) {
	r.Hash = ""
	raw, err := events.Encode(r)
	if err != nil {
		return "", fmt.Errorf("encode record %d: %w", r.Seq, err)
	}
	text, err := events.Canonical(raw)
	if err != nil {
		return "", fmt.Errorf("encode record %d: %w", r.Seq, err)
	}
	sum := sha256.Sum256(text)
	return events.Digest("sha256:" + hex.EncodeToString(sum[:])), nil
}

// ChainError says where a chain does not hold.
type ChainError struct {
	Seq     uint64 // of the record that does not fit
	Problem string
}

func (e *ChainError) Error() string { return fmt.Sprintf("record %d: %s", e.Seq, e.Problem) }

// CheckChain checks that r is whole and stands behind prev; for the zero prev, that it is whole and starts a chain or what
// retention has left of one. The error is a [*ChainError].
func CheckChain(prev, r events.Record) error {
	bad := func(format string, args ...any) error { return &ChainError{r.Seq, fmt.Sprintf(format, args...)} }
	hash, err := hashOf(r)
	switch {
	case err != nil:
		return bad("has no JSON form")
	case r.Hash != hash:
		return bad("its hash is not that of its text: it was edited")
	case prev.Seq == 0 && r.Seq == 0:
		return bad("has no sequence; the first record is 1")
	case prev.Seq == 0 && r.Seq > 1 && r.Prev == "", prev.Seq == 0 && r.Seq == 1 && r.Prev != "":
		return bad("its prev does not fit its sequence: only record 1 has none before it")
	case prev.Seq != 0 && r.Seq != prev.Seq+1:
		return bad("follows record %d: records are missing, repeated or reordered", prev.Seq)
	case prev.Seq != 0 && r.Prev != prev.Hash:
		return bad("its prev is not the hash of record %d: the chain forks here", prev.Seq)
	}
	return nil
}
