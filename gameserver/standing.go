package gameserver

import (
	"context"

	"github.com/voxelpopuli/voxeld/gameserver/moderation"
	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/wire/sessionmsg"
)

// This file connects the gateway with package moderation.

// judgePlayers applies changes of the policy to the players here, until ctx ends: those who may not play any more are disconnected.
func (g *Gateway) judgePlayers(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-g.enforcer.Changed:
		}
		g.enforcer.Refresh()
		g.legacy.EndRefused()
		for _, s := range g.placedSessions() {
			if refused := s.standing.Judge(); refused != nil {
				s.out.End(failureOf(refused))
			}
		}
	}
}

// announce shows a line to all players here.
func (g *Gateway) announce(text string) {
	for _, s := range g.placedSessions() {
		s.sendText(text)
	}
}

// names lists the players with a session here.
func (g *Gateway) names() (all []string) {
	for _, p := range g.Online() {
		all = append(all, p.Name)
	}
	return all
}

// command carries out a command of a player.
func (g *Gateway) command(s *session, m sessionmsg.Command) error {
	if !s.limits.command.Allow() {
		s.sendText("You send commands too fast; that one was not carried out.")
		return nil
	}
	return s.standing.Command(m, moderation.Gateway{
		Names: g.names, Spawn: func() { teleport(s, g.spawnPose()) },
		Place: func() grid.Pos { return s.place.pose().Block() },
		Background: func(task func(context.Context)) {
			g.run(func(ctx context.Context) {
				defer g.metrics.panics.Recover("query", func() { s.out.End(failureOf(errPanicked)) }, "player", s.body.Name)
				task(ctx)
			})
		},
	})
}
