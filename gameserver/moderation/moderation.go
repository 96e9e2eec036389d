// Package moderation applies the world's policy (package policy) to the players of one gateway: who may join, chat and
// build, under which name, and their commands.
//
// Any goroutine may use an Enforcer and a Permissions.
package moderation

import (
	"context"
	"net"
	"net/netip"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/voxelpopuli/voxeld/gameserver/wake"
	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/player"
	"github.com/voxelpopuli/voxeld/policy"
	"github.com/voxelpopuli/voxeld/policy/place"
	"github.com/voxelpopuli/voxeld/wire"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
	"github.com/voxelpopuli/voxeld/wire/notice"
)

// People is the world's policy; a *policysync.Copy. Any goroutine may use it.
type People interface {
	// Read runs read on the policy, which must keep nothing of it.
	Read(read func(*policy.State))
	// Enter carries out a signed command everywhere, and returns what it has done.
	// Charge is called if the command would have an effect, and returns why it must not be entered all the same.
	Enter(ctx context.Context, act nodemsg.Act, charge func() error) (notice.Notice, error)
	// Notify has functions called after each change, and with each line for all players. They do not block.
	Notify(changed func(), announce func(text string))
}

var errNoGuests = &wire.Error{Code: wire.FailNoGuests, Message: "this world admits no guests: join with a key"}

// Enforcer applies the policy to the players of a gateway.
type Enforcer struct {
	People
	// Changed is set after each change of the policy: all players are to be judged again.
	Changed wake.Signal

	wall      func() time.Time
	node      Node
	floods    *floods
	newcomers *newcomers
	bulks     bulks
	claims    atomic.Pointer[policy.Claims] // as of the last Refresh
	border    atomic.Pointer[place.Border]  // as of the last Refresh
}

// Node is what the options of this node grant.
type Node struct {
	Guests   func() bool // whether players without a key may join
	Original func() bool // whether clients of the original protocol may
}

// NewEnforcer returns an enforcer. Announce is called with lines for all players, and must not block.
func NewEnforcer(p People, wall func() time.Time, node Node, announce func(text string), r prometheus.Registerer) *Enforcer {
	d := &Enforcer{People: p, Changed: wake.NewSignal(), wall: wall, node: node, floods: newFloods(r), newcomers: newNewcomers(r, wall)}
	p.Notify(d.Changed.Set, announce)
	d.Refresh() // afterwards: no change is missed
	return d
}

// Settings returns the settings of the world.
func (e *Enforcer) Settings() (s policy.Settings) {
	e.Read(func(p *policy.State) { s = p.Settings() })
	return s
}

func (e *Enforcer) judge(who policy.Subject) (v policy.Verdict) {
	e.Read(func(p *policy.State) { v = p.Judge(who, e.wall()) })
	return v
}

func subject(id player.ID, name string, guest bool, remote net.Addr) policy.Subject {
	who := policy.Subject{Player: id, Name: name, Guest: guest}
	if at, err := netip.ParseAddrPort(remote.String()); err == nil {
		who.Address = at.Addr().WithZone("")
	}
	return who
}

// refusal returns why somebody may not play; nil if they may.
func (e *Enforcer) refusal(v policy.Verdict) error {
	switch {
	case v.Ban != nil:
		return wire.Stop(wire.FailBanned, v.Ban.Describe(e.wall()))
	case !v.MayJoin():
		return &wire.Error{Code: wire.FailNotAllowed, Message: "Only players who were given a role may join this world."}
	}
	return nil
}

// OwnerOf returns the player to whom a name is registered, in any case.
func (e *Enforcer) OwnerOf(name string) (id player.ID, registered bool) {
	e.Read(func(p *policy.State) { id, registered = p.OwnerOf(name) })
	return id, registered
}

// Registered reports whether a name is registered to a player.
func (e *Enforcer) Registered(name string) bool {
	_, is := e.OwnerOf(name)
	return is
}

// Refresh takes the claims and the border from the policy, after a change of it. What the other methods of the Enforcer
// and of Permissions answer about them takes no lock.
func (e *Enforcer) Refresh() {
	e.Read(func(p *policy.State) {
		e.claims.Store(p.Claims())
		e.border.Store(p.Settings().Border)
	})
}

func (e *Enforcer) refuseEdit(who policy.Subject, v policy.Verdict, at grid.Pos) string {
	if !v.MayBuild() {
		return wire.RefusedNotAllowed
	}
	if !v.Border.Contains(at) {
		return wire.RefusedOutsideBorder
	}
	if c := e.claims.Load().At(at); c != nil && !c.MayBuild(who.ClaimID(), v.Role) {
		return wire.RefusedClaimed
	}
	return ""
}

// nameFor returns the name under which a player joins.
func (e *Enforcer) nameFor(who policy.Subject) (name string, err error) {
	if err := player.CheckName(who.Name); err != nil { // adapters of other games make a Join that nobody has decoded
		return "", wire.Refuse(wire.FailBadName, "%v", err)
	}
	if who.Guest && !e.node.Guests() {
		return "", errNoGuests
	}
	e.Read(func(p *policy.State) { name = p.NameFor(who.Player, who.Name) })
	if who.Guest && name != who.Name {
		return "", wire.Stop(wire.FailNameTaken, notice.New("taken_by_player", "the name {name} is registered to a player: choose another name", who.Name))
	}
	return name, nil
}

// refuseFlooder returns why a player who has flooded the chat may not play here; nil if they may.
func (e *Enforcer) refuseFlooder(id player.ID) error {
	if left := e.floods.of(id).banned.Sub(e.wall()); left > 0 {
		return wire.Stop(wire.FailBanned, notice.New("flood_ban", "You are banned from this node ({left:duration} left): flooding the chat.", left))
	}
	return nil
}

// floodMute returns why nobody reads what a player writes who has flooded the chat; nil if they do.
func (e *Enforcer) floodMute(id player.ID) error {
	if left := e.floods.of(id).muted.Sub(e.wall()); left > 0 {
		return notice.New("flood_mute", "You are muted by this node ({left:duration} left): flooding the chat.", left)
	}
	return nil
}

// NoteGuestsEdit counts an edit that a guest has requested.
func (e *Enforcer) NoteGuestsEdit(id player.ID, removed bool) {
	e.newcomers.note(id, removed, e.wall())
}
