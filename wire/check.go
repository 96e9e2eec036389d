package wire

import (
	"math"
	"net"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/voxelpopuli/voxeld/motion"
)

// CheckPose returns an *Error unless the pose is valid.
func CheckPose(p motion.Pose) error {
	if err := p.Valid(); err != nil {
		return Refuse(FailBadValue, "%v", err)
	}
	return nil
}

// Finite reports whether v is a number and not infinite.
func Finite(v float64) bool { return !math.IsNaN(v) && !math.IsInf(v, 0) }

// CheckChat returns an *Error unless the text is a valid chat line: 1 to MaxChat bytes of visible UTF-8. It refuses
// control characters and bidirectional formatting marks.
func CheckChat(text string) error {
	if len(text) > MaxChat {
		return Refuse(FailBadValue, "a chat line has at most %d bytes", MaxChat)
	}
	if strings.TrimSpace(text) == "" {
		return Refuse(FailBadValue, "a chat line must not be blank")
	}
	if !utf8.ValidString(text) {
		return Refuse(FailBadJSON, "a chat line must be valid UTF-8")
	}
	for _, r := range text {
		if !visible(r) {
			return Refuse(FailBadValue, "a chat line must not contain the character %U", r)
		}
	}
	return nil
}

// Known returns a text with ? for each character that this version of Unicode does not have, such as an emoji that is
// newer.
func Known(text string) string {
	return strings.Map(func(r rune) rune {
		if visible(r) || unicode.In(r, unicode.Cc, unicode.Cf, unicode.Co, unicode.Cs, unicode.Zl, unicode.Zp) {
			return r
		}
		return '?'
	}, text)
}

// visible reports whether players may write a character: no control character, and no mark of formatting.
func visible(r rune) bool {
	const joiner = '\u200d' // joins composed emoji
	return unicode.IsGraphic(r) || r == joiner
}

// CheckSignSize returns an *Error unless the text has at most MaxSignText bytes of UTF-8. What is stored is only
// checked for that: which characters are visible depends on the version of Unicode, and all nodes must decide the same.
func CheckSignSize(text string) error {
	if len(text) > MaxSignText || !utf8.ValidString(text) {
		return Refuse(FailBadValue, "the text of a sign has at most %d bytes of UTF-8", MaxSignText)
	}
	return nil
}

// CheckSign returns an *Error unless players may write the text on a sign: at most MaxSignLines lines of at most
// MaxSignLine visible characters each, with a line feed between them. A blank sign has the empty text; any other is not
// blank.
func CheckSign(text string) error {
	if err := CheckSignSize(text); err != nil || text == "" {
		return err
	}
	switch {
	case strings.Count(text, "\n") >= MaxSignLines:
		return Refuse(FailBadValue, "a sign has at most %d lines", MaxSignLines)
	case strings.TrimSpace(text) == "":
		return Refuse(FailBadValue, "the text of a sign must not be blank: leave it out")
	}
	for line := range strings.SplitSeq(text, "\n") {
		if utf8.RuneCountInString(line) > MaxSignLine {
			return Refuse(FailBadValue, "a line of a sign has at most %d characters", MaxSignLine)
		}
		for _, r := range line {
			if !visible(r) {
				return Refuse(FailBadValue, "a sign must not contain the character %U", r)
			}
		}
	}
	return nil
}

// CheckHostPort checks the form of an address that other nodes can dial.
func CheckHostPort(address string) error {
	host, port, err := net.SplitHostPort(address)
	if err != nil || host == "" || len(address) > MaxAddress || !printable(address) {
		return Refuse(FailBadValue, "%q is not host:port", Clip([]byte(address)))
	}
	if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
		return Refuse(FailBadValue, "%q is not a port", Clip([]byte(port)))
	}
	return nil
}

// printable reports whether the text is printable ASCII without spaces.
func printable(text string) bool {
	for i := range len(text) {
		if text[i] <= ' ' || text[i] > '~' {
			return false
		}
	}
	return true
}

// CheckText bounds a text for people.
func CheckText(text string) error {
	if len(text) > MaxErrorText || !utf8.ValidString(text) {
		return Refuse(FailBadValue, "a text has at most %d bytes of UTF-8", MaxErrorText)
	}
	return nil
}
