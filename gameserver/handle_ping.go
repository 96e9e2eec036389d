package gameserver

import (
	"fmt"

	"github.com/voxelpopuli/voxeld/wire"
	"github.com/voxelpopuli/voxeld/wire/sessionmsg"
)

// handlePing answers a ping, which pages send every two seconds, and does what is due for players who stand still.
func (s *session) handlePing(m sessionmsg.Ping) error {
	if !s.limits.ping.Allow() {
		return &wire.Error{Code: wire.FailRate, Message: fmt.Sprintf("send at most %d pings a second", pingsPerSecond)}
	}
	s.out.Send(sessionmsg.Pong{Nonce: m.Nonce, TimeOfDay: s.g.timeOfDay()})
	if s.walk.teleport == nil { // who stands still sends no moves
		s.bringInside(s.place.pose())
	}
	if s.view.short && s.limits.view.Allow() {
		s.updateView()
	}
	return nil
}
