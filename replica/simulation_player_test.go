package replica_test

import (
	"fmt"
	"time"

	"github.com/voxelpopuli/voxeld/chunk"
	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/player"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
	"github.com/voxelpopuli/voxeld/world"
)

// place is a cell that players build in.
type place struct {
	cell grid.Cell
	pos  []grid.Pos
}

func (s *sim) addCell() {
	first := grid.ChunkPos{X: int32(16 * len(s.cells)), Z: 0}
	p := place{cell: grid.CellAt(first, grid.FoundingLabel)}
	origin := first.Origin()
	for i := range int32(4) {
		p.pos = append(p.pos, grid.Pos{X: origin.X + i, Y: 10, Z: origin.Z})
	}
	s.cells = append(s.cells, p)
}

// client is a player with the part of a gateway that holds the session. It does one thing after the other, and repeats
// what is not answered: an edit keeps its sequence number wherever it is sent.
type client struct {
	sim     *sim
	number  int
	name    string
	seq     uint64
	gateway *machine
	home    int // the cell where it builds
	known   map[int]nodemsg.Region
	leaders map[uint64]string // by group, according to the last answer
	op      *op
	sweep   []*op // what is left to do before a calm world counts as well
	wanted  bool  // the current sweep has not ended
}

// guest returns an edit of a guest.
func guest(name string, seq uint64, pos grid.Pos, block chunk.Block) nodemsg.Intent {
	return nodemsg.Intent{Player: player.GuestID(name), Proof: nodemsg.Proof{Name: name}, Seq: seq, Pos: pos, Block: block}
}

// op is one thing that a player does.
type op struct {
	cell     int
	read     bool
	pos      grid.Pos
	intent   nodemsg.Intent
	began    time.Duration
	floor    uint64 // index of the newest state that any player had seen when it began
	tries    int
	sent     time.Duration // when another node had referred to this one
	recorded bool          // its block is in the history
	history  int
}

func (s *sim) addClient() {
	c := &client{
		sim: s, number: len(s.clients), known: make(map[int]nodemsg.Region), leaders: make(map[uint64]string),
		gateway: s.nodes[len(s.clients)%len(s.nodes)],
	}
	c.name = fmt.Sprint("guest", c.number)
	s.clients = append(s.clients, c)
	s.at(s.between(0, time.Second), c.act)
}

// act begins the next thing.
func (c *client) act() {
	s := c.sim
	if c.op != nil {
		return
	}
	if s.chance(0.05) {
		c.home = s.random.IntN(len(s.cells))
	}
	var o *op
	switch {
	case len(c.sweep) > 0:
		o, c.sweep = c.sweep[0], c.sweep[1:]
	case c.wanted:
		c.wanted = false
		fallthrough
	default:
		cell := c.home
		if s.chance(0.1) {
			cell = s.random.IntN(len(s.cells))
		}
		o = c.newOp(cell, s.chance(0.3))
	}
	o.began = s.now
	if r, ok := c.known[o.cell]; ok {
		o.floor = s.model(r.ID).settled
	}
	c.op = o
	c.try(o)
}

func (c *client) newOp(cell int, read bool) *op {
	s := c.sim
	o := &op{cell: cell, read: read, pos: s.cells[cell].pos[s.random.IntN(len(s.cells[cell].pos))]}
	if !read {
		c.seq++
		s.blocks++
		if s.blocks == 0 {
			s.blocks = 1
		}
		o.intent = guest(c.name, c.seq, o.pos, chunk.Block(s.blocks))
	}
	return o
}

// try asks a node, and if there is no reply for a while, another one.
func (c *client) try(o *op) {
	s := c.sim
	o.tries++
	this := o.tries
	s.at(s.now+s.between(300*time.Millisecond, 1200*time.Millisecond), func() {
		if c.op != o || o.tries != this {
			return
		}
		if !s.calm && o.tries > 3 && s.chance(0.1) {
			c.abandon(o)
			return
		}
		if c.gateway.host == nil || s.chance(0.2) {
			c.gateway = s.anyNode()
		}
		if r, ok := c.known[o.cell]; ok {
			delete(c.leaders, r.ID)
		}
		delete(c.leaders, world.CatalogID)
		c.try(o)
	})
	if c.gateway.host == nil || c.gateway.paused {
		return
	}
	region, ok := c.known[o.cell]
	if !ok {
		c.locate(o)
		return
	}
	if !o.recorded && !o.read {
		o.recorded, o.history = true, c.record(o)
	}
	to := c.choose(region.ID)
	s.ship(c.gateway, to, func() { to.serveOp(region, o, c.reply(o, to)) })
}

// choose picks the node to ask: the reported leader, else a member from the catalog, or any node.
func (c *client) choose(group uint64) *machine {
	s := c.sim
	if n := s.peers[c.leaders[group]]; n != nil {
		return n
	}
	if members := s.model(group).region.Members; len(members) > 0 && s.chance(0.8) {
		return s.peers[members[s.random.IntN(len(members))].Peer]
	}
	return s.anyNode()
}

