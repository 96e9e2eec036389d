package legacy

import (
	"context"
	"net"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/time/rate"

	"github.com/voxelpopuli/voxeld/gameserver/admission"
	"github.com/voxelpopuli/voxeld/gameserver/players"
	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/motion"
	"github.com/voxelpopuli/voxeld/player"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
)

// This file decides which connections of the original protocol belong to one player. The protocol identifies players by
// name only, the released client has one name built in, and a player holds many connections. So players of the same
// name are distinguished by address, and those of the same name and address by two rules: a client is registered on one
// connection at a time, and it has at most one connection to each chunk.

const (
	// handoverTime bounds how long a registration waits while another player of the same name and address is registered
	// elsewhere. The two may be the same player: a client that crosses a border deregisters on one connection and
	// registers on another, and these are read in any order.
	handoverTime = time.Second
	// labelMemory is how long a guest with a suffix keeps it when they move to another node.
	labelMemory = 10 * time.Minute
)

// entryDistance is the maximum distance, in chunks, of a player's first move from the chunk that they register in.
const entryDistance = 2

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

// parties are the parties of a gateway.
type parties struct {
	*Options

	mu struct {
		sync.Mutex
		byKey  map[partyKey]*party
		guests map[player.ID]*guest
	}
}

func newParties(o *Options) *parties {
	ps := &parties{Options: o}
	ps.mu.byKey, ps.mu.guests = make(map[partyKey]*party), make(map[player.ID]*guest)
	return ps
}

// party is the connections of one name and address, and the players behind them. It exists from the first of these
// connections to the last.
type party struct {
	of  *parties
	key partyKey

	connections int // guarded by parties.mu

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
	label string       // the displayed name: the player's own, or one with a suffix
	home  *motion.Pose // in their record; the original protocol cannot change it
	edits *rate.Limiter

	// Guarded by party.mu.
	on     *registration // where they are registered; nil for nowhere
	left   motion.Pose   // where they deregistered last, or the place in their record
	leftAt time.Time     // when they deregistered last
	seen   bool          // left is set
}

// registration is a player's registration on a connection.
type registration struct {
	at     grid.ChunkPos // of the connection
	client admission.Client
	party  *party
	who    atomic.Pointer[guest] // the player; nil until the first registration on this connection

	mu struct {
		sync.Mutex
		registered bool
		motion     *player.Motion // nil from registration until the first move
		pose       motion.Pose
		came       motion.Pose // from where, until the first move
	}
}

// presence returns the registered player and their place, and reports whether there is one.
func (r *registration) presence() (players.Presence, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.mu.registered {
		return players.Presence{}, false
	}
	who := r.who.Load()
	return players.Presence{Player: who.id, Name: who.label, Guest: true, Pose: r.mu.pose, Home: who.home}, true
}

// lastMove returns where the player is, and reports whether they have moved since they registered.
func (r *registration) lastMove() (pose motion.Pose, moved bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.mu.pose, r.mu.motion != nil
}

// join adds a connection to its party.
func (ps *parties) join(key partyKey) *party {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	p := ps.mu.byKey[key]
	if p == nil {
		p = &party{of: ps, key: key}
		p.mu.released = make(chan struct{})
		ps.mu.byKey[key] = p
	}
	p.connections++
	return p
}

// quit removes a connection from its party. With the last one, the party's players are removed.
func (ps *parties) quit(p *party) {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	if p.connections--; p.connections > 0 {
		return
	}
	delete(ps.mu.byKey, p.key)
	for _, who := range p.all() {
		delete(ps.mu.guests, who.id)
		ps.Release(who.id)
	}
}

func (p *party) all() []*guest {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.mu.guests)
}

