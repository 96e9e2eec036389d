package policy

import (
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/voxelpopuli/voxeld/player"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
	"github.com/voxelpopuli/voxeld/wire/notice"
)

// This file ends what was registered or claimed, and never used: a name whose player has not come back, a claim whose
// owner has not (docs/adr/0094). They have come back if they log in, or give a command, on another day.

const (
	// usedAfter is how long after they have registered a name, or claimed land, a player must come back for it to count
	// as used.
	usedAfter = 20 * time.Hour
	// defaultExpiry is how long names and claims are kept that are not used; minExpiry and maxExpiry bound the setting.
	defaultExpiry = 30 * 24 * time.Hour
	minExpiry     = 2 * 24 * time.Hour
	maxExpiry     = 365 * 24 * time.Hour
)

// seenCommand is the command that a player's gateway enters when they come back: with the gateway, the time and the
// salt of their login, which they have signed.
const seenCommand = "seen"

// Seen returns the act which says that a player came back: they have logged in at a gateway. The name is any of theirs.
func Seen(gateway, name string, login player.Login) nodemsg.Act {
	return nodemsg.Act{
		Key: login.Key[:], Seq: seqOf(login.At), Name: name, Text: fmt.Sprintf("%s %s %d %x", seenCommand, gateway, login.At, login.Salt), Signature: login.Signature[:],
	}
}

// seqOf returns the sequence number of a time in Unix milliseconds.
func seqOf(at int64) uint64 { return uint64(max(0, at)) * 1000 }

// loginOf returns the login that an act of Seen has, and its gateway; false for all other acts.
func loginOf(a nodemsg.Act) (login player.Login, gateway string, is bool) {
	words := strings.Fields(a.Text)
	if a.Operator || len(words) != 4 || words[0] != seenCommand {
		return login, "", false
	}
	at, err := strconv.ParseInt(words[2], 10, 64)
	salt, errSalt := hex.DecodeString(words[3])
	if errors.Join(err, errSalt) != nil || len(salt) != len(login.Salt) || seqOf(at) != a.Seq {
		return login, "", false
	}
	login.At, login.Salt = at, [len(login.Salt)]byte(salt)
	return login, words[1], true
}

// seen does nothing: that the player has given a command is what counts. It is entered only if it confirms something:
// whoever has a key can sign any number of logins, and names and claims alone end what players can add to the acts.
func seen(s *State, by author, args []string, at int64) (func() Effect, error) {
	switch {
	case by.role == operator || len(args) != 3:
		return nil, ErrUsage
	case by.entering && !s.Unconfirmed(by.id, time.UnixMilli(min(at, by.entered))):
		return nil, notice.New("nothing_to_confirm", "they have no name or claim that their coming back would confirm")
	}
	return func() Effect { return Effect{Text: notice.New("seen", "They are back.")} }, nil
}

// Unconfirmed reports whether a player has a name or a claim which counts as used once they are seen now.
func (s *State) Unconfirmed(id player.ID, now time.Time) bool {
	m := s.members[id]
	if m == nil {
		return false
	}
	used := func(since int64) bool { return now.UnixMilli()-since >= usedAfter.Milliseconds() }
	if m.Name != "" && !m.used && used(m.named) {
		return true
	}
	for _, c := range s.claims.Of(id) {
		if !c.Used && used(c.At) {
			return true
		}
	}
	return false
}

// noteUse notes that a player gave a command.
func (s *State) noteUse(id player.ID, at int64) {
	m := s.member(id)
	if m.Name != "" && at-m.named >= usedAfter.Milliseconds() {
		m.used = true
	}
	for _, c := range s.claims.Of(id) {
		if !c.Used && at-c.At >= usedAfter.Milliseconds() {
			fresh := *c
			fresh.Used = true
			s.changeClaims(c, &fresh)
		}
	}
}

