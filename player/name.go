package player

import (
	"crypto/sha256"
	"encoding/base32"
	"fmt"
	"strings"
)

// MaxName is the longest name, in characters.
const MaxName = 20

// CheckName says why the name is none: nil for 1 to MaxName ASCII letters, digits, '_' and '-'.
func CheckName(name string) error {
	if len(name) < 1 || len(name) > MaxName {
		return fmt.Errorf("check name: %d bytes, want 1 to %d", len(name), MaxName)
	}
	for i := range len(name) {
		switch c := name[i]; {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', c == '_', c == '-':
		default:
			return fmt.Errorf("check name %q: only letters, digits, _ and - are allowed", name)
		}
	}
	return nil
}

// NameFrom returns the name that is nearest to a text that need not be one: every other character becomes '_', what is
// over MaxName is cut off, and the empty text becomes "guest".
func NameFrom(text string) string {
	var name strings.Builder
	for _, r := range text {
		if name.Len() == MaxName {
			break
		}
		c := string(r)
		if CheckName(c) != nil {
			c = "_"
		}
		name.WriteString(c)
	}
	if name.Len() == 0 {
		return "guest"
	}
	return name.String()
}

// suffixBytes is how much of a hash tells namesakes apart: three characters of base 32.
const suffixBytes = 2

// Namesake returns the name under which others see a guest whose own name somebody else has: the name and a suffix of
// four characters, which is the same on every node for guests of the same name, address and number (of several at
// that address). It is too short to find the address from it.
func Namesake(name, address string, number int) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "namesake\x00%s\x00%s\x00%d", name, address, number))
	suffix := base32.StdEncoding.EncodeToString(sum[:suffixBytes])[:3]
	return name[:min(len(name), MaxName-1-len(suffix))] + "-" + strings.ToLower(suffix)
}