// claim returns the player who registers on a connection, under a name: the previous player of the connection, or else
// the one who deregistered nearest to it, or else a new one. Whoever has a name that was registered since is none of
// them.
func (p *party) claim(ctx context.Context, r *registration, name string) (*guest, error) {
	late := time.NewTimer(handoverTime)
	defer late.Stop()
	for waiting := true; ; {
		who, released := p.registerFree(r, waiting)
		if who != nil {
			p.of.Players.NoteStored(who.id)
			return who, nil
		}
		if released == nil {
			break
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
	if err := r.client.Wait(ctx, admission.Join); err != nil {
		return nil, err
	}
	return p.add(ctx, r.at, r, player.NameFrom(name)), nil
}

// registerFree registers a player who is not registered. With wait it may return a channel instead, which is closed
// when a player has deregistered: one who is registered elsewhere may be about to, and only a player who deregistered
// just now, or was registered on this connection before, is a better match.
func (p *party) registerFree(r *registration, wait bool) (who *guest, released <-chan struct{}) {
	p.mu.Lock()
	defer p.mu.Unlock()
	elsewhere := false
	for _, candidate := range p.mu.guests {
		switch {
		case p.of.Registered(candidate.label):
		case candidate.on != nil:
			elsewhere = elsewhere || candidate.on.at != r.at // a client has one connection to a chunk
		case who == nil, candidate == r.who.Load(), who != r.who.Load() && !who.nearer(candidate, r.at):
			who = candidate // of two who are as near, the one who deregistered later
		}
	}
	matches := who != nil && (who == r.who.Load() || time.Since(who.leftAt) < handoverTime)
	if wait && elsewhere && !matches {
		return nil, p.mu.released
	}
	if who != nil {
		who.on = r
		r.who.Store(who)
	}
	return who, nil
}

// nearer reports whether a player deregistered nearer to a chunk than another one.
func (c *guest) nearer(than *guest, at grid.ChunkPos) bool {
	return c.left.Chunk().Distance(at) < than.left.Chunk().Distance(at)
}

// add creates a new player, and registers them on the connection, unless that is nil.
func (p *party) add(ctx context.Context, at grid.ChunkPos, r *registration, name string) *guest {
	label, last := p.labelFor(ctx, name, at)
	for number := 0; p.of.Registered(label) || last.Verifier != nil || !p.of.Reserve(player.GuestID(label)); number++ {
		label = player.Namesake(name, p.key.from.String(), number)
		last = p.of.loadGuests(ctx, label)[0]
	}
	who := &guest{
		party: p, id: player.GuestID(label), label: label, home: last.Home, edits: rate.NewLimiter(p.of.Edits(), p.of.Burst),
		on: r, left: last.Pose, seen: last.Seq > 0,
	}
	p.of.Players.NoteLoaded(last)
	p.of.mu.Lock()
	defer p.of.mu.Unlock()
	p.of.mu.guests[who.id] = who
	p.mu.Lock()
	defer p.mu.Unlock()
	p.mu.guests = append(p.mu.guests, who)
	if r != nil {
		r.who.Store(who)
	}
	return who
}

// anybody returns the player of a connection's party who deregistered last; a new one if it has none whose name is not
// registered, or nil if too many have come from the address.
func (p *party) anybody(ctx context.Context, r *registration) *guest {
	for _, who := range slices.Backward(p.all()) {
		if !p.of.Registered(who.label) {
			return who
		}
	}
	if !r.client.Allow(admission.Join) {
		return nil
	}
	return p.add(ctx, r.at, nil, p.key.name)
}

// labelFor returns the label of a player who is new here, unless it is taken here, and the record of the label. A
// player who had a suffix on another node until recently keeps it. The plain name may be in use on another node.
func (p *party) labelFor(ctx context.Context, name string, at grid.ChunkPos) (label string, last nodemsg.PlayerRecord) {
	suffixed := player.Namesake(name, p.key.from.String(), 0)
	records := p.of.loadGuests(ctx, name, suffixed)
	plain, own := records[0], records[1]
	fresh := func(r nodemsg.PlayerRecord) bool {
		return r.Seq > 0 && p.of.Wall().Sub(time.UnixMilli(r.SavedAt)) < labelMemory
	}
	switch {
	case fresh(own) && own.SavedAt >= plain.SavedAt-players.PublishEvery.Milliseconds():
		return suffixed, own
	case fresh(plain) && plain.Gateway != p.of.Peer && plain.Pose.Chunk().Distance(at) > entryDistance:
		return suffixed, own
	}
	return name, plain
}

// loadGuests returns the records of guests, by their labels; zero records of unknown ones.
func (ps *parties) loadGuests(ctx context.Context, labels ...string) []nodemsg.PlayerRecord {
	records := make([]nodemsg.PlayerRecord, len(labels))
	var lookups sync.WaitGroup
	for i, label := range labels {
		lookups.Go(func() {
			var err error
			if records[i], _, err = ps.Players.Load(ctx, player.GuestID(label)); err != nil {
				ps.Logger.Error("player record not loaded", "player", label, "error", err)
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
	who.on, who.left, who.leftAt, who.seen = nil, pose, time.Now(), true
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
func (p *party) registered() []*registration {
	p.mu.Lock()
	defer p.mu.Unlock()
	var all []*registration
	for _, who := range p.mu.guests {
		if who.on != nil {
			all = append(all, who.on)
		}
	}
	return all
}

// registeredElsewhere appends the players who are registered for another chunk. If one of their bodies is in this
// chunk, it may be the own player of a client that watches it.
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

// poseOf returns where a player is who plays here, or is being saved at the moment, and reports whether there is one.
func (ps *parties) poseOf(id player.ID) (pose motion.Pose, here bool) {
	if pose, here = ps.SessionPose(id); here {
		return pose, true
	}
	ps.mu.Lock()
	who := ps.mu.guests[id]
	ps.mu.Unlock()
	if who != nil {
		return who.place()
	}
	return pose, false
}

// lastPose returns where a player of a party is or was last, and reports whether that is known.
func (ps *parties) lastPose(key partyKey) (pose motion.Pose, known bool) {
	ps.mu.Lock()
	p := ps.mu.byKey[key]
	ps.mu.Unlock()
	if p == nil {
		return pose, false
	}
	return p.place()
}
