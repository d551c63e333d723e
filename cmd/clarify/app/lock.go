//go:build unix

package app

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// lockFile is held by the dev that runs in a folder, also by one that forgets everything: both say there where they are.
const lockFile = "dev.lock"

// lockDev takes a folder for this dev until unlock. The error is [*DevRuns] when another has it.
func lockDev(dir string) (unlock func() error, err error) {
	f, err := os.OpenFile(filepath.Join(dir, lockFile), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		if !errors.Is(err, syscall.EWOULDBLOCK) {
			return nil, errors.Join(fmt.Errorf("lock %s: %w", dir, err), f.Close())
		}
		pid := make([]byte, 20)
		n, _ := f.Read(pid)
		return nil, errors.Join(&DevRuns{PID: strings.TrimSpace(string(pid[:n]))}, f.Close())
	}
	err = f.Truncate(0)
	if err == nil {
		_, err = fmt.Fprintln(f, os.Getpid())
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f.Close, nil // the lock ends with the descriptor; the file stays, since removing it would race with the next holder
}
