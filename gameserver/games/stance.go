package games

import (
	"github.com/voxelpopuli/voxeld/chunk"
	"github.com/voxelpopuli/voxeld/wire/sessionmsg"
)

// Stance is the stance of a client's player as the session has it; zero when a session begins. The client's lock guards
// it.
type Stance struct{ sent sessionmsg.Stance }

// Change returns the message that changes the stance; nil if it is the same.
func (s *Stance) Change(held chunk.Block, sneaks bool) sessionmsg.FromClient {
	now := sessionmsg.Stance{Held: uint16(held), Sneaks: sneaks}
	if now == s.sent {
		return nil
	}
	s.sent = now
	return now
}
