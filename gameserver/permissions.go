package gameserver

import (
	"context"
	"strings"

	"golang.org/x/time/rate"

	"github.com/voxelpopuli/voxeld/player"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
	"github.com/voxelpopuli/voxeld/wire/sessionmsg"
)

// This file connects the gateway with package moderation.

// judgePlayers applies changes of the policy to the players here, until ctx ends: those who may not play any more are
// disconnected.
func (g *Gateway) judgePlayers(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-g.enforcer.Changed:
		}
		g.enforcer.Refresh()
		g.legacy.EndRefused()
		g.legacy.SetEdits()
		for _, s := range g.sessions.All() {
			if refused := s.permissions.Judge(); refused != nil {
				s.out.End(failureOf(refused))
				continue
			}
			s.limits.edit.SetLimit(s.editRate())
		}
	}
}

// announce shows a line to all players here.
func (g *Gateway) announce(text string) {
	for _, s := range g.sessions.All() {
		s.out.Send(sessionmsg.Notice{Text: text})
	}
}

// editRate returns how many blocks a second the player may change.
func (s *session) editRate() rate.Limit { return s.permissions.Edits(s.g.settings.Load().Edits()) }

// here is a gateway as package elsewhere knows it.
type here struct{ g *Gateway }

// PlayerNames returns the names of the players here.
func (h here) PlayerNames() (all []string) {
	for _, p := range h.g.playersHere() {
		all = append(all, p.Name)
	}
	return all
}

// names returns the names of the players here and on other nodes, and how many there are.
func (h here) names(ctx context.Context) ([]string, uint64) {
	others, players := h.g.Elsewhere.List(ctx)
	here := h.PlayerNames()
	return append(here, others...), players + uint64(len(here))
}

// FindPlayer returns the player here whom others see under the name, in any case. A registered name is only its
// owner's.
func (h here) FindPlayer(name string) (nodemsg.FoundPlayer, bool) {
	owner, registered := h.OwnerOf(name)
	for _, p := range h.g.playersHere() {
		if strings.EqualFold(p.Name, name) && (!registered || p.Player == owner) {
			return nodemsg.FoundPlayer{Player: p.Player, Name: p.Name, Pose: p.Pose}, true
		}
	}
	return nodemsg.FoundPlayer{}, false
}

// ShowLine shows a private line to a player here. It reports false if they have no session, or may not be shown it.
func (h here) ShowLine(line nodemsg.PrivateLine) bool {
	s := h.g.sessions.Of(line.To)
	if s == nil || !s.place.joined() || !h.g.enforcer.MayWrite(line.From, line.Name, line.Guest) {
		return false
	}
	s.permissions.ShowLine(line)
	return true
}

// ShowLine shows a line to a player of the gateway on a node.
func (g *Gateway) ShowLine(ctx context.Context, peer string, line nodemsg.PrivateLine) {
	if peer == g.Peer {
		here{g}.ShowLine(line)
	} else {
		g.Elsewhere.ShowAt(ctx, peer, line)
	}
}

// ShowWorldLine shows a line of another gateway to all players here, after all that it follows.
func (h here) ShowWorldLine(line nodemsg.WorldLine) {
	if h.g.enforcer.MayWrite(line.Player, line.Name, line.Guest) {
		h.g.world.accept(line)
	}
}

// OwnerOf returns the player to whom a name is registered, in any case.
func (h here) OwnerOf(name string) (player.ID, bool) { return h.g.enforcer.OwnerOf(name) }
