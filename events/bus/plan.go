package bus

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// Change is one setting that is not as it should be. Setting is empty for a stream that is missing.
type Change struct {
	Stream  string // as the server knows it
	Setting string // as the server's API names it
	Is      string
	Should  string
}

// Changes is what Apply would change, in the order in which it would.
type Changes []Change

// String has one line per change.
func (c Changes) String() string {
	var out strings.Builder
	for _, x := range c {
		if x.Setting == "" {
			fmt.Fprintf(&out, "+ %s\n", x.Stream)
		} else {
			fmt.Fprintf(&out, "~ %s %s: %s -> %s\n", x.Stream, x.Setting, x.Is, x.Should)
		}
	}
	return out.String()
}

// Plan compares the streams there are with those there should be. It changes nothing. What Clarify does not set (placement,
// metadata) is left as it is, and other streams are not looked at.
func (b *Bus) Plan(ctx context.Context) (Changes, error) {
	var all Changes
	for _, want := range b.topology() {
		changes, err := b.compare(ctx, want)
		if err != nil {
			return nil, fmt.Errorf("plan %s: %w", want.Name, err)
		}
		all = append(all, changes...)
	}
	return all, nil
}

// Apply makes the streams that are missing and corrects the settings of those that are there. It never deletes anything and
// may be repeated. Some settings of a stream can never change (retention, persist mode): it returns the server's error then.
func (b *Bus) Apply(ctx context.Context) error {
	for _, want := range b.topology() {
		if err := b.apply(ctx, want); err != nil {
			return fmt.Errorf("apply %s: %w", want.Name, err)
		}
	}
	return nil
}

func (b *Bus) apply(ctx context.Context, want jetstream.StreamConfig) error {
	changes, err := b.compare(ctx, want)
	if err != nil || len(changes) == 0 {
		return err
	}
	if changes[0].Setting == "" {
		_, err := b.js.CreateStream(ctx, want)
		if errors.Is(err, jetstream.ErrStreamNameAlreadyInUse) { // another process was first, perhaps with other settings
			_, err = b.js.UpdateStream(ctx, want)
		}
		return err
	}
	have, err := b.js.Stream(ctx, want.Name)
	if err != nil {
		return err
	}
	is := have.CachedInfo().Config
	want.Placement, want.Metadata, want.Description = is.Placement, is.Metadata, is.Description
	_, err = b.js.UpdateStream(ctx, want)
	return err
}

func (b *Bus) compare(ctx context.Context, want jetstream.StreamConfig) (Changes, error) {
	have, err := b.js.Stream(ctx, want.Name)
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		return Changes{{Stream: want.Name}}, nil
	}
	if err != nil {
		return nil, err
	}
	is, err := settings(have.CachedInfo().Config)
	if err != nil {
		return nil, err
	}
	should, err := settings(want)
	if err != nil {
		return nil, err
	}
	var changes Changes
	for _, k := range slices.Sorted(maps.Keys(is)) {
		if _, ok := should[k]; !ok {
			should[k] = "unset"
		}
	}
	for _, k := range slices.Sorted(maps.Keys(should)) {
		if _, ok := is[k]; !ok {
			is[k] = "unset"
		}
		if is[k] != should[k] {
			changes = append(changes, Change{want.Name, k, is[k], should[k]})
		}
	}
	return changes, nil
}

// settings are a stream's settings as text, by the names of the server's API, without those that Clarify leaves alone and
// without those that are off.
func settings(c jetstream.StreamConfig) (map[string]string, error) {
	raw, err := json.Marshal(c)
	if err != nil {
		return nil, err
	}
	numbers := json.NewDecoder(bytes.NewReader(raw))
	numbers.UseNumber()
	var fields map[string]any
	if err := numbers.Decode(&fields); err != nil {
		return nil, err
	}
	out := map[string]string{}
	for k, v := range fields {
		switch k {
		case "name", "placement", "metadata", "description", "consumer_limits":
			continue
		case "max_age", "duplicate_window":
			v = duration(v)
		}
		if v != false && v != nil && v != "" {
			out[k] = fmt.Sprint(v)
		}
	}
	return out, nil
}

// duration writes the nanoseconds of the server's API as people do.
func duration(v any) any {
	n, ok := v.(json.Number)
	if !ok {
		return v
	}
	ns, err := n.Int64()
	if err != nil {
		return v
	}
	return time.Duration(ns).String()
}
