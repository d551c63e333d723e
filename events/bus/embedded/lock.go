//go:build unix

package embedded

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

const lockFile = "clarify.lock"

// lock makes the folder and takes it for this process. nats-server itself starts twice on one folder and destroys it.
func lock(dir string) (unlock func() error, err error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	f, err := os.OpenFile(filepath.Join(dir, lockFile), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		return nil, errors.Join(held(f, dir, err), f.Close())
	}
	if err := writePID(f); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f.Close, nil // the lock ends with the descriptor; the file stays, since removing it would race with the next holder
}

func held(f *os.File, dir string, err error) error {
	if !errors.Is(err, syscall.EWOULDBLOCK) {
		return fmt.Errorf("lock %s: %w", dir, err)
	}
	pid := make([]byte, 20)
	n, _ := f.Read(pid)
	holder := strings.TrimSpace(string(pid[:n]))
	if holder == "" {
		holder = "unknown"
	}
	return fmt.Errorf("data folder %s is used by another server (pid %s): stop it or choose another folder", dir, holder)
}

func writePID(f *os.File) error {
	if err := f.Truncate(0); err != nil {
		return err
	}
	_, err := f.WriteAt([]byte(strconv.Itoa(os.Getpid())+"\n"), 0)
	return err
}
