package webhook

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// Header names of Standard Webhooks 1.0.
const (
	headerID        = "webhook-id"
	headerTimestamp = "webhook-timestamp"
	headerSignature = "webhook-signature"
)

const (
	tolerance     = 5 * time.Minute
	maxSignatures = 16
	maxID         = 128
)

var errSignature = errors.New("the signature is missing, wrong or too old")

// parseSecrets decodes whsec_… secrets. The specification wants 24 to 64 bytes; its Go library accepts an empty one.
func parseSecrets(secrets []string) ([][]byte, error) {
	var keys [][]byte
	for i, s := range secrets {
		encoded, ok := strings.CutPrefix(s, "whsec_")
		if !ok {
			return nil, fmt.Errorf("webhook.secrets[%d]: does not start with whsec_", i)
		}
		raw, err := base64.StdEncoding.DecodeString(encoded)
		if err != nil {
			return nil, fmt.Errorf("webhook.secrets[%d]: what follows whsec_ is not base64", i)
		}
		if len(raw) < 24 || len(raw) > 64 {
			return nil, fmt.Errorf("webhook.secrets[%d]: is %d bytes, use 24 to 64", i, len(raw))
		}
		keys = append(keys, raw)
	}
	return keys, nil
}

func mac(key []byte, id, timestamp string, body []byte) []byte {
	h := hmac.New(sha256.New, key)
	h.Write([]byte(id + "." + timestamp + "."))
	h.Write(body)
	return h.Sum(nil)
}

// sign sets the three headers, with one signature for every key, so that a receiver may know any of them.
func sign(header http.Header, keys [][]byte, id string, at time.Time, body []byte) {
	timestamp := strconv.FormatInt(at.Unix(), 10)
	var signatures []string
	for _, key := range keys {
		signatures = append(signatures, "v1,"+base64.StdEncoding.EncodeToString(mac(key, id, timestamp, body)))
	}
	header.Set(headerID, id)
	header.Set(headerTimestamp, timestamp)
	header.Set(headerSignature, strings.Join(signatures, " "))
}

// verify returns the webhook-id of a request whose body is signed by one of the keys within the last and next five minutes.
func verify(header http.Header, keys [][]byte, now time.Time, body []byte) (string, error) {
	id, err := single(header, headerID)
	if err != nil || len(id) > maxID || strings.Contains(id, ".") {
		return "", errSignature
	}
	timestamp, err := single(header, headerTimestamp)
	if err != nil {
		return "", errSignature
	}
	seconds, err := strconv.ParseInt(timestamp, 10, 64)
	if err != nil || strconv.FormatInt(seconds, 10) != timestamp {
		return "", errSignature
	}
	if age := now.Sub(time.Unix(seconds, 0)); age > tolerance || age < -tolerance {
		return "", errSignature
	}
	given, err := single(header, headerSignature)
	if err != nil || !anySigned(strings.Fields(given), keys, id, timestamp, body) {
		return "", errSignature
	}
	return id, nil
}

func single(header http.Header, name string) (string, error) {
	values := header.Values(name)
	if len(values) != 1 || values[0] == "" {
		return "", errSignature
	}
	return values[0], nil
}

// anySigned compares every signature with every key's, in constant time, and does not stop at the first that fits.
func anySigned(given []string, keys [][]byte, id, timestamp string, body []byte) bool {
	if len(given) > maxSignatures {
		return false
	}
	fits := false
	for _, key := range keys {
		want := mac(key, id, timestamp, body)
		for _, signature := range given {
			encoded, ok := strings.CutPrefix(signature, "v1,")
			if !ok {
				continue // another scheme's, such as v1a
			}
			got, err := base64.StdEncoding.DecodeString(encoded)
			if err == nil && hmac.Equal(got, want) {
				fits = true
			}
		}
	}
	return fits
}
