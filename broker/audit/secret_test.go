package audit

import "testing"

// TestSecret tells what looks like a secret from ids that only sound like one.
func TestSecret(t *testing.T) {
	for text, want := range map[string]bool{
		"sk-abcdefghijklmnopqrstuv":             true,
		"key: sk-ABCDEFGHIJKLMNOPQRSTUV":        true,
		"xoxb-1234":                             true,
		"ghp_abcdefghijklmnopqrstuvwx":          true,
		"password=hunter2":                      true,
		"task-01K9ABCDEFGHJKMNPQRSTVWXYZ":       false,
		"desk-01k9abcdefghjkmnpqrstvwxyz":       false,
		"t-1-ask-01K9ABCDEFGHJKMNPQRSTVWXYZ":    false,
		"risk-abcdefghijklmnopqrstuvwxyz":       false,
		"01M8S9SSFTMZVXKHC34DRYRP99-1-0-0":      false,
		"sha256:9f3a0c11aa22bb33cc44dd55ee66ff": false,
	} {
		if got := secret.MatchString(text); got != want {
			t.Errorf("%q: %t", text, got)
		}
	}
}
