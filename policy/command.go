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
)

// outranks returns an error unless the author's role is above the target's.
func (s *State) outranks(by author, target sanction.Target) error {
	if target.Player == (player.ID{}) || by.role == operator {
		return nil
	}
	if role := s.roleOf(target.Player, false); role.AtLeast(by.role) && role != None {
		return fmt.Errorf("they have the role %v: only a higher one than theirs may do that", role)
	}
	return nil
}

func impose(kind sanction.Kind) func(*State, author, []string, int64) (func() Effect, error) {
	done := map[sanction.Kind]string{sanction.Ban: "is banned", sanction.Kick: "was kicked", sanction.Mute: "is muted"}[kind]
	return func(s *State, by author, args []string, at int64) (func() Effect, error) {
		if len(args) == 0 {
			return nil, errUsage
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
		text := s.nameOf(target) + " " + done
		if length > 0 {
			it.Until = at + length.Milliseconds()
		}
		if length > 0 && kind != sanction.Kick {
			text += " for " + sanction.DescribeTime(length)
		} else if kind != sanction.Kick {
			text += " for good"
		}
		if s.sanctions.Full(target) && len(s.Sanctions(time.UnixMilli(at))) >= sanction.Max {
			return nil, fmt.Errorf("there are %d bans and mutes: lift some first", sanction.Max)
		}
		return func() Effect {
			s.sanctions.Purge(at)
			s.sanctions.Put(target, it)
			return Effect{Text: text + "."}
		}, nil
	}
}

func lift(name string, kinds ...sanction.Kind) func(*State, author, []string, int64) (func() Effect, error) {
	return func(s *State, by author, args []string, at int64) (func() Effect, error) {
		if len(args) != 1 {
			return nil, errUsage
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
			return nil, fmt.Errorf("there is no %s of %s", name, args[0])
		}
		return func() Effect {
			for _, t := range targets {
				s.sanctions.Lift(t, at, kinds...)
			}
			return Effect{Text: fmt.Sprintf("The %s of %s is lifted.", name, s.nameOf(target))}
		}, nil
	}
}

func say(_ *State, by author, args []string, _ int64) (func() Effect, error) {
	if len(args) == 0 {
		return nil, errUsage
	}
	return func() Effect { return Effect{Say: by.name + ": " + strings.Join(args, " ")} }, nil
}

func giveRole(s *State, by author, args []string, _ int64) (func() Effect, error) {
	if len(args) != 2 {
		return nil, errUsage
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
		return nil, fmt.Errorf("the name %s is registered to nobody: a page registers it when its player first builds, writes or claims land; or name their id", args[0])
	}
	if err := s.outranks(by, target); err != nil && target.Player != by.id {
		return nil, err
	}
	if err := mayGrant(by, role); err != nil {
		return nil, err
	}
	return func() Effect {
		s.roles.assign(s.member(target.Player), role)
		return Effect{Text: fmt.Sprintf("%s has the role %v.", s.nameOf(target), role)}
	}, nil
}

// mayGrant returns why an author may not define a role, or give it.
func mayGrant(by author, r Role) error {
	if !by.role.AtLeast(r) || by.role.order() == r.order() && !by.role.AtLeast(Owner) {
		return fmt.Errorf("only a higher role than %v may give, define or delete the role %v", by.role, r)
	}
	return nil
}

// set changes a setting.
func set(s *State, _ author, args []string, _ int64) (func() Effect, error) {
	if len(args) == 0 {
		return nil, errUsage
	}
	if args[0] == "message" {
		text := strings.Join(args[1:], " ")
		return func() Effect {
			s.settings.Message = text
			if text == "" {
				return Effect{Text: "Players read no message when they join."}
			}
			return Effect{Text: "Players read when they join: " + text}
		}, nil
	}
	if change, known := changes[args[0]]; known {
		do, err := change.run(s, args[1:])
		if errors.Is(err, errUsage) {
			err = fmt.Errorf("usage: /set %s %s", args[0], change.usage)
		}
		return do, err
	}
	of := map[string]*Role{"players": &s.settings.Players, "guests": &s.settings.Guests}[args[0]]
	if of == nil || len(args) != 2 {
		return nil, errUsage
	}
	role, err := s.roles.named(args[1])
	if err == nil && role.AtLeast(Moderator) {
		err = errors.New("choose none, visitor or builder")
	}
	return func() Effect {
		*of = role
		return Effect{Text: fmt.Sprintf("The role of %s is now %v.", args[0], role)}
	}, err
}

// nameKept is how long a name stays registered before its player may register another one instead.
const nameKept = 20 * time.Hour

func registerName(s *State, by author, args []string, at int64) (func() Effect, error) {
	owner, taken := s.OwnerOf(by.name)
	m := s.members[by.id]
	switch {
	case len(args) > 0:
		return nil, errUsage
	case by.role == operator:
		return nil, errors.New("only players register names")
	case taken && owner != by.id:
		return nil, fmt.Errorf("the name %s is registered to another player", by.name)
	case taken:
		return nil, fmt.Errorf("the name %s is registered to you already", by.name)
	case m != nil && m.Name != "" && at-m.named < nameKept.Milliseconds():
		return nil, fmt.Errorf("the name %s is registered to you: register another one tomorrow", m.Name)
	case len(s.names) >= MaxNames || s.acts >= MaxActs/2:
		return nil, fmt.Errorf("this world has %d registered names, and takes no more", MaxNames)
	case s.settings.ApproveNames && !by.role.AtLeast(Moderator):
		return s.request(by, at, nil)
	}
	return func() Effect {
		text := fmt.Sprintf("The name %s is yours: nobody else can use it.", by.name)
		if before := s.giveName(by.id, by.name, max(at, by.entered)); before != "" { // an older time would end the day for which they are new
			text += fmt.Sprintf(" The name %s is free now.", before)
		}
		return Effect{Text: text}
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
		return nil, errUsage
	}
	owner, registered := s.OwnerOf(args[0])
	if !registered {
		return nil, fmt.Errorf("the name %s is registered to nobody", args[0])
	}
	if err := s.outranks(by, sanction.Target{Player: owner}); err != nil && owner != by.id {
		return nil, err
	}
	return func() Effect {
		m := s.members[owner]
		delete(s.names, strings.ToLower(m.Name))
		text := fmt.Sprintf("The name %s is free. It was that of %v.", m.Name, owner)
		m.Name, m.used = "", false
		return Effect{Text: text}
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
		return nil, errUsage
	}
	return func() Effect {
		if len(s.tokens) >= maxTokens {
			clear(s.tokens)
		}
		s.tokens[args[0]] = true
		return Effect{Text: "The token is valid for one player."}
	}, nil
}

func takeOwnership(s *State, by author, args []string, _ int64) (func() Effect, error) {
	if len(args) != 1 {
		return nil, errUsage
	}
	hash := TokenHash(args[0])
	valid := false
	for known := range s.tokens {
		valid = valid || subtle.ConstantTimeCompare([]byte(known), []byte(hash)) == 1
	}
	if !valid || by.role == operator {
		return nil, errors.New("that token is wrong, or was used already: voxeld owner prints a new one")
	}
	return func() Effect {
		delete(s.tokens, hash)
		s.roles.assign(s.member(by.id), Owner)
		return Effect{Text: "You own this world now. /help lists what you may do."}
	}, nil
}
