package embedded

import (
	"fmt"

	"github.com/nats-io/nats-server/v2/server"
)

// jsz is where a client asks a server how JetStream is configured.
const jsz = "$SYS.REQ.SERVER.PING.JSZ"

// shareSync lets every account ask whether the server syncs before it acknowledges. By itself only the system account may.
func (s *Server) shareSync() error {
	sys := s.nats.SystemAccount()
	if sys == nil {
		return nil
	}
	if err := sys.AddServiceExport(jsz, nil); err != nil {
		return fmt.Errorf("export %s: %w", jsz, err)
	}
	for _, name := range append(s.accounts, server.DEFAULT_GLOBAL_ACCOUNT) {
		a, err := s.nats.LookupAccount(name)
		if err != nil {
			return fmt.Errorf("look up an account: %w", err)
		}
		if a == sys {
			continue
		}
		if err := a.AddServiceImport(sys, jsz, jsz); err != nil {
			return fmt.Errorf("import %s: %w", jsz, err)
		}
	}
	return nil
}
