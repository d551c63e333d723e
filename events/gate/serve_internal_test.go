package gate

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/clarify-broker/clarify/events"
)

func TestServe_what_becomes_of_a_release(t *testing.T) {
	refused := func(r events.Reason) error { return unclaimed(&Refused{Of: "claim", Why: r}, false) }
	again := func(r events.Reason) error { return unclaimed(&Refused{Of: "claim", Why: r}, true) }
	for name, tt := range map[string]struct {
		got   error
		later bool
	}{
		"done":                        {got: carried(nil, true)},
		"tool_failed":                 {got: carried(errors.New("crm is down"), true)},
		"unreported":                  {got: carried(&InDoubt{}, false)},
		"unreported_idempotent":       {got: carried(&InDoubt{}, true), later: true},
		"mismatch":                    {got: carried(&Mismatch{}, true)},
		"taken":                       {got: refused(events.Taken)},
		"taken_idempotent":            {got: again(events.Taken), later: true},
		"superseded":                  {got: again(events.StaleVersion)},
		"no_longer_released":          {got: refused(events.NotReleased)},
		"frozen":                      {got: refused(events.Frozen), later: true},
		"claim_unanswered":            {got: unclaimed(&Waiting{}, false), later: true},
		"recheck_failed":              {got: unclaimed(errors.New("crm is down"), false), later: true},
		"recheck_refused_elsewhere":   {got: unclaimed(fmt.Errorf("recheck: %w", &Refused{Why: events.Taken}), false), later: true},
		"gave_up_before_it_was_asked": {got: unclaimed(errand{}.notStarted(context.Canceled), false), later: true},
	} {
		if later := tt.got != nil && strings.HasPrefix(tt.got.Error(), "later: "); later != tt.later || tt.got != nil && !later {
			t.Errorf("%s: %v", name, tt.got)
		}
	}
}
