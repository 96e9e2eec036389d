package policy

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/voxelpopuli/voxeld/player"
	"github.com/voxelpopuli/voxeld/policy/sanction"
	"github.com/voxelpopuli/voxeld/wire"
	"github.com/voxelpopuli/voxeld/wire/notice"
)

// Commands returns commands of an operator that make another policy this one: for a world that is restored from a
// backup, in which the acts of before count no more. The names are those of players without a role or a claim, who may
// be many; Adapt must be called with each when it is entered. Tokens and rollbacks are not included.
func (s *State) Commands(now time.Time) (urgent, names []string) {
	urgent = slices.Concat(roleCommands(s.roles), settingsCommands(s), modCommands(s))
	for _, it := range s.Sanctions(now) {
		by, target := it.By, it.Target
		if player.CheckName(by) != nil {
			by = "-"
		}
		if it.Player != (player.ID{}) {
			target = it.Player.String()
		}
		text := strings.TrimSpace(fmt.Sprintf("sanction %s %s %d %d %s %s", it.Kind, target, it.At, it.Until, by, it.Reason))
		urgent = append(urgent, strings.ToValidUTF8(text[:min(len(text), wire.MaxChat)], ""))
	}
	ids := slices.SortedFunc(maps.Keys(s.members), func(a, b player.ID) int { return cmp.Compare(a.String(), b.String()) })
	for _, id := range ids {
		m := s.members[id]
		text := strings.TrimSpace(fmt.Sprintf("member %v %d %s %s", id, m.seq, cmp.Or(m.Role.String(), noRole), m.Name))
		if m.Role == (Role{}) && len(s.claims.Of(id)) == 0 {
			names = append(names, text)
		} else {
			urgent = append(urgent, text)
		}
	}
	if s.numbered > 0 {
		urgent = append(urgent, fmt.Sprintf("%s %d", numberedCommand, s.numbered))
	}
	for _, v := range s.Services() {
		urgent = append(urgent, "service "+v.String())
	}
	return append(urgent, claimCommands(s)...), names
}

// numberedCommand is the name of importNumber's command.
const numberedCommand = "numbered"

func notAMark(text string) error {
	return notice.New("not_a_mark", "\"{text}\" is not the number of a mark", text)
}

func imported(what string) Effect {
	return Effect{Text: notice.New("imported", "{what} is taken over.", what)}
}

// importNumber counts on from the newest number of another policy: NUMBER. The restored land has its mark: it would
// take no order of a lower number, and a clock that is behind would give such.
func importNumber(s *State, _ author, args []string, _ int64) (func() Effect, error) {
	if len(args) != 1 {
		return nil, ErrUsage
	}
	number, err := strconv.ParseInt(args[0], 10, 64)
	if err != nil || number < 0 {
		return nil, notAMark(args[0])
	}
	return func() Effect {
		s.numbered = max(s.numbered, number)
		return Effect{Text: notice.New("numbered", "Rollbacks and claims have higher numbers.")}
	}, nil
}

// noRole stands for no role in the command of importMember.
const noRole = "-"

// Adapt returns a command of Commands as it must be entered now, after what players and operators have done since: a
// player whose name somebody else has registered is taken over without it, with the sequence number at least, and keeps
// a role that they were given.
func (s *State) Adapt(text string) string {
	words := strings.Fields(text)
	if len(words) < 4 || words[0] != "member" {
		return text
	}
	id, err := player.ParseID(words[1])
	if m := s.members[id]; err == nil && m != nil && words[3] == noRole && m.Role != (Role{}) {
		words[3] = m.Role.String()
	}
	if owner, taken := s.OwnerOf(strings.Join(words[4:], " ")); err == nil && taken && owner != id {
		words = append(words[:4], s.NameOf(id))
	}
	return strings.TrimSpace(strings.Join(words, " "))
}

// importMember takes over a player of another policy: ID SEQ ROLE [NAME].
func importMember(s *State, _ author, args []string, _ int64) (func() Effect, error) {
	if len(args) < 3 || len(args) > 4 {
		return nil, ErrUsage
	}
	id, idErr := player.ParseID(args[0])
	seq, seqErr := strconv.ParseUint(args[1], 10, 64)
	var role Role
	var roleErr, nameErr error
	if args[2] != noRole {
		role, roleErr = s.roles.named(args[2])
	}
	name := append(args, "")[3]
	if name != "" {
		nameErr = player.CheckName(name)
		if owner, taken := s.OwnerOf(name); taken && owner != id {
			nameErr = nameTaken(name)
		}
	}
	return func() Effect {
		m := s.member(id)
		delete(s.names, strings.ToLower(m.Name))
		m.Name, m.seq, m.used = name, max(m.seq, seq), true // a backup does not say how old a name is
		s.roles.assign(m, role)
		if name != "" {
			s.names[strings.ToLower(name)] = id
		}
		return imported(m.Label())
	}, errors.Join(idErr, seqErr, roleErr, nameErr)
}

// importSanction takes over a ban or mute of another policy: KIND TARGET AT UNTIL BY [REASON].
func importSanction(s *State, _ author, args []string, _ int64) (func() Effect, error) {
	if len(args) < 5 || !slices.Contains([]sanction.Kind{sanction.Ban, sanction.Kick, sanction.Mute}, sanction.Kind(args[0])) || s.sanctions.Full(sanction.Target{}) {
		return nil, ErrUsage
	}
	target, targetErr := s.targetOf(args[1])
	at, atErr := strconv.ParseInt(args[2], 10, 64)
	until, untilErr := strconv.ParseInt(args[3], 10, 64)
	it := sanction.Sanction{Kind: sanction.Kind(args[0]), Player: target.Player, At: at, Until: until, By: args[4], Reason: strings.Join(args[5:], " ")}
	if it.By == "-" {
		it.By = sanction.Operator
	}
	return func() Effect {
		s.sanctions.Put(target, it)
		return imported(s.nameOf(target))
	}, errors.Join(targetErr, atErr, untilErr)
}
