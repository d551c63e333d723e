package channels

import (
	"fmt"
	"strings"
	"unicode"
)

// Plain makes one line of untrusted text that shows what it is: characters that have no shape, turn the direction of the
// text or hide others (controls, bidirectional overrides, zero-width, tags) are written as their code points, and invalid
// UTF-8 as U+FFFD. It escapes nothing for any markup: that is the surface's.
func Plain(s string) string { return reveal(s, false) }

// PlainLines is [Plain] for text of several lines.
func PlainLines(s string) string { return reveal(s, true) }

func reveal(s string, lines bool) string {
	clean := strings.ReplaceAll(strings.ToValidUTF8(s, "\ufffd"), "\r\n", "\n")
	if strings.IndexFunc(clean, lies) < 0 {
		return clean
	}
	var out strings.Builder
	for _, r := range clean {
		switch {
		case !lies(r), lines && (r == '\n' || r == '\t'):
			out.WriteRune(r)
		case r == '\n' || r == '\t':
			out.WriteByte(' ')
		default:
			fmt.Fprintf(&out, "[U+%04X]", r)
		}
	}
	return out.String()
}

// lies reports that a reader does not see the character as it is. The zero-width joiner and the variation selectors stay:
// scripts and emoji need them.
func lies(r rune) bool {
	const zeroWidthJoiner, zeroWidthNonJoiner = '\u200d', '\u200c'
	switch {
	case r == zeroWidthJoiner || r == zeroWidthNonJoiner || unicode.Is(unicode.Variation_Selector, r):
		return false
	case r == '\u00ad' || r == '\u115f' || r == '\u1160' || r == '\u3164' || r == '\uffa0':
		return true // soft hyphen and the Hangul fillers
	}
	return unicode.In(r, unicode.Cc, unicode.Cf, unicode.Zl, unicode.Zp, unicode.Co)
}
