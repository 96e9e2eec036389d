package gameserver

import (
	"time"

	"github.com/voxelpopuli/voxeld/gameserver/mirror"
	"github.com/voxelpopuli/voxeld/motion"
	"github.com/voxelpopuli/voxeld/wire/sessionmsg"
)

// This file decides when a session whose player only walks is read by the poller, and when by itself.

// After anything but a move the session reads by itself for actedFor, since more of the same is likely and must not wait for the
// poller's rounds. It also does so where chunks are about to be requested: if the next foresight moves are like the last one,
// they lead to another chunk.
const (
	actedFor  = 5 * time.Second
	foresight = 2
)

// walkState is the state of a session that decides whether to park it. It belongs to the session's reader, which is the poller
// while the session is parked.
type walkState struct {
	timerSet   time.Duration // by the gateway's clock: when silent was set
	lastAction time.Duration // likewise: when the client last sent anything but a move
	nearBorder bool          // see foresee
	parked     bool          // the poller reads
}

// park lets the poller read until a message arrives that the session must handle.
func (s *session) park() {
	s.parked = true
	if line, ok := s.conn.(*lineConn); ok && line.in.Buffered() == 0 {
		s.g.poller.Park(line.socket(), s.handleParked)
	}
	if s.parked = false; !s.nearBorder { // the session cannot be parked, or the message is not a move
		s.lastAction = s.g.now()
	}
}

// handleParked is the park.Handler of a session: it applies a move within the chunk, and leaves everything else to listen.
func (s *session) handleParked(data []byte) (taken, stay bool) {
	if !s.codec.IsMove(data) {
		return false, false
	}
	pose, err := sessionmsg.DecodeMove(data)
	if err != nil || pose.Chunk() != s.currentPose().Chunk() {
		return false, false
	}
	if s.move(pose) != nil {
		return false, false
	}
	s.countMessage(data)
	return true, !s.nearBorder
}

// predictBorder checks where a player will be who goes on as from one pose to the next.
func (s *session) predictBorder(last, pose motion.Pose) {
	ahead := pose
	ahead.X += foresight * (pose.X - last.X)
	ahead.Z += foresight * (pose.Z - last.Z)
	s.nearBorder = ahead.Chunk() != pose.Chunk()
}

// flush flushes a subscription's message to its region.
func (s *session) flush(sub *mirror.Subscription) {
	if s.parked {
		s.g.poller.FlushAfterRound(sub)
	} else {
		sub.Wake()
	}
}
