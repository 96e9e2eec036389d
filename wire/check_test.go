package wire

import (
	"strings"
	"testing"
)

func TestCheckSign(t *testing.T) {
	line := strings.Repeat("\U0001f30d", MaxSignLine)
	full := strings.Repeat(line+"\n", MaxSignLines-1) + line
	for text, may := range map[string]bool{
		"": true, "home": true, "to the\nharbour": true, "\n\n\nlow": true, full: true, "ö 👩\u200d🌾": true,
		" ": false, "\n": false, "a\nb\nc\nd\ne": false, line + "x": false, full + "\n": false, "a\tb": false, "a\rb": false, "a\x00": false, "\xff": false,
		"a\u202eb": false, "a\u2028b": false,
	} {
		if err := CheckSign(text); (err == nil) != may {
			t.Errorf("%q on a sign: %v", text, err)
		}
	}
	if len(full) != MaxSignText {
		t.Errorf("the longest text has %d bytes, not %d", len(full), MaxSignText)
	}
}
