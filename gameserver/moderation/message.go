package moderation

import (
	"context"
	"strings"

	"github.com/voxelpopuli/voxeld/policy"
	"github.com/voxelpopuli/voxeld/wire"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
)

// message shows a line to one player, here or on another node, or returns why it does not.
func (s *Permissions) message(rest string, g Gateway) (why string) {
	name, text, _ := strings.Cut(rest, " ")
	line := nodemsg.PrivateLine{From: s.who.Player, Name: s.who.Name, Guest: s.who.Guest, Text: strings.TrimSpace(text)}
	if line.Text == "" || (nodemsg.FindPlayer{Name: name}).Valid() != nil {
		return wrongUsage
	}
	if why := s.Mute(); why != "" {
		return why
	}
	if it, here := g.FindPlayer(name); here {
		line.To = it.Player
		s.notice(confirmation(it.Name, line, g.ShowLine(line)))
		return ""
	}
	s.background(g, func(ctx context.Context) []string {
		known, shown, err := g.Elsewhere.Show(ctx, name, line)
		if err != nil {
			return []string{sentence(wire.ErrorText(err))}
		}
		return []string{confirmation(known, line, shown)}
	})
	return ""
}

// confirmation returns the text about a line for its author: that it was shown to its recipient, or not.
func confirmation(to string, line nodemsg.PrivateLine, shown bool) string {
	if shown {
		return "To " + to + ": " + line.Text
	}
	return "Nobody called " + to + " is playing who can read messages."
}

// MayShow reports whether players here may be shown a private line: its author is neither muted nor banned.
func (e *Enforcer) MayShow(line nodemsg.PrivateLine) bool {
	v := e.judge(policy.Subject{Player: line.From, Name: line.Name, Guest: line.Guest})
	return v.Mute == nil && v.MayJoin()
}
