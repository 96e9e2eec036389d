package gameserver

import (
	"context"
	"net"
	"net/netip"
	"slices"
	"sync"
	"time"

	"github.com/voxelpopuli/voxeld/gameserver/players"
	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/motion"
	"github.com/voxelpopuli/voxeld/player"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
)

// This file decides which connections of the original protocol belong to one player. The protocol identifies players by name
// only, the released client has one name built in, and a player holds many connections. So players of the same name are
// distinguished by address, and those of the same name and address by two rules: a client is registered on one connection at a
// time, and it has at most one connection to each chunk.

const (
	// handoverTime bounds how long a registration waits while another player of the same name and address is registered
	// elsewhere. The two may be the same player: a client that crosses a border deregisters on one connection and registers on
	// another, and these are read in any order.
	handoverTime = time.Second
	// labelMemory is how long a guest with a suffix keeps it when they move to another node.
	labelMemory = 10 * time.Minute
)

// partyKey is what the connections of one player have in common: the name in their handshake, and their address.
type partyKey struct {
	name string
	from netip.Addr // the zero Addr for what is not an IP address
}

func partyOf(name string, remote net.Addr) partyKey {
	key := partyKey{name: player.NameFrom(name)}
	if ap, err := netip.ParseAddrPort(remote.String()); err == nil {
		key.from = ap.Addr().Unmap().WithZone("")
	}
	return key
}

// party is the connections of one name and address, and the players behind them. It exists from the first of these connections to
// the last.
type party struct {
	g   *Gateway
	key partyKey

	connections int // guarded by Gateway.mu

	mu struct {
		sync.Mutex
		guests   []*guest      // those who deregistered last are last
		released chan struct{} // closed and replaced when one of them has deregistered
	}
}

// guest is a player of the original protocol, as others see them.
type guest struct {
	party *party
	id    player.ID
	label string // the displayed name: the player's own, or one with a suffix

	// Guarded by party.mu.
	on   *legacyConn // where they are registered; nil for nowhere
	left motion.Pose // where they deregistered last, or the place in their record
	seen bool        // left is set
}

// join adds a connection to its party.
func (g *Gateway) join(key partyKey) *party {
	g.mu.Lock()
	defer g.mu.Unlock()
	p := g.mu.parties[key]
	if p == nil {
		p = &party{g: g, key: key}
		p.mu.released = make(chan struct{})
		g.mu.parties[key] = p
	}
	p.connections++
	return p
}

// quit removes a connection from its party. With the last one, the party's players are removed.
func (g *Gateway) quit(p *party) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if p.connections--; p.connections > 0 {
		return
	}
	delete(g.mu.parties, p.key)
	for _, who := range p.all() {
		delete(g.mu.guests, who.id)
	}
}

func (p *party) all() []*guest {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.mu.guests)
}

