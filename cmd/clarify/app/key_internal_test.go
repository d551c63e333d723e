package app

import (
	"os"
	"path/filepath"
	"testing"
)

// TestMakeKey: a key is made once, an empty file that a crash left is none, and nothing else is left beside it.
func TestMakeKey(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := filepath.Join(dir, "audit.key")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	var keys [2]string
	for i := range keys {
		if err := makeKey(file); err != nil {
			t.Fatal(err)
		}
		key, err := readKey(file)
		if err != nil {
			t.Fatal(err)
		}
		keys[i] = string(key)
	}
	if keys[0] != keys[1] {
		t.Error("the second call made another key")
	}
	left, err := os.ReadDir(dir)
	if err != nil || len(left) != 1 {
		t.Errorf("%d files (%v), want the key alone", len(left), err)
	}
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("others may read the key: %v %v", info.Mode(), err)
	}
}

func TestLoopback(t *testing.T) {
	t.Parallel()
	for address, want := range map[string]bool{
		"127.0.0.1:0": true, "127.0.0.2:80": true, "[::1]:8420": true, "localhost:8420": true, "[::ffff:127.0.0.1]:1": true,
		"0.0.0.0:0": false, ":8420": false, "[::]:8420": false, "10.0.0.7:8420": false, "example.com:80": false, "127.0.0.1": false, "": false,
	} {
		if err := Loopback(address); (err == nil) != want {
			t.Errorf("Loopback(%q) = %v", address, err)
		}
	}
}

func TestCheckURLs(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]bool{
		"nats://a:4222": true, "tls://a:4222, nats://user:word@b": true, "wss://a/path": true,
		"a:4222": false, "nats://": false, "http://a:4222": false, "nats://a,": false, "nats://a b": false, "": false,
	} {
		if err := checkURLs(text); (err == nil) != want {
			t.Errorf("checkURLs(%q) = %v", text, err)
		}
	}
}
