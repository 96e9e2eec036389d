package gameserver

import (
	"github.com/voxelpopuli/voxeld/wire"
	"github.com/voxelpopuli/voxeld/wire/notice"
	"github.com/voxelpopuli/voxeld/wire/sessionmsg"
)

// nobodyNear is the notice to a player whose line nobody else was shown; once in a session.
var nobodyNear = sessionmsg.Notice(notice.New("nobody_near", "Nobody is near enough to read that. /world TEXT writes to all players."))

// handleChat sends a chat message to everybody who sees the player, or says why it does not.
func (s *session) handleChat(m sessionmsg.Chat) error {
	why, err := s.say(m.Text)
	s.permissions.Tell(why)
	return err
}

// say shows a line to everybody who sees the player, or returns why it does not. An error ends the session.
func (s *session) say(text string) (why, err error) {
	if !s.limits.chat.Allow() {
		return nil, s.permissions.TooFast()
	}
	if why := s.permissions.Mute(); why != nil {
		return why, nil
	}
	if len(text) > wire.MaxChat { // with the prefix of an emote
		return notice.New("long_line", "that is too long: a line has at most {most} bytes", wire.MaxChat), nil
	}
	if !s.sendEvent(text, nil) {
		return notice.New("line_not_sent", "The land here cannot be reached at the moment; that line was not sent."), nil
	}
	if s.alone.Load() && !s.toldAlone {
		s.toldAlone = true
		s.out.Send(nobodyNear)
	}
	return nil, nil
}
