//go:build !unix

package embedded

import "errors"

// lock refuses: without a lock on the data folder a second server on it would destroy it.
func lock(string) (unlock func() error, err error) {
	return nil, errors.New("the embedded server needs a unix system; connect to a nats-server instead")
}