// anyNode returns a node that is not gone for good.
func (s *sim) anyNode() *machine {
	for {
		if n := s.nodes[s.random.IntN(len(s.nodes))]; !n.gone {
			return n
		}
	}
}

// locate asks the catalog for a cell's region, and has it founded on random nodes.
func (c *client) locate(o *op) {
	s := c.sim
	cell := s.cells[o.cell].cell
	var members []nodemsg.Member
	for _, i := range s.random.Perm(len(s.nodes)) {
		if n := s.nodes[i]; n.host != nil && len(members) < 3 { // pinged first
			members = append(members, nodemsg.Member{Peer: n.peer, Game: gameAddress})
		}
	}
	to := c.choose(world.CatalogID)
	reply := c.reply(o, to)
	s.ship(c.gateway, to, func() {
		if root := to.owner(world.CatalogID); root != nil && len(members) > 0 {
			root.found(cell, members, reply)
		}
	})
}

const gameAddress = "127.0.0.1:4002"

// reply delivers an answer to the gateway, if its process is still the same.
func (c *client) reply(o *op, from *machine) func(answer) {
	s, gateway, life := c.sim, c.gateway, c.gateway.life
	return func(a answer) {
		s.ship(from, gateway, func() {
			if gateway.life == life && c.op == o {
				c.handleAnswer(o, from, a)
			}
		})
	}
}

func (c *client) handleAnswer(o *op, from *machine, a answer) {
	s := c.sim
	group := uint64(world.CatalogID)
	if r, ok := c.known[o.cell]; ok {
		group = r.ID
	}
	switch {
	case a.region != nil:
		if old, ok := c.known[o.cell]; ok && old.ID != a.region.ID {
			s.fail("player %d was told of regions %d and %d of one cell", c.number, old.ID, a.region.ID)
		}
		c.known[o.cell] = *a.region
		c.leaders[world.CatalogID] = from.peer
		o.floor = max(o.floor, s.model(a.region.ID).settled)
		c.try(o)
	case a.index == 0:
		if a.leader != "" && a.leader != from.peer {
			c.leaders[group] = a.leader
			if s.now > o.sent+20*time.Millisecond { // two nodes that refer to each other must not keep the client busy
				o.sent = s.now
				c.try(o)
			}
		}
	case o.recorded && group == world.CatalogID:
	default:
		c.leaders[group] = from.peer
		c.finish(o, a)
	}
}

// finish ends an operation with an answer, which must fit everything that was answered before it began.
func (c *client) finish(o *op, a answer) {
	s := c.sim
	m := s.model(c.known[o.cell].ID)
	switch {
	case a.refused != "":
		s.count("edits refused: " + a.refused)
		c.abandon(o)
		return
	case o.read:
		s.count("reads")
		if a.index < o.floor {
			s.fail("a read of player %d sees entry %d of group %d; when it began a player had seen %d", c.number, a.index, m.group, o.floor)
		}
		if want := m.blockAt(o.pos, a.index); a.block != want {
			s.fail("a read of player %d at entry %d of group %d returns block %d, not %d", c.number, a.index, m.group, a.block, want)
		}
		o.intent.Block = a.block
		o.recorded, o.history = true, c.record(o)
	default:
		s.count("acknowledged")
		index, ok := m.used[editKey{o.intent.Player, o.intent.Seq}]
		if !ok || index <= o.floor {
			s.fail("edit %d of player %d is acknowledged, applied at entry %d; when it began a player had seen %d", o.intent.Seq, c.number, index, o.floor)
		}
		a.index = index
	}
	s.note(note{who: "p" + fmt.Sprint(c.number), what: "done", a: m.group, b: a.index})
	name := o.pos.String()
	s.history[name][o.history].back = s.now
	m.settled = max(m.settled, a.index)
	c.rest()
}

// abandon ends an operation of unknown outcome: the player has left.
func (c *client) abandon(*op) {
	c.sim.count("given up")
	c.rest()
}

func (c *client) rest() {
	c.op = nil
	pause := c.sim.between(100*time.Millisecond, 2*time.Second)
	if len(c.sweep) > 0 || c.wanted {
		pause = c.sim.between(0, 50*time.Millisecond)
	}
	c.sim.at(c.sim.now+pause, c.act)
}

// record adds an operation to the history, without an end yet.
func (c *client) record(o *op) int {
	name := o.pos.String()
	all := append(c.sim.history[name], operation{
		client: c.number, read: o.read, block: o.intent.Block, call: o.began, back: never,
	})
	c.sim.history[name] = all
	return len(all) - 1
}

// serveOp performs a player's operation on a node.
func (n *machine) serveOp(region nodemsg.Region, o *op, reply func(answer)) {
	own := n.owner(region.ID)
	switch {
	case own == nil:
		n.wake(region)
	case own.closed:
	case o.read:
		own.read(o.pos, reply)
	default:
		own.edit(o.intent, reply)
	}
}
