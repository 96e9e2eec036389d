package moderation

import (
	"context"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/policy"
	"github.com/voxelpopuli/voxeld/wire"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
	"github.com/voxelpopuli/voxeld/wire/sessionmsg"
)

const (
	// commandTime bounds the time that a command waits for the catalog.
	commandTime = 15 * time.Second
	// maxLines is the most lines that answer a command.
	maxLines = 40
)

// Gateway is what commands need of the gateway.
type Gateway struct {
	Names      func() []string // of the players on this node
	Spawn      func()          // brings the player to where new players start
	Place      func() grid.Pos // where the player is
	Background func(task func(context.Context))
}

// Command carries out a command of the player, in the goroutine that handles their messages. What has to wait for the catalog is run in the
// background, one at a time. An error ends the session.
func (s *Standing) Command(m sessionmsg.Command, g Gateway) error {
	name, local := policy.Local(m.Text)
	switch {
	case local:
		s.answer(name, m.Text, g)
		return nil
	case s.key == nil:
		s.notice("Only players with a key may use that command.")
		return nil
	}
	signature, err := hex.DecodeString(m.Signature)
	if err != nil || m.Signature == "" {
		return &wire.Error{Code: wire.FailBadSignature, Message: "sign the command with the key of the player"}
	}
	if !s.busy.CompareAndSwap(false, true) {
		s.notice("Wait until your last command is carried out.")
		return nil
	}
	act := nodemsg.Act{Key: s.key, Seq: m.Seq, Name: s.who.Name, Text: m.Text, Signature: signature}
	g.Background(func(ctx context.Context) {
		defer s.busy.Store(false)
		ctx, cancel := context.WithTimeout(ctx, commandTime)
		defer cancel()
		text, err := s.enforcer.Enter(ctx, act)
		switch {
		case err != nil:
			s.notice(sentence(err.Error()))
		case text != "":
			s.notice(text)
		}
	})
	return nil
}

// sentence returns an error as a sentence. A command at its beginning stays as it is.
func sentence(text string) string {
	if strings.HasPrefix(text, "/") {
		return text
	}
	return strings.ToUpper(text[:1]) + strings.TrimSuffix(text[1:], ".") + "."
}

// answer answers a command that changes nothing.
func (s *Standing) answer(name, text string, g Gateway) {
	role := s.verdict.Load().Role
	if !slices.ContainsFunc(s.commands(role), func(c policy.Command) bool { return c.Name == name }) {
		s.notice(fmt.Sprintf("/%s is not for the role %v.", name, role))
		return
	}
	if name == "spawn" {
		g.Spawn()
		return
	}
	_, rest, _ := strings.Cut(strings.TrimSpace(text), " ")
	lines := s.lines(name, strings.TrimSpace(rest), role, g)
	for _, line := range lines[:min(len(lines), maxLines)] {
		s.notice(line)
	}
	if more := len(lines) - maxLines; more > 0 {
		s.notice(fmt.Sprintf("… and %d more.", more))
	}
}

func (s *Standing) lines(name, rest string, role policy.Role, g Gateway) (lines []string) {
	switch name {
	case "help":
		for _, c := range s.commands(role) {
			lines = append(lines, strings.TrimSpace("/"+c.Name+" "+c.Usage)+" – "+c.Help)
		}
	case "who":
		lines = append(lines, fmt.Sprintf("On this node: %s.", strings.Join(slices.Sorted(slices.Values(g.Names())), ", ")))
	case "roles":
		s.enforcer.Read(func(p *policy.State) {
			for _, m := range p.Members() {
				lines = append(lines, fmt.Sprintf("%s: %v", m.Label(), m.Role))
			}
			lines = append(lines, fmt.Sprintf("All others: %v, guests: %v", p.Settings().Players, p.Settings().Guests))
		})
	case "claims":
		return s.claimLines(rest, g.Place())
	case "bans":
		s.enforcer.Read(func(p *policy.State) {
			for _, it := range p.Sanctions(s.enforcer.wall()) {
				lines = append(lines, it.Line(s.enforcer.wall()))
			}
		})
		if len(lines) == 0 {
			lines = append(lines, "Nobody is banned or muted.")
		}
	}
	return lines
}

// claimLines answers the command claims: those of the player, or of another one, and the one at a place.
func (s *Standing) claimLines(who string, at grid.Pos) (lines []string) {
	s.enforcer.Read(func(p *policy.State) {
		owner := s.who.ClaimID()
		if who != "" {
			var known bool
			if owner, known = p.OwnerOf(who); !known {
				lines = append(lines, fmt.Sprintf("The name %s is registered to nobody.", who))
				return
			}
		}
		if there := p.Claims().At(at); there != nil && there.Owner != owner {
			lines = append(lines, "Here: "+p.DescribeClaim(there))
		}
		for _, c := range p.Claims().Of(owner) {
			lines = append(lines, p.DescribeClaim(c))
		}
	})
	if len(lines) == 0 {
		lines = append(lines, "There are no claims to list.")
	}
	return lines
}
