package player

import "fmt"

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
