package wire

import (
	"strings"
	"testing"
)

func TestCheckChat(t *testing.T) {
	for text, may := range map[string]bool{
		"hello": true, "ö 👩\u200d🌾": true, strings.Repeat("x", MaxChat): true,
		"newer than Unicode 15: \U0001fae9": false, "": false, " ": false, "a\tb": false, "a\u200bb": false, "a\u202eb": false, "a\u2028b": false, "\ue000": false, "\U0001f3f4\U000e0067": false,
		"\xff": false, strings.Repeat("x", MaxChat+1): false,
	} {
		if err := CheckChat(text); (err == nil) != may {
			t.Errorf("%q in the chat: %v", text, err)
		}
	}
	for text, want := range map[string]string{"ö 👩\u200d🌾": "ö 👩\u200d🌾", "\U0001fae9": "?", "a\tb\u202e": "a\tb\u202e"} {
		if got := Known(text); got != want {
			t.Errorf("%q is shown as %q, want %q", text, got, want)
		}
	}
}

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
