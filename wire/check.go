package wire

import (
	"math"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/voxelpopuli/voxeld/grid"
)

// maxXZ bounds x and z of a pose, in blocks.
const maxXZ = float64(grid.Limit) * grid.ChunkSize

// Valid returns an error unless the pose is finite and inside the largest possible world.
func (p Pose) Valid() error {
	if err := p.check(); err != nil {
		return err
	}
	return nil
}

func (p Pose) check() *Error {
	if !finite(p.X) || !finite(p.Y) || !finite(p.Z) || !finite(float64(p.Yaw)) || !finite(float64(p.Pitch)) {
		return refuse(FailBadValue, "a pose must be finite")
	}
	if p.X < -maxXZ || p.X >= maxXZ || p.Z < -maxXZ || p.Z >= maxXZ || p.Y < MinY || p.Y > MaxY {
		return refuse(FailBadValue, "(%g, %g, %g) is out of the world", p.X, p.Y, p.Z)
	}
	return nil
}

func finite(v float64) bool { return !math.IsNaN(v) && !math.IsInf(v, 0) }

// CheckChat returns an error unless the text is a valid chat line: 1 to MaxChat bytes of visible UTF-8. It refuses
// control characters and bidirectional formatting marks.
func CheckChat(text string) error {
	if err := checkChat(text); err != nil {
		return err
	}
	return nil
}

func checkChat(text string) *Error {
	if len(text) > MaxChat {
		return refuse(FailBadValue, "a chat line has at most %d bytes", MaxChat)
	}
	if strings.TrimSpace(text) == "" {
		return refuse(FailBadValue, "a chat line must not be blank")
	}
	if !utf8.ValidString(text) {
		return refuse(FailBadJSON, "a chat line must be valid UTF-8")
	}
	for _, r := range text {
		const joiner = '\u200d' // joins composed emoji
		if !unicode.IsGraphic(r) && r != joiner {
			return refuse(FailBadValue, "a chat line must not contain the character %U", r)
		}
	}
	return nil
}
