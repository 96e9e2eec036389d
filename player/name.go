package player

import (
	"crypto/sha256"
	"encoding/base32"
	"fmt"
	"strings"
)

// MaxName is the longest name, in characters.
const MaxName = 20

// CheckName returns an error unless the name is 1 to MaxName ASCII letters, digits, '_' and '-'.
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

// NameFrom returns the valid name nearest to a text: every other character becomes '_', the part beyond MaxName is cut
// off, and the empty text becomes "guest".
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

// suffixBytes is the length of the hash that distinguishes guests of the same name: three characters of base 32.
const suffixBytes = 2

// Namesake returns the displayed name of a guest whose own name is in use: the name and a suffix of four characters,
// which is the same on every node for the same name, address and number (of several guests at that address). The suffix
// is too short to reveal the address.
func Namesake(name, address string, number int) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "namesake\x00%s\x00%s\x00%d", name, address, number))
	suffix := base32.StdEncoding.EncodeToString(sum[:suffixBytes])[:3]
	return name[:min(len(name), MaxName-1-len(suffix))] + "-" + strings.ToLower(suffix)
}