// claim returns the player who registers on a connection, under a name: the previous player of the connection, or else the one
// who deregistered nearest to it, or else a new one.
func (p *party) claim(ctx context.Context, lc *legacyConn, name string) (*guest, error) {
	late := time.NewTimer(handoverTime)
	defer late.Stop()
	for waiting := true; waiting; {
		who, released := p.registerFree(lc)
		if who != nil || released == nil {
			if who == nil {
				break
			}
			p.g.players.NoteStored(who.id)
			return who, nil
		}
		select {
		case <-released:
		case <-late.C:
			waiting = false
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	if name == "" {
		name = p.key.name
	}
	return p.add(ctx, lc.at, lc, player.NameFrom(name)), nil
}

// registerFree registers a player who is not registered. If there is none, but one may deregister soon, it returns a channel that
// is closed when one has.
func (p *party) registerFree(lc *legacyConn) (who *guest, released <-chan struct{}) {
	p.mu.Lock()
	defer p.mu.Unlock()
	elsewhere := false
	for _, candidate := range p.mu.guests {
		switch {
		case candidate.on != nil:
			elsewhere = elsewhere || candidate.on.at != lc.at // a client has one connection to a chunk
		case who == nil, candidate == lc.who.Load(), who != lc.who.Load() && !who.nearer(candidate, lc.at):
			who = candidate // of two who are as near, the one who deregistered later
		}
	}
	if who == nil && elsewhere {
		return nil, p.mu.released
	}
	if who != nil {
		who.on = lc
		lc.who.Store(who)
	}
	return who, nil
}

// nearer reports whether a player deregistered nearer to a chunk than another one.
func (c *guest) nearer(than *guest, at grid.ChunkPos) bool {
	return c.left.Chunk().Distance(at) < than.left.Chunk().Distance(at)
}

// add creates a new player, and registers them on the connection, unless that is nil.
func (p *party) add(ctx context.Context, at grid.ChunkPos, lc *legacyConn, name string) *guest {
	label, last := p.labelFor(ctx, name, at)
	g := p.g
	g.mu.Lock()
	defer g.mu.Unlock()
	for number := 0; g.taken(player.GuestID(label)); number++ {
		label, last = player.Namesake(name, p.key.from.String(), number), nodemsg.PlayerRecord{}
	}
	who := &guest{party: p, id: player.GuestID(label), label: label, on: lc, left: last.Pose, seen: last.Seq > 0}
	g.players.NoteLoaded(last)
	g.mu.guests[who.id] = who
	p.mu.Lock()
	defer p.mu.Unlock()
	p.mu.guests = append(p.mu.guests, who)
	if lc != nil {
		lc.who.Store(who)
	}
	return who
}

// anybody returns the player of the party who deregistered last; a new one if it has none. A chunk's connection is given.
func (p *party) anybody(ctx context.Context, at grid.ChunkPos) *guest {
	if all := p.all(); len(all) > 0 {
		return all[len(all)-1]
	}
	return p.add(ctx, at, nil, p.key.name)
}

// taken reports whether the id is in use here. Gateway.mu is held.
func (g *Gateway) taken(id player.ID) bool {
	return g.mu.guests[id] != nil || g.mu.sessions[id] != nil
}

// labelFor returns the label of a player who is new here, unless it is taken here, and the record of the label. A player who had
// a suffix on another node until recently keeps it. The plain name may be in use on another node.
func (p *party) labelFor(ctx context.Context, name string, at grid.ChunkPos) (label string, last nodemsg.PlayerRecord) {
	suffixed := player.Namesake(name, p.key.from.String(), 0)
	records := p.g.loadGuests(ctx, name, suffixed)
	plain, own := records[0], records[1]
	fresh := func(r nodemsg.PlayerRecord) bool {
		return r.Seq > 0 && p.g.wall().Sub(time.UnixMilli(r.SavedAt)) < labelMemory
	}
	switch {
	case fresh(own) && own.SavedAt >= plain.SavedAt-players.PublishEvery.Milliseconds():
		return suffixed, own
	case fresh(plain) && plain.Gateway != p.g.Peer && plain.Pose.Chunk().Distance(at) > entryWays:
		return suffixed, own
	}
	return name, plain
}

// loadGuests returns the records of guests, by their labels; zero records of unknown ones.
func (g *Gateway) loadGuests(ctx context.Context, labels ...string) []nodemsg.PlayerRecord {
	records := make([]nodemsg.PlayerRecord, len(labels))
	var lookups sync.WaitGroup
	for i, label := range labels {
		lookups.Go(func() {
			var err error
			if records[i], _, err = g.players.Load(ctx, player.GuestID(label)); err != nil {
				g.Logger.Error("load player record", "player", label, "error", err)
			}
		})
	}
	lookups.Wait()
	return records
}

// release deregisters a player, whose last pose is given.
func (p *party) release(who *guest, pose motion.Pose) {
	p.mu.Lock()
	defer p.mu.Unlock()
	who.on, who.left, who.seen = nil, pose, true
	p.mu.guests = append(slices.DeleteFunc(p.mu.guests, func(other *guest) bool { return other == who }), who)
	close(p.mu.released)
	p.mu.released = make(chan struct{})
}

// isRegistered reports whether a player is registered anywhere.
func (c *guest) isRegistered() bool {
	c.party.mu.Lock()
	defer c.party.mu.Unlock()
	return c.on != nil
}

// registered returns the connections on which players are registered.
func (p *party) registered() []*legacyConn {
	p.mu.Lock()
	defer p.mu.Unlock()
	var all []*legacyConn
	for _, who := range p.mu.guests {
		if who.on != nil {
			all = append(all, who.on)
		}
	}
	return all
}

// registeredElsewhere appends the players who are registered for another chunk. If one of their bodies is in this chunk, it may
// be the own player of a client that watches it.
func (p *party) registeredElsewhere(dst []player.ID, at grid.ChunkPos) []player.ID {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, who := range p.mu.guests {
		if who.on != nil && who.on.at != at {
			dst = append(dst, who.id)
		}
	}
	return dst
}

// place returns where a player of the party is or was last, and reports whether that is known.
func (p *party) place() (pose motion.Pose, known bool) {
	for _, who := range p.all() {
		if pose, known = who.place(); known {
			break
		}
	}
	return pose, known
}

// body returns the player's body.
func (c *guest) body(pose motion.Pose) nodemsg.Body {
	return nodemsg.Body{Player: c.id, Name: c.label, Guest: true, Pose: pose}
}

// place returns where the player is or was last, and reports whether that is known.
func (c *guest) place() (pose motion.Pose, known bool) {
	c.party.mu.Lock()
	on, left, seen := c.on, c.left, c.seen
	c.party.mu.Unlock()
	if on != nil {
		if p, registered := on.presence(); registered {
			return p.Pose, true
		}
	}
	return left, seen
}
