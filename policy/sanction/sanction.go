// Package sanction has bans, kicks and mutes: whom they concern, how long they last, and which are in force.
//
// A List is not safe for concurrent use, but any number of goroutines may call its methods that change nothing.
package sanction

import (
	"net/netip"
	"strings"
	"time"

	"github.com/voxelpopuli/voxeld/player"
	"github.com/voxelpopuli/voxeld/wire/notice"
)

// Kind is a kind of sanction.
type Kind string

// The kinds of sanctions.
const (
	Ban  Kind = "ban"  // may not play
	Kick Kind = "kick" // may not play for a moment
	Mute Kind = "mute" // may not chat
)

// KickTime is how long somebody who was kicked may not join: long enough that no client joins again by itself at once,
// and that every node has heard of it.
const KickTime = 15 * time.Second

// Target is whom a sanction concerns. Exactly one field is set.
type Target struct {
	Player  player.ID
	Name    string // in lower case, of whoever uses it
	Network netip.Prefix
}

// Sanction is a ban, a kick or a mute.
type Sanction struct {
	Kind   Kind   `json:"kind"`
	Target string `json:"target"` // a name, a player's id, an address or a network; set by whoever lists it
	// Player is the id of the player to whom the name is registered; zero for a sanction of a name or of addresses.
	Player player.ID `json:"player,omitzero"`
	By     string    `json:"by"`
	Reason string    `json:"reason,omitempty"`
	At     int64     `json:"at_ms"`              // Unix milliseconds
	Until  int64     `json:"until_ms,omitempty"` // 0: until it is lifted
}

// InForce reports whether the sanction has not ended at a time, in Unix milliseconds.
func (s *Sanction) InForce(at int64) bool { return s.Until == 0 || at < s.Until }

// Operator is what operators are called in By.
const Operator = "an operator"

// By returns what an author is called in notices.
func By(name string) notice.Notice {
	if name == Operator {
		return notice.New("an_operator", "an operator")
	}
	return notice.Plain(name)
}

// Describe returns the sanction in a sentence for the player.
func (s *Sanction) Describe(now time.Time) notice.Notice {
	by, reason := By(s.By), strings.TrimRight(s.Reason, ".")
	switch s.Kind {
	case Ban:
		return notice.New("you_are_banned", "You are banned from this world by {name}[ ({left:duration} left)][: {reason}].", by, s.left(now), reason)
	case Kick:
		return notice.New("you_were_kicked", "You were kicked by {name}[: {reason}].", by, reason)
	default:
		return notice.New("you_are_muted", "You are muted by {name}[ ({left:duration} left)][: {reason}].", by, s.left(now), reason)
	}
}

// Line returns the sanction as a line of a list.
func (s *Sanction) Line(now time.Time) notice.Notice {
	by, left := By(s.By), s.left(now)
	switch s.Kind {
	case Ban:
		return notice.New("ban", "{target}: banned by {name}[ ({left:duration} left)][: {reason}]", s.Target, by, left, s.Reason)
	case Kick:
		return notice.New("kick", "{target}: kicked by {name}[ ({left:duration} left)][: {reason}]", s.Target, by, left, s.Reason)
	default:
		return notice.New("mute", "{target}: muted by {name}[ ({left:duration} left)][: {reason}]", s.Target, by, left, s.Reason)
	}
}

// left returns for how long the sanction is in force; empty if it is until it is lifted.
func (s *Sanction) left(now time.Time) any {
	if s.Until == 0 {
		return ""
	}
	return time.UnixMilli(s.Until).Sub(now)
}

// Longer returns the one of two sanctions that lasts longer; nil for none.
func Longer(a, b *Sanction) *Sanction {
	if b == nil {
		return a
	}
	if a == nil || a.Until != 0 && (b.Until == 0 || b.Until > a.Until) {
		return b
	}
	return a
}
