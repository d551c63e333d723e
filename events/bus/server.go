package bus

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/nats-io/nats.go"
)

// The oldest server whose message schedules, atomic batches and compare-and-set are known to hold.
const (
	minMajor = 2
	minMinor = 14
)

// Sync is when a server writes to disk what it acknowledges.
type Sync string

// When a server syncs.
const (
	SyncUnknown Sync = ""       // it did not say: the account lacks the import of $SYS.REQ.SERVER.PING.JSZ
	SyncAlways  Sync = "always" // before it acknowledges
	SyncLazy    Sync = "lazy"   // some time later: a power cut loses acknowledged answers and can let two win
)

var errLazySync = errors.New("the server acknowledges before it has synced to disk, so a power cut loses acknowledged answers and " +
	"can let two win; set sync_interval: always in its jetstream block, or allow_lazy_sync: true here")

// Server names the version of the server this process is connected to.
func (b *Bus) Server() string { return "nats-server " + b.nc.ConnectedServerVersion() }

// Sync tells when the servers sync, as far as they say. A broker must not take SyncUnknown for SyncAlways.
func (b *Bus) Sync() Sync {
	if said := b.sync.Load(); said != nil {
		return *said
	}
	return SyncUnknown
}

// Durable asks again, for a moment, a server that has not said when it syncs: one that has just started may not be able to
// say yet. It returns what is known then.
func (b *Bus) Durable(ctx context.Context) Sync {
	for range 10 {
		if b.Sync() != SyncUnknown {
			break
		}
		if said, err := b.askSync(ctx); err == nil {
			b.sync.Store(&said)
		}
		if b.Sync() != SyncUnknown || !wait(ctx, 200*time.Millisecond) {
			break
		}
	}
	return b.Sync()
}

func checkServer(nc *nats.Conn) error {
	if !nc.IsConnected() {
		return fmt.Errorf("%w: not connected to a server", ErrNobody)
	}
	version := nc.ConnectedServerVersion()
	if !recent(version) {
		return fmt.Errorf("nats-server %q is too old: Clarify needs %d.%d or later", version, minMajor, minMinor)
	}
	if on, _ := nc.ConnectedServerJetStream(); !on && nc.ConnectedClusterName() == "" {
		return errors.New("JetStream is off on this nats-server: add a jetstream block to its configuration")
	}
	return nil
}

func recent(version string) bool {
	part := strings.SplitN(version, ".", 3)
	if len(part) < 3 {
		return false
	}
	major, errA := strconv.Atoi(part[0])
	minor, errB := strconv.Atoi(part[1])
	if errA != nil || errB != nil {
		return false
	}
	return major > minMajor || major == minMajor && minor >= minMinor
}

const (
	jsz         = "$SYS.REQ.SERVER.PING.JSZ"
	syncLimit   = 2 * time.Second        // for the first server's word
	syncGather  = 500 * time.Millisecond // for the rest of a cluster's, after the last one's
	errSyncFail = "ask when the server syncs: %w"
)

// askSync asks every server this account may ask. One lazy server makes the answer lazy.
func (b *Bus) askSync(ctx context.Context) (Sync, error) {
	replies := make(chan *nats.Msg, 64)
	sub, err := b.nc.ChanSubscribe(b.nc.NewInbox(), replies)
	if err != nil {
		return SyncUnknown, fmt.Errorf(errSyncFail, err)
	}
	defer func() { _ = sub.Unsubscribe() }()
	denied := make(chan struct{})
	defer b.denials.watch(jsz, func() { close(denied) })()
	if err := b.nc.PublishRequest(jsz, sub.Subject, nil); err != nil {
		return SyncUnknown, fmt.Errorf(errSyncFail, err)
	}
	found, limit := SyncUnknown, syncLimit
	for {
		select {
		case m := <-replies:
			switch said := syncOf(m); {
			case said == SyncUnknown:
				return found, nil
			case said == SyncLazy, b.nc.ConnectedClusterName() == "":
				return said, nil
			default:
				found, limit = said, syncGather
			}
		case <-denied:
			return SyncUnknown, nil
		case <-time.After(limit):
			return found, nil
		case <-ctx.Done():
			return SyncUnknown, fmt.Errorf(errSyncFail, context.Cause(ctx))
		}
	}
}

// Store is how much of the disk JetStream may use on one server, in bytes. Limit is 0 where the server does not say.
type Store struct{ Used, Limit uint64 }

// Full reports that more than the share is used.
func (s Store) Full(share float64) bool {
	return s.Limit > 0 && float64(s.Used) > share*float64(s.Limit)
}

// Store asks one server how full its store is. An account that may not ask gets the zero Store.
func (b *Bus) Store(ctx context.Context) (Store, error) {
	ctx, stop := context.WithTimeout(ctx, syncLimit)
	defer stop()
	m, err := b.roundTrip(ctx, nats.NewMsg(jsz))
	if err != nil {
		if errors.Is(err, ErrDenied) || errors.Is(err, ErrNobody) {
			return Store{}, nil
		}
		return Store{}, fmt.Errorf("ask how full the store is: %w", err)
	}
	var reply struct {
		Data struct {
			Used   uint64 `json:"storage"`
			Config struct {
				Limit int64 `json:"max_storage"`
			} `json:"config"`
		} `json:"data"`
	}
	if err := json.Unmarshal(m.Data, &reply); err != nil {
		return Store{}, fmt.Errorf("ask how full the store is: %w", err)
	}
	return Store{Used: reply.Data.Used, Limit: uint64(max(reply.Data.Config.Limit, 0))}, nil
}

func syncOf(m *nats.Msg) Sync {
	var reply struct {
		Data struct {
			Disabled bool `json:"disabled"`
			Config   struct {
				SyncAlways bool `json:"sync_always"`
			} `json:"config"`
		} `json:"data"`
	}
	if len(m.Data) == 0 || json.Unmarshal(m.Data, &reply) != nil {
		return SyncUnknown
	}
	if reply.Data.Config.SyncAlways || reply.Data.Disabled { // a server without JetStream loses nothing
		return SyncAlways
	}
	return SyncLazy
}
