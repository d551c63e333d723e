package policy

import (
	_ "embed"
	"slices"
)

//go:embed demo.yaml
var demo []byte

// DemoText is the policy of `clarify dev`: a place to start from when writing one.
func DemoText() []byte { return slices.Clone(demo) }
