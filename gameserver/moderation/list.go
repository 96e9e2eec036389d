package moderation

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/policy"
)

// This file holds the commands that only list something.

// maxNamed is the most players whom /who names, here and elsewhere.
const maxNamed = 100

// lines returns the lines that answer a command.
func (s *Permissions) lines(name, rest string, g Gateway) (lines []string) {
	now := s.enforcer.wall()
	switch name {
	case "help":
		for _, c := range s.commands(s.verdict.Load().Role) {
			lines = append(lines, strings.TrimSpace("/"+c.Name+" "+c.Usage)+" – "+c.Help)
		}
	case "time":
		minutes := int(g.TimeOfDay())
		lines = append(lines, fmt.Sprintf("It is %02d:%02d in the world.", minutes/60, minutes%60))
	case "requests":
		return s.requestLines()
	case "rollbacks":
		return s.rollbackLines()
	case "claims":
		return s.claimLines(rest, g.Pose().Block())
	case "roles":
		s.enforcer.Read(func(p *policy.State) {
			for _, m := range p.Roles().Members() {
				lines = append(lines, fmt.Sprintf("%s: %v", m.Label(), m.Role))
			}
			for _, d := range p.Roles().Defined() {
				lines = append(lines, "Role "+d.Describe())
			}
			lines = append(lines, fmt.Sprintf("All others: %v, guests: %v", p.Settings().Players, p.Settings().Guests))
		})
	case "bans":
		s.enforcer.Read(func(p *policy.State) {
			for _, it := range p.Sanctions(now) {
				lines = append(lines, it.Line(now))
			}
		})
		if len(lines) == 0 {
			lines = append(lines, "Nobody is banned or muted.")
		}
	case "warps":
		var warps []string
		s.enforcer.Read(func(p *policy.State) { warps = p.Warps().Names() })
		if len(warps) == 0 {
			return []string{"There are no warps."}
		}
		for some := range slices.Chunk(warps, 10) {
			lines = append(lines, strings.Join(some, ", "))
		}
	}
	return lines
}

// requestLines lists the requests that wait for a moderator: to moderators all, to players theirs.
func (s *Permissions) requestLines() (lines []string) {
	s.enforcer.Read(func(p *policy.State) {
		all := p.RequestsOf(s.who.ClaimID())
		if s.verdict.Load().Role.AtLeast(policy.Moderator) {
			all = p.Requests()
		}
		for _, r := range all {
			lines = append(lines, r.String())
		}
	})
	if len(lines) == 0 {
		lines = append(lines, "No requests wait for a moderator.")
	}
	return lines
}

// listPlayers answers with who plays, here and on the other nodes.
func (s *Permissions) listPlayers(g Gateway) {
	s.background(g, func(ctx context.Context) []string {
		here := slices.Sorted(slices.Values(g.PlayerNames()))
		s.notice("On this node: " + namesOf(here, uint64(len(here))) + ".")
		if names, players := g.Elsewhere.List(ctx); players > 0 {
			return []string{"On other nodes: " + namesOf(names, players) + "."}
		}
		return nil
	})
}

// namesOf returns names as a list, and how many players are not named.
func namesOf(names []string, players uint64) string {
	names = names[:min(len(names), maxNamed)]
	text := strings.Join(names, ", ")
	if more := players - min(players, uint64(len(names))); more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

// claimLines answers the command claims: those of the player, or of another one, and the one at a place.
func (s *Permissions) claimLines(who string, at grid.Pos) (lines []string) {
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
