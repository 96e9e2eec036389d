package gameserver

import (
	"github.com/voxelpopuli/voxeld/chunk"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
	"github.com/voxelpopuli/voxeld/wire/sessionmsg"
)

// handleStance notes the client's stance; dispatch applies it.
func (s *session) handleStance(m sessionmsg.Stance) {
	held := chunk.Block(m.Held)
	if !held.Known() {
		held = chunk.Air
	}
	s.stance = nodemsg.Stance{Held: held, Sneaks: m.Sneaks}
}

// changeStance shows others the client's newest stance, unless they were shown many of late: then one of the next
// messages does.
func (s *session) changeStance() {
	if s.stance != s.body.Stance && s.limits.stance.Allow() {
		s.body.Stance = s.stance
		s.bodySub.SetStance(s.body.Player, s.stance, s.clock.Done(), s)
	}
}
