package gameserver

import (
	"time"

	"github.com/voxelpopuli/voxeld/wire"
	"github.com/voxelpopuli/voxeld/world"
)

// This file is how a session whose player only walks is left to the poller, and when it is not.

// Whoever does something else than to walk will go on so, and is not to wait for the poller's rounds: for actedFor his session reads by
// itself. So it does where land is about to be asked for: the next foresight moves, if they are like the last one, lead to another chunk.
const (
	actedFor  = 5 * time.Second
	foresight = 2
)

// walk is what a session knows of how its player goes on. It belongs to the session's reader, which is the poller while that reads.
type walk struct {
	heard  time.Duration // by the gateway's clock: when silent was set
	acted  time.Duration // likewise: when the client last did something else than to move
	nears  bool          // see foresee
	lodged bool          // the poller reads
}

// stroll lets the poller read until something comes that it leaves to the session.
func (s *session) stroll() {
	s.lodged = true
	s.g.poller.lodge(s.conn, s.stride)
	if s.lodged = false; !s.nears { // there is no poller for him, or something else has come than a step
		s.acted = s.g.now()
	}
}

// moving tells whether a message is a move in CBOR.
func (s *session) moving(data []byte) bool {
	return s.binary && len(data) > 0 && data[0] == wire.ClientMove
}

// stride is what a lodged session hears of: it takes a step within its chunk, and leaves everything else to listen. The poller
// runs it for all sessions, so that nothing here may wait or take long. It tells whether the session may stay.
func (s *session) stride(data []byte) (taken, stay bool) {
	if !s.moving(data) {
		return false, false
	}
	pose, err := wire.DecodeMove(data)
	if err != nil || world.ChunkOf(pose) != world.ChunkOf(s.where()) {
		return false, false
	}
	if s.move(pose) != nil {
		return false, false
	}
	s.receives(data)
	return true, !s.nears
}

// foresee looks where a player will be who goes on as from one pose to the next.
func (s *session) foresee(last, pose wire.Pose) {
	ahead := pose
	ahead.X += foresight * (pose.X - last.X)
	ahead.Z += foresight * (pose.Z - last.Z)
	s.nears = world.ChunkOf(ahead) != world.ChunkOf(pose)
}

// tell has a region told what its feed has for it.
func (s *session) tell(f *feed) {
	if s.lodged {
		s.g.poller.tell(f)
	} else {
		wakeUp(f.wake)
	}
}
