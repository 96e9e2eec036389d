package moderation

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/policy"
	"github.com/voxelpopuli/voxeld/wire/notice"
)

// This file holds the commands that only list something.

// maxNamed is the most players whom /who names, here and elsewhere.
const maxNamed = 100

// lines returns the lines that answer a command.
func (s *Permissions) lines(name, rest string, g Gateway) (lines []notice.Notice) {
	now := s.enforcer.wall()
	switch name {
	case "help":
		return helpLines(s.commands(s.verdict.Load().Role), rest)
	case "time":
		minutes := int(g.TimeOfDay())
		lines = append(lines, notice.New("time_of_day", "It is {time} in the world.", fmt.Sprintf("%02d:%02d", minutes/60, minutes%60)))
	case "requests":
		return s.requestLines()
	case "rollbacks":
		return s.rollbackLines()
	case "claims":
		return s.claimLines(rest, g.Pose().Block())
	case "roles":
		s.enforcer.Read(func(p *policy.State) {
			for _, m := range p.Roles().Members() {
				lines = append(lines, notice.Plain(fmt.Sprintf("%s: %v", m.Label(), m.Role)))
			}
			for _, d := range p.Roles().Defined() {
				lines = append(lines, d.Line())
			}
			lines = append(lines, notice.New("other_roles", "All others: {players}, guests: {guests}", p.Settings().Players, p.Settings().Guests))
		})
	case "bans":
		s.enforcer.Read(func(p *policy.State) {
			for _, it := range p.Sanctions(now) {
				lines = append(lines, it.Line(now))
			}
		})
		if len(lines) == 0 {
			lines = append(lines, notice.New("no_sanctions", "Nobody is banned or muted."))
		}
	case "warps":
		var warps []string
		s.enforcer.Read(func(p *policy.State) { warps = p.Warps().Names() })
		if len(warps) == 0 {
			return []notice.Notice{notice.New("no_warps", "There are no warps.")}
		}
		for some := range slices.Chunk(warps, 10) {
			lines = append(lines, notice.Plain(strings.Join(some, ", ")))
		}
	}
	return lines
}

// helpLines explains the commands of a group, or one command; without a topic it lists all commands by group.
func helpLines(commands []policy.Command, topic string) (lines []notice.Notice) {
	topic = strings.ToLower(strings.TrimPrefix(topic, "/"))
	byGroup := make(map[string][]string)
	for _, c := range commands {
		byGroup[c.Group] = append(byGroup[c.Group], "/"+c.Name)
		if topic == c.Name || topic == c.Group {
			lines = append(lines, notice.Plain(strings.TrimSpace("/"+c.Name+" "+c.Usage)+" – "+c.Help))
		}
	}
	if topic != "" {
		if len(lines) == 0 {
			lines = append(lines, notice.New("no_help", "There is no command or group {topic} that you may use: /help lists those that you may.", topic))
		}
		return lines
	}
	for _, group := range policy.Groups {
		if names := byGroup[group]; len(names) > 0 {
			lines = append(lines, notice.Plain(group+": "+strings.Join(names, " ")))
		}
	}
	return append(lines, notice.New("help_more", "/help GROUP explains the commands of a group, such as /help talk; /help COMMAND explains one."))
}

// requestLines lists the requests that wait for a moderator: to moderators all, to players theirs.
func (s *Permissions) requestLines() (lines []notice.Notice) {
	s.enforcer.Read(func(p *policy.State) {
		all := p.RequestsOf(s.who.ClaimID())
		if s.verdict.Load().Role.AtLeast(policy.Moderator) {
			all = p.Requests()
		}
		for _, r := range all {
			lines = append(lines, r.Line())
		}
	})
	if len(lines) == 0 {
		lines = append(lines, notice.New("no_requests", "No requests wait for a moderator."))
	}
	return lines
}

// listPlayers answers with who plays, here and on the other nodes.
func (s *Permissions) listPlayers(g Gateway) {
	s.background(g, func(ctx context.Context) []notice.Notice {
		here := slices.Sorted(slices.Values(g.PlayerNames()))
		names, more := namesOf(here, uint64(len(here)))
		s.notice(notice.New("who_here", "On this node: {names}[ and {more} more].", names, more))
		if all, players := g.Elsewhere.List(ctx); players > 0 {
			names, more := namesOf(all, players)
			return []notice.Notice{notice.New("who_elsewhere", "On other nodes: {names}[ and {more} more].", names, more)}
		}
		return nil
	})
}

// namesOf returns names as a list, and how many players are not named; empty if all are.
func namesOf(names []string, players uint64) (list, more string) {
	names = names[:min(len(names), maxNamed)]
	if n := uint64(len(names)); players > n {
		more = strconv.FormatUint(players-n, 10)
	}
	return strings.Join(names, ", "), more
}

// claimLines answers the command claims: those of the player, or of another one, and the one at a place.
func (s *Permissions) claimLines(who string, at grid.Pos) (lines []notice.Notice) {
	s.enforcer.Read(func(p *policy.State) {
		owner := s.who.ClaimID()
		if who != "" {
			var known bool
			if owner, known = p.OwnerOf(who); !known {
				lines = append(lines, sentence(policy.NameOfNobody(who)))
				return
			}
		}
		if there := p.Claims().At(at); there != nil && there.Owner != owner {
			lines = append(lines, notice.New("claim_here", "Here: {claim}", p.ClaimLine(there)))
		}
		for _, c := range p.Claims().Of(owner) {
			lines = append(lines, p.ClaimLine(c))
		}
	})
	if len(lines) == 0 {
		lines = append(lines, notice.New("no_claims", "There are no claims to list."))
	}
	return lines
}