// unused visits the names and claims, and the requests that nobody has answered, that have come to their end at a time
// in Unix milliseconds, until one of the functions returns false.
func (s *State) unused(now int64, name func(*Member) bool, claim func(*Claim) bool, request func(Request) bool) {
	over := func(since int64) bool { return max(since, s.expiring)+s.settings.Expiry <= now }
	for _, m := range s.members {
		if m.Name != "" && !m.used && m.Role == (Role{}) && over(m.named) && !name(m) {
			return
		}
	}
	for owner, of := range s.claims.owners {
		if s.roleOf(owner, false).AtLeast(Moderator) {
			continue
		}
		for _, c := range of {
			if !c.Used && over(c.At) && !claim(c) {
				return
			}
		}
	}
	for _, r := range s.requests {
		if over(r.At) && !request(r) {
			return
		}
	}
}

// Expires reports whether an operator's command expire would end something, or is the first one.
func (s *State) Expires(now time.Time) (due bool) {
	if s.settings.Expiry == 0 || s.expiring == 0 {
		return s.settings.Expiry != 0
	}
	s.unused(now.UnixMilli(), func(*Member) bool { due = true; return false }, func(*Claim) bool { due = true; return false }, func(Request) bool { due = true; return false })
	return due
}

// ExpireCommand is the command of an operator that ends what was never used. The nodes of operators enter it by
// themselves.
const ExpireCommand = "expire"

// expire ends what was never used. The first one in a world only begins the time: names may be older than this rule.
func expire(s *State, by author, args []string, at int64) (func() Effect, error) {
	now := min(at, by.entered) // two nodes' clocks
	switch {
	case len(args) > 0:
		return nil, ErrUsage
	case s.settings.Expiry == 0:
		return nil, notice.New("no_expiry", "names and claims do not expire in this world (set expiry)")
	case s.expiring == 0:
		return func() Effect {
			s.expiring = now
			return Effect{Text: notice.New("expiry_begins", "From now on names and claims that are not used expire.")}
		}, nil
	}
	return func() Effect {
		var names []*Member
		var claims []*Claim
		waiting := len(s.requests)
		s.unused(now,
			func(m *Member) bool { names = append(names, m); return true },
			func(c *Claim) bool { claims = append(claims, c); return true },
			func(Request) bool { return true })
		for _, c := range claims {
			s.changeClaims(c, nil)
		}
		for _, m := range names {
			delete(s.names, strings.ToLower(m.Name))
			m.Name, m.used = "", false
		}
		s.requests = kept(s.requests, func(r Request) bool { return max(r.At, s.expiring)+s.settings.Expiry > now })
		s.forget(now)
		return Effect{Text: notice.New("expired", "{names} {names:name|names}, {claims} {claims:claim|claims} and {requests} {requests:request|requests} have expired.", len(names), len(claims), waiting-len(s.requests))}
	}, nil
}

// forget drops players of whom nothing is left but the number of a command of long ago. None of theirs from before
// counts again.
func (s *State) forget(now int64) {
	before := seqOf(now - s.settings.Expiry)
	for id, m := range s.members {
		if m.Name == "" && m.Role == (Role{}) && m.seq < before && len(s.claims.Of(id)) == 0 {
			s.forgotten = max(s.forgotten, m.seq)
			delete(s.members, id)
		}
	}
}

// setExpiry sets for how long what is not used is kept: TIME or off.
func setExpiry(s *State, _ author, args []string) (func() Effect, error) {
	length, off, err := timeOrOff(args)
	switch {
	case err != nil:
		return nil, err
	case !off && (length < minExpiry || length > maxExpiry):
		return nil, notice.New("expiry_bounds", "choose {least:duration} to {most:duration}", minExpiry, maxExpiry)
	}
	return func() Effect {
		s.settings.Expiry = length.Milliseconds()
		if off {
			return Effect{Text: notice.New("expiry_off", "Names and claims do not expire.")}
		}
		return Effect{Text: notice.New("expiry_set", "Names and claims that are not used expire after {length:duration}.", length)}
	}, nil
}
