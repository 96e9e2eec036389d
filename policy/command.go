package policy

import (
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/voxelpopuli/voxeld/player"
	"github.com/voxelpopuli/voxeld/policy/sanction"
	"github.com/voxelpopuli/voxeld/wire/notice"
)

// outranks returns an error unless the author's role is above the target's.
func (s *State) outranks(by author, target sanction.Target) error {
	if target.Player == (player.ID{}) || by.role == operator {
		return nil
	}
	if role := s.roleOf(target.Player, false); role.AtLeast(by.role) && role != None {
		return notice.New("outranked", "they have the role {role}: only a higher one than theirs may do that", role)
	}
	return nil
}

func impose(kind sanction.Kind) func(*State, author, []string, int64) (func() Effect, error) {
	return func(s *State, by author, args []string, at int64) (func() Effect, error) {
		if len(args) == 0 {
			return nil, ErrUsage
		}
		target, err := s.targetOf(args[0])
		if err == nil {
			err = s.outranks(by, target)
		}
		if err != nil {
			return nil, err
		}
		it := sanction.Sanction{Kind: kind, Player: target.Player, By: by.name, At: at}
		var length time.Duration
		if kind == sanction.Kick {
			length, it.Reason = sanction.KickTime, strings.Join(args[1:], " ")
		} else {
			length, it.Reason, err = splitTime(args[1:])
		}
		if err != nil {
			return nil, err
		}
		name := s.nameOf(target)
		if length > 0 {
			it.Until = at + length.Milliseconds()
		}
		var done notice.Notice
		switch {
		case kind == sanction.Kick:
			done = notice.New("kicked", "{name} was kicked.", name)
		case kind == sanction.Ban && length > 0:
			done = notice.New("banned_for", "{name} is banned for {length:duration}.", name, length)
		case kind == sanction.Ban:
			done = notice.New("banned_for_good", "{name} is banned for good.", name)
		case length > 0:
			done = notice.New("muted_for", "{name} is muted for {length:duration}.", name, length)
		default:
			done = notice.New("muted_for_good", "{name} is muted for good.", name)
		}
		if s.sanctions.Full(target) && len(s.Sanctions(time.UnixMilli(at))) >= sanction.Max {
			return nil, notice.New("many_sanctions", "there are {count} bans and mutes: lift some first", sanction.Max)
		}
		return func() Effect {
			s.sanctions.Purge(at)
			s.sanctions.Put(target, it)
			return Effect{Text: done}
		}, nil
	}
}

// lift returns the command that lifts sanctions of the kinds: bans, which include kicks, or mutes.
func lift(kinds ...sanction.Kind) func(*State, author, []string, int64) (func() Effect, error) {
	ban := slices.Contains(kinds, sanction.Ban)
	return func(s *State, by author, args []string, at int64) (func() Effect, error) {
		if len(args) != 1 {
			return nil, ErrUsage
		}
		target, err := s.targetOf(args[0])
		if err != nil {
			return nil, err
		}
		targets := []sanction.Target{target, {Name: strings.ToLower(args[0])}} // the name may have been registered since
		lifted := slices.ContainsFunc(targets, func(t sanction.Target) bool {
			return slices.ContainsFunc(kinds, func(k sanction.Kind) bool { it := s.sanctions.Of(t)[k]; return it != nil && it.InForce(at) })
		})
		if !lifted {
			if ban {
				return nil, notice.New("not_banned", "there is no ban of {name}", args[0])
			}
			return nil, notice.New("not_muted", "there is no mute of {name}", args[0])
		}
		return func() Effect {
			for _, t := range targets {
				s.sanctions.Lift(t, at, kinds...)
			}
			if ban {
				return Effect{Text: notice.New("ban_lifted", "The ban of {name} is lifted.", s.nameOf(target))}
			}
			return Effect{Text: notice.New("mute_lifted", "The mute of {name} is lifted.", s.nameOf(target))}
		}, nil
	}
}

func say(_ *State, by author, args []string, _ int64) (func() Effect, error) {
	if len(args) == 0 {
		return nil, ErrUsage
	}
	return func() Effect { return Effect{Say: by.name + ": " + strings.Join(args, " ")} }, nil
}

func giveRole(s *State, by author, args []string, _ int64) (func() Effect, error) {
	if len(args) != 2 {
		return nil, ErrUsage
	}
	role, err := s.roles.named(args[1])
	if err != nil {
		return nil, err
	}
	target, err := s.targetOf(args[0])
	if err != nil {
		return nil, err
	}
	if target.Player == (player.ID{}) {
		return nil, notice.New("name_of_nobody_yet", "the name {name} is registered to nobody: a page registers it when its player first builds, writes or claims land; or name their id", args[0])
	}
	if v := s.services[target.Player]; v != nil {
		return nil, fmt.Errorf("%s is a service: its key has scopes, and no role", v.Name)
	}
	if err := s.outranks(by, target); err != nil && target.Player != by.id {
		return nil, err
	}
	if err := mayGrant(by, role); err != nil {
		return nil, err
	}
	return func() Effect {
		s.roles.assign(s.member(target.Player), role)
		return Effect{Text: notice.New("role_given", "{name} has the role {role}.", s.nameOf(target), role)}
	}, nil
}

// mayGrant returns why an author may not define a role, or give it.
func mayGrant(by author, r Role) error {
	if !by.role.AtLeast(r) || by.role.order() == r.order() && !by.role.AtLeast(Owner) {
		return notice.New("may_not_grant", "only a higher role than {yours} may give, define or delete the role {role}", by.role, r)
	}
	return nil
}

