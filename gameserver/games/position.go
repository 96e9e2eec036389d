package games

import (
	"math"
	"time"

	"github.com/voxelpopuli/voxeld/motion"
	"github.com/voxelpopuli/voxeld/wire/sessionmsg"
)

const (
	// nearby is how far from where it was put a client may be when it goes on from there, in blocks.
	nearby = 4
	// putAgain is when a client that does not go on from where it was put is put there again.
	putAgain = 2 * time.Second
)

// Position is where a client's player is. Clients that do not confirm where they are put are ignored until they say
// that they are there. The client's lock guards it.
type Position struct {
	Pose motion.Pose // as the gateway has it
	put  time.Time   // when the client was put there, if it has not gone on from there; else zero
	sent time.Time   // when the session was last sent a move
}

// Begin begins a session.
func (p *Position) Begin(pose motion.Pose, now time.Time) { p.Pose, p.sent = pose, now }

// Put notes that the client is put where the player is.
func (p *Position) Put(now time.Time) { p.put = now }

// Unconfirmed reports whether the client has not gone on from where it was put: what it does is meant for another
// place.
func (p *Position) Unconfirmed() bool { return !p.put.IsZero() }

// Lost reports whether the client should be put there again.
func (p *Position) Lost(now time.Time) bool { return p.Unconfirmed() && now.Sub(p.put) >= putAgain }

// Move moves the player to a pose, if the client is known to be there, and goes on from where it was put. It reports
// whether the session is to be sent a move. That is so after a while even if the client stands still: otherwise it
// seems to be gone.
func (p *Position) Move(to motion.Pose, known bool, now time.Time, still time.Duration) bool {
	if !known || p.Unconfirmed() && distance(to, p.Pose) > nearby {
		to = p.Pose
	} else {
		p.put = time.Time{}
	}
	if to == p.Pose && now.Sub(p.sent) < still {
		return false
	}
	p.Pose, p.sent = to, now
	return true
}

// NoteStill notes that the session is sent where the client stands still, and returns that.
func (p *Position) NoteStill(now time.Time) motion.Pose {
	p.sent = now
	return p.Pose
}

// InWorld returns a pose, in the world's heights: a player may fall out of it in their client, or fly.
func InWorld(p motion.Pose) motion.Pose {
	p.Y = max(motion.MinY, min(motion.MaxY, p.Y))
	return p
}

// Days returns the time of day some time after a welcome, in days since a midnight.
func Days(w *sessionmsg.Welcome, after time.Duration) float64 {
	days := w.TimeOfDay / 1440
	if w.DayMS > 0 {
		days += float64(after.Milliseconds()) / float64(w.DayMS)
	}
	return days
}

func distance(a, b motion.Pose) float64 {
	return math.Sqrt((a.X-b.X)*(a.X-b.X) + (a.Y-b.Y)*(a.Y-b.Y) + (a.Z-b.Z)*(a.Z-b.Z))
}
