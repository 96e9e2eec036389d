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
		const joiner = '\u200d' // joins composed emoji
		if !unicode.IsGraphic(r) && r != joiner {
			return Refuse(FailBadValue, "a chat line must not contain the character %U", r)
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
