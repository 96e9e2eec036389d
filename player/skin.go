package player

import (
	"fmt"
	"strconv"
)

// Skin is how a player has chosen to look; 0 is no choice. The high 8 bits are a pattern, then 12 are the main colour
// and 12 the second one, each red, green and blue in 4 bits. Every number is valid: clients draw patterns that they do
// not know plain.
type Skin uint32

// ParseSkin parses the hexadecimal digits of a skin. The empty text is no choice.
func ParseSkin(text string) (Skin, error) {
	if text == "" {
		return 0, nil
	}
	n, err := strconv.ParseUint(text, 16, 32)
	if err != nil {
		return 0, fmt.Errorf("parse skin %.20q: want hexadecimal digits, at most ffffffff", text)
	}
	return Skin(n), nil
}
