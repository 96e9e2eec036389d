// Package sanction has bans, kicks and mutes: whom they concern, how long they last, and which are in force.
//
// A List is not safe for concurrent use, but any number of goroutines may call its methods that change nothing.
package sanction

import (
	"fmt"
	"net/netip"
	"strings"
	"time"

	"github.com/dustin/go-humanize/english"

	"github.com/voxelpopuli/voxeld/player"
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

// Describe returns the sanction as a sentence for the player whom it concerns.
func (s *Sanction) Describe(now time.Time) string {
	what := map[Kind]string{Ban: "You are banned from this world", Kick: "You were kicked", Mute: "You are muted"}[s.Kind]
	what += " by " + s.By
	if s.Kind != Kick {
		what += s.left(now)
	}
	if s.Reason != "" {
		what += ": " + s.Reason
	}
	return strings.TrimRight(what, ".") + "."
}

// Line returns the sanction as a line of a list.
func (s *Sanction) Line(now time.Time) string {
	text := fmt.Sprintf("%s: %s by %s", s.Target, map[Kind]string{Ban: "banned", Kick: "kicked", Mute: "muted"}[s.Kind], s.By)
	text += s.left(now)
	if s.Reason != "" {
		text += ": " + s.Reason
	}
	return text
}

// left returns how long the sanction lasts from now on, in parentheses; the empty string if it does not end by itself.
func (s *Sanction) left(now time.Time) string {
	if s.Until == 0 {
		return ""
	}
	return " (" + DescribeTime(time.UnixMilli(s.Until).Sub(now)) + " left)"
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

// DescribeTime returns a duration in its two largest units, rounded up.
func DescribeTime(d time.Duration) string {
	units := []struct {
		name string
		size time.Duration
	}{{"day", 24 * time.Hour}, {"hour", time.Hour}, {"minute", time.Minute}, {"second", time.Second}}
	for i, large := range units[:3] {
		small := units[i+1]
		d := (d + small.size - 1) / small.size * small.size
		if d < large.size {
			continue
		}
		text := english.Plural(int(d/large.size), large.name, "")
		if rest := d % large.size; rest > 0 {
			text += " " + english.Plural(int(rest/small.size), small.name, "")
		}
		return text
	}
	return english.Plural(max(1, int((d+time.Second-1)/time.Second)), "second", "")
}
