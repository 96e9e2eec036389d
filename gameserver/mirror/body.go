package mirror

import (
	"github.com/voxelpopuli/voxeld/motion"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
)

// body is a player's body and its owner, the last subscriber to enter it: an older connection of the player that is still ending
// does not remove it.
type body struct {
	nodemsg.Body // its Velocity matters only in messages to the region
	sub          *Subscription
	owner        Subscriber
	predictor    motion.Predictor
}

// predictionCrowd is the maximum number of players in a chunk for predictions to be sent. The region receives updates of a larger
// crowd in each tick anyway, and players in a crowd must be shown exactly.
const predictionCrowd = 16

// regionHas reports whether the region has exactly the newest pose, and does not extrapolate the player. The subscription's lock
// is held, as below.
func (b *body) regionHas() bool { return b.predictor.LastSent() == b.Pose && !b.predictor.Predicts() }

// predictable reports whether the region is sent predictions for the body.
func (b *body) predictable() bool {
	if !b.owner.Predictable() || b.sub.m.Overlay.Enabled() {
		return false
	}
	c := b.sub.mu.chunks[b.Pose.Chunk()]
	return c == nil || len(c.occupants) <= predictionCrowd
}

// sendStanding sends the region that the body stands where it is.
func (b *body) sendStanding() {
	b.predictor.CommitStanding(b.sub.m.Now())
	b.sendMove(false)
	b.sub.wake.Set()
}

// sendMove puts the newest pose and velocity into the next message.
func (b *body) sendMove(straight bool) {
	sub := b.sub
	if !sub.mu.out.linked {
		return // the next link begins with it
	}
	m := nodemsg.BodyMove{Player: b.Player, Pose: b.Pose, Velocity: b.predictor.CommitMove(straight)}
	sub.mu.diverged = sub.mu.diverged || m.Velocity.Moving()
	if sub.mu.out.move(m) {
		sub.m.metrics.movesSent.Inc()
	}
}
