package moderation

import (
	"context"
	"strings"

	"github.com/voxelpopuli/voxeld/mod"
	"github.com/voxelpopuli/voxeld/player"
	"github.com/voxelpopuli/voxeld/policy"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
	"github.com/voxelpopuli/voxeld/wire/notice"
	"github.com/voxelpopuli/voxeld/wire/sessionmsg"
)

// message shows a line to one player, here or on another node, or returns why it does not.
func (s *Permissions) message(rest string, g Gateway) error {
	name, text, _ := strings.Cut(rest, " ")
	line := nodemsg.PrivateLine{From: s.who.Player, Name: s.who.Name, Guest: s.who.Guest, Text: strings.TrimSpace(text)}
	if line.Text == "" || (nodemsg.FindPlayer{Name: name}).Valid() != nil {
		return policy.ErrUsage
	}
	if why := s.Mute(); why != nil {
		return why
	}
	if it, here := g.FindPlayer(name); here {
		line.To = it.Player
		s.confirm(it.Name, line, g.ShowLine(line))
		return nil
	}
	s.background(g, func(ctx context.Context) []notice.Notice {
		known, shown, err := g.Elsewhere.Show(ctx, name, line)
		if err != nil {
			return []notice.Notice{sentence(err)}
		}
		s.confirm(known, line, shown)
		return nil
	})
	return nil
}

// reply shows a line to whom the player exchanged the last private line with, or returns why it does not.
func (s *Permissions) reply(text string, g Gateway) error {
	s.mu.Lock()
	to := s.mu.correspondent
	s.mu.Unlock()
	if to == "" {
		return notice.New("no_correspondent", "nobody has written to you yet: /msg NAME TEXT writes to a player")
	}
	return s.message(to+" "+text, g)
}

// confirm shows the author of a line that it was shown to its recipient, or tells them that it was not.
func (s *Permissions) confirm(to string, line nodemsg.PrivateLine, shown bool) {
	if !shown {
		s.notice(notice.New("no_reader", "Nobody called {name} is playing who can read messages.", to))
		return
	}
	s.setCorrespondent(to)
	s.send(sessionmsg.Line{Channel: sessionmsg.ChannelTo, Name: to, Text: line.Text})
}

// ShowLine shows the player a private line.
func (s *Permissions) ShowLine(line nodemsg.PrivateLine) {
	s.setCorrespondent(line.Name)
	s.send(sessionmsg.Line{Channel: sessionmsg.ChannelFrom, Player: line.From.String(), Name: line.Name, Text: line.Text})
}

func (s *Permissions) setCorrespondent(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mu.correspondent = name
}

// IsService reports whether an author is a service.
func (e *Enforcer) IsService(author player.ID) (is bool) {
	e.Read(func(p *policy.State) { is = p.Service(author) != nil })
	return is
}

// MayWrite reports whether players here may be shown what somebody on another node has written: they are neither muted
// nor banned, and if the name is registered, it is theirs. They may be a service or a mod.
func (e *Enforcer) MayWrite(author player.ID, name string, guest bool) (may bool) {
	e.Read(func(p *policy.State) {
		now := e.wall()
		if m, is := p.ModNamed(name); is && author == mod.Author(name) {
			may = !m.Off
			return
		}
		owner, registered := p.OwnerOf(name)
		v, service := p.Judge(policy.Subject{Player: author, Name: name, Guest: guest}, now), p.Service(author)
		may = (!registered || owner == author) && v.Mute == nil && v.Ban == nil
		if service != nil {
			may = may && service.May(policy.ScopeChat, now)
		} else {
			may = may && v.MayJoin()
		}
	})
	return may
}