// set changes a setting.
func set(s *State, by author, args []string, _ int64) (func() Effect, error) {
	if len(args) == 0 {
		return nil, ErrUsage
	}
	if args[0] == "message" {
		text := strings.Join(args[1:], " ")
		return func() Effect {
			s.settings.Message = text
			if text == "" {
				return Effect{Text: notice.New("message_off", "Players read no message when they join.")}
			}
			return Effect{Text: notice.New("message_set", "Players read when they join: {text}", text)}
		}, nil
	}
	if change, known := changes[args[0]]; known {
		do, err := change.run(s, by, args[1:])
		if errors.Is(err, ErrUsage) {
			err = wrongUsage("set "+args[0], change.usage)
		}
		return do, err
	}
	of := map[string]*Role{"players": &s.settings.Players, "guests": &s.settings.Guests}[args[0]]
	if of == nil || len(args) != 2 {
		return nil, ErrUsage
	}
	role, err := s.roles.named(args[1])
	if err == nil && role.AtLeast(Moderator) {
		err = notice.New("low_roles", "choose none, visitor or builder")
	}
	all := playersWord
	if args[0] == "guests" {
		all = guestsWord
	}
	return func() Effect {
		*of = role
		return Effect{Text: notice.New("role_of_all_set", "The role of {all} is now {role}.", all, role)}
	}, err
}

// nameKept is how long a name stays registered before its player may register another one instead.
const nameKept = 20 * time.Hour

func nameTaken(name string) error {
	return notice.New("name_of_another", "the name {name} is registered to another player", name)
}

var errNamesFull = notice.New("names_full", "this world has {count} registered names, and takes no more", MaxNames)

// NameOfNobody returns the error for a name that nobody has registered.
func NameOfNobody(name string) error {
	return notice.New("name_of_nobody", "the name {name} is registered to nobody", name)
}

func registerName(s *State, by author, args []string, at int64) (func() Effect, error) {
	owner, taken := s.OwnerOf(by.name)
	m := s.members[by.id]
	switch {
	case len(args) > 0:
		return nil, ErrUsage
	case by.role == operator:
		return nil, notice.New("only_players_register", "only players register names")
	case taken && owner != by.id:
		return nil, nameTaken(by.name)
	case taken:
		return nil, notice.New("name_yours_already", "the name {name} is registered to you already", by.name)
	case m != nil && m.Name != "" && at-m.named < nameKept.Milliseconds():
		return nil, notice.New("name_tomorrow", "the name {name} is registered to you: register another one tomorrow", m.Name)
	case len(s.names) >= MaxNames || s.acts >= MaxActs/2:
		return nil, errNamesFull
	case s.settings.ApproveNames && !by.role.AtLeast(Moderator):
		return s.request(by, at, nil)
	}
	return func() Effect {
		before := s.giveName(by.id, by.name, max(at, by.entered)) // an older time would end the day for which they are new
		return Effect{Text: notice.New("name_yours", "The name {name} is yours: nobody else can use it.[ The name {before} is free now.]", by.name, before)}
	}, nil
}

// giveName registers a name that is free to a player, and returns the one that they had before, which is free now.
func (s *State) giveName(id player.ID, name string, at int64) (before string) {
	m := s.member(id)
	before = m.Name
	delete(s.names, strings.ToLower(before))
	m.Name, m.named = name, at
	s.names[strings.ToLower(name)] = id
	return before
}

// releaseName frees a name. Its player keeps their role.
func releaseName(s *State, by author, args []string, _ int64) (func() Effect, error) {
	if len(args) != 1 {
		return nil, ErrUsage
	}
	owner, registered := s.OwnerOf(args[0])
	if !registered {
		return nil, NameOfNobody(args[0])
	}
	if s.services[owner] != nil {
		return nil, fmt.Errorf("%s is a service: voxeld service remove %[1]s ends it", args[0])
	}
	if err := s.outranks(by, sanction.Target{Player: owner}); err != nil && owner != by.id {
		return nil, err
	}
	return func() Effect {
		m := s.members[owner]
		delete(s.names, strings.ToLower(m.Name))
		done := notice.New("name_free", "The name {name} is free. It was that of {player}.", m.Name, owner)
		m.Name, m.used = "", false
		return Effect{Text: done}
	}, nil
}

// TokenHash returns the hash of a token for /owner, as /token takes it.
func TokenHash(token string) string {
	sum := sha256.Sum256([]byte("voxeld owner\x00" + strings.ToUpper(strings.ReplaceAll(token, "-", ""))))
	return hex.EncodeToString(sum[:])
}

// maxTokens is how many tokens for /owner count at a time.
const maxTokens = 16

func addToken(s *State, _ author, args []string, _ int64) (func() Effect, error) {
	if len(args) != 1 || len(args[0]) != hex.EncodedLen(sha256.Size) {
		return nil, ErrUsage
	}
	return func() Effect {
		if len(s.tokens) >= maxTokens {
			clear(s.tokens)
		}
		s.tokens[args[0]] = true
		return Effect{Text: notice.New("token_added", "The token is valid for one player.")}
	}, nil
}

func takeOwnership(s *State, by author, args []string, _ int64) (func() Effect, error) {
	if len(args) != 1 {
		return nil, ErrUsage
	}
	hash := TokenHash(args[0])
	valid := false
	for known := range s.tokens {
		valid = valid || subtle.ConstantTimeCompare([]byte(known), []byte(hash)) == 1
	}
	if !valid || by.role == operator {
		return nil, notice.New("bad_token", "that token is wrong, or was used already: voxeld owner prints a new one")
	}
	return func() Effect {
		delete(s.tokens, hash)
		s.roles.assign(s.member(by.id), Owner)
		return Effect{Text: notice.New("owner_now", "You own this world now. /help lists what you may do.")}
	}, nil
}
