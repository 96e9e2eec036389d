package classicube

import (
	"regexp"
	"strings"

	"golang.org/x/text/encoding/charmap"
)

// Text of Classic is in code page 437, in lines of at most 64 bytes. An ampersand before a hexadecimal digit sets the
// colour.

// Colours of text.
const (
	colourNotice = "&e"
	colourName   = "&b"
	colourChat   = "&f"
)

const (
	// maxLines is the most lines that one message is shown in.
	maxLines = 12
	// continued begins each further line of a message.
	continued = "&7> &f"
)

// decodeText returns the text of a packet, without what fills it up.
func decodeText(b []byte) string { return strings.TrimRight(decodeBytes(b), " ") }

func decodeBytes(b []byte) string {
	var text strings.Builder
	for _, c := range b {
		if c < ' ' || c == 0x7f {
			c = ' '
		}
		text.WriteRune(charmap.CodePage437.DecodeByte(c))
	}
	return text.String()
}

// encodeText returns a text in code page 437. Without its upper half, as clients without FullCP437 have it, and for
// what it lacks there are question marks.
func encodeText(t string, upperHalf bool) []byte {
	b := make([]byte, 0, len(t))
	for _, r := range t {
		c, known := charmap.CodePage437.EncodeRune(r)
		if !known || c < ' ' || c >= 0x7f && !upperHalf {
			c = '?'
		}
		b = append(b, c)
	}
	return b
}

// typedColour is a colour code that players can type.
var typedColour = regexp.MustCompile("[&%][0-9a-fA-F]")

// stripColours removes the colour codes that players can type.
func stripColours(t string) string { return typedColour.ReplaceAllString(t, "") }

// escape makes a text of others safe: an ampersand would change colours, or crash old clients.
func escape(t string) string { return strings.ReplaceAll(t, "&", "+") }

// wrap divides an encoded text, which may have colour codes, into lines, at spaces where there are any.
func wrap(text []byte) (lines [][]byte) {
	room := textBytes
	var line []byte
	for len(text) > 0 && len(lines) < maxLines {
		n := min(len(text), room)
		if n < len(text) {
			if space := strings.LastIndexByte(string(text[:n]), ' '); space > room/2 {
				n = space
			} else if text[n-1] == '&' {
				n-- // a code must not be cut in two
			}
		}
		line = append(line, text[:n]...)
		if line[len(line)-1] == '&' {
			line[len(line)-1] = '+'
		}
		lines = append(lines, line)
		text = []byte(strings.TrimLeft(string(text[n:]), " "))
		line, room = []byte(continued), textBytes-len(continued)
	}
	return lines
}
