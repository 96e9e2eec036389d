package gameserver

import "github.com/voxelpopuli/voxeld/wire/sessionmsg"

// handleChat sends a chat message to everybody who sees the player.
func (s *session) handleChat(m sessionmsg.Chat) error {
	if !s.limits.chat.Allow() {
		return s.permissions.TooFast()
	}
	if why := s.permissions.Mute(); why != "" {
		s.sendText(why)
	} else if !s.sendEvent(m.Text, nil) {
		s.sendText("The land here cannot be reached at the moment; that line was not sent.")
	}
	return nil
}
