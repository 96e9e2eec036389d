// Package crowd holds the players in a region, and what changes about them between two frames.
package crowd

import (
	"slices"

	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/motion"
	"github.com/voxelpopuli/voxeld/player"
	"github.com/voxelpopuli/voxeld/wire"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
	"github.com/voxelpopuli/voxeld/world"
)

const (
	// maxCrowd bounds the bodies in a region to the length of a list in one message between nodes.
	maxCrowd = wire.MaxBodies
	// maxChats bounds a region's chat lines between two Flushes.
	maxChats = 1024
	// maxBodiesOfPeer and maxChatsOfPeer are what one node's gateway may have of both, so that others have some left.
	maxBodiesOfPeer = maxCrowd / 4 * 3
	maxChatsOfPeer  = maxChats / 4
	// maxInserts is how many avatars come into a chunk, or leave it, before its list is put in order only when it is
	// used: in a long list, that takes less time.
	maxInserts = 64
)

// Crowd holds the avatars in a region, and the changes of each chunk since the last Flush. It is live state: never
// logged, and rebuilt by the gateways when a region moves.
type Crowd struct {
	cell    grid.Cell
	bodies  map[player.ID]*avatar
	inside  map[grid.ChunkPos]*occupants    // of each chunk; no empty ones in order
	changes map[grid.ChunkPos]*chunkChanges // since the last Flush
	lines   int                             // chat lines in changes
	chats   map[string]int                  // those of each peer
	owned   map[string]int                  // bodies, by peer; no zeros
	tick    uint64
	orders  uint64 // how often a list was put in order
	inserts int    // maxInserts but in tests
}

// Owner is a gateway's link, and the node at its other end. Bodies that the region shows itself are of no node, and
// count for none.
type Owner struct {
	Link uint64
	Peer string
}

// avatar is a body, its chunk, and the gateway link that owns it. If a player arrives through a second gateway, the
// newer link owns the body.
type avatar struct {
	body    nodemsg.Body
	chunk   grid.ChunkPos
	owner   Owner
	posedAt uint64 // the tick of the pose, from which the way continues
	moved   bool   // within the chunk since the last Flush; counted in the chunk's changes
	found   uint64 // Crowd.orders when it was last put in order
}

// occupants are the avatars of one chunk.
type occupants struct {
	// list is by ascending id after up to Crowd.inserts changes. After more it is in no order, and an avatar may be in
	// it repeatedly, and still when it has left.
	list    []*avatar
	changes int // who has come or left since it was last used
}

// chunkChanges collects the changes of one chunk since the last Flush. It has no poses: only the newest one matters.
type chunkChanges struct {
	wasInside map[player.ID]bool // for players who entered or left: whether they were inside at the last Flush
	moved     int                // how many moved within the chunk; some of them may have left since
	blocks    []nodemsg.BlockAt
	signs     []nodemsg.SignAt // the texts of those among blocks
	chats     []nodemsg.ChatEvent
	base      []byte // the chunk was pinned
}

// New returns the empty crowd of a cell.
func New(cell grid.Cell) *Crowd {
	return &Crowd{
		cell:    cell,
		bodies:  make(map[player.ID]*avatar),
		inside:  make(map[grid.ChunkPos]*occupants),
		changes: make(map[grid.ChunkPos]*chunkChanges),
		chats:   make(map[string]int),
		owned:   make(map[string]int),
		inserts: maxInserts,
	}
}

// Tick starts a tick. There are 20 per second while the region has avatars.
func (c *Crowd) Tick() { c.tick++ }

// Len returns the number of avatars in the region.
func (c *Crowd) Len() int { return len(c.bodies) }

// Bodies calls visit with each body, at its last known pose, in no particular order.
func (c *Crowd) Bodies(visit func(*nodemsg.Body)) {
	for _, p := range c.bodies {
		visit(&p.body)
	}
}

// Has reports whether a player's body is in the region.
func (c *Crowd) Has(id player.ID) bool { return c.bodies[id] != nil }

// Gateway returns the node whose gateway a player's body in the region belongs to; "" if it is of no node, or not there.
func (c *Crowd) Gateway(id player.ID) string {
	if a := c.bodies[id]; a != nil {
		return a.owner.Peer
	}
	return ""
}

// Enter adds a body, owned by the link of its gateway. It ignores poses outside of the region, and bodies beyond the
// region's limit, or that of the gateway's node.
func (c *Crowd) Enter(owner Owner, body nodemsg.Body) {
	at := body.Pose.Chunk()
	p := c.bodies[body.Player]
	switch {
	case !c.cell.Contains(at):
		return
	case (p == nil || p.owner.Peer != owner.Peer) && owner.Peer != "" && c.owned[owner.Peer] == maxBodiesOfPeer:
		return
	case p != nil:
		c.own(p.owner.Peer, -1)
		c.removeFromChunk(p)
	case len(c.bodies) == maxCrowd:
		return
	default:
		p = &avatar{}
		c.bodies[body.Player] = p
	}
	c.own(owner.Peer, 1)
	p.body, p.chunk, p.owner, p.posedAt = body, at, owner, c.tick
	c.addToChunk(p)
}

// own counts bodies of a node's gateway.
func (c *Crowd) own(peer string, n int) {
	if c.owned[peer] += n; c.owned[peer] == 0 {
		delete(c.owned, peer)
	}
}

// Move sets the pose of a body. Only the link that owns the body may move it. A pose outside of the region is ignored:
// the gateway will remove the body.
func (c *Crowd) Move(link uint64, move nodemsg.BodyMove) {
	p := c.bodies[move.Player]
	at := move.Pose.Chunk()
	if p == nil || p.owner.Link != link || !c.cell.Contains(at) {
		return
	}
	p.body.Pose, p.body.Velocity, p.posedAt = move.Pose, move.Velocity, c.tick
	if at == p.chunk {
		if !p.moved { // this is the bulk of a region's input
			p.moved = true
			c.changesOf(at).moved++
		}
		return
	}
	c.removeFromChunk(p)
	p.chunk = at
	c.addToChunk(p)
}

// Leave removes a body if the link owns it.
func (c *Crowd) Leave(link uint64, id player.ID) {
	if p := c.bodies[id]; p != nil && p.owner.Link == link {
		c.own(p.owner.Peer, -1)
		c.removeFromChunk(p)
		delete(c.bodies, id)
	}
}

// LeaveAll removes all bodies that the link owns: its gateway has disconnected.
func (c *Crowd) LeaveAll(link uint64) {
	for id, p := range c.bodies {
		if p.owner.Link == link {
			c.Leave(link, id)
		}
	}
}

// Chat adds a chat line of a node's gateway to the changes of its chunk, and its number to the author's body. Lines
// beyond maxChats, or maxChatsOfPeer, are dropped.
func (c *Crowd) Chat(peer string, u nodemsg.ChatEvent) {
	if c.cell.Contains(u.Chunk) && c.lines < maxChats && c.chats[peer] < maxChatsOfPeer {
		c.lines++
		c.chats[peer]++
		if p := c.bodies[u.Player]; p != nil {
			if s, ok := u.Clock(); ok {
				p.body.Said = max(p.body.Said, s.Own())
			}
		}
		h := c.changesOf(u.Chunk)
		h.chats = append(h.chats, u)
	}
}

// Changed adds a block change to the changes of its chunk.
func (c *Crowd) Changed(change world.Change) {
	h := c.changesOf(change.Chunk)
	h.blocks = append(h.blocks, change.BlockAt)
	h.signs = slices.DeleteFunc(h.signs, func(s nodemsg.SignAt) bool { return s.At == change.At })
	if change.Text != "" {
		h.signs = append(h.signs, nodemsg.SignAt{At: change.At, Text: change.Text})
	}
}

// Pinned adds the base of a newly edited chunk to the changes of its chunk.
func (c *Crowd) Pinned(p world.Pin) { c.changesOf(p.Chunk).base = p.Base[:] }

// LandChanged reports whether blocks or bases are among the changes since the last Flush.
func (c *Crowd) LandChanged() bool {
	for _, h := range c.changes {
		if len(h.blocks)+len(h.base) > 0 {
			return true
		}
	}
	return false
}

// Inside returns the bodies in the chunk at their extrapolated poses, by ascending id.
func (c *Crowd) Inside(at grid.ChunkPos) []nodemsg.Body {
	var bodies []nodemsg.Body
	for _, p := range c.ordered(at) {
		body := p.body
		body.Pose, body.Velocity = body.Velocity.Coast(body.Pose, float64(c.tick-p.posedAt), motion.ExtrapolationTicks, at)
		bodies = append(bodies, body)
	}
	return bodies
}

// Count visits the chunks with bodies, and their number, in no particular order.
func (c *Crowd) Count(visit func(at grid.ChunkPos, bodies int)) {
	for at := range c.inside {
		if n := len(c.ordered(at)); n > 0 {
			visit(at, n)
		}
	}
}

// Flush returns and clears the changes of all chunks since the last Flush. A mirror of the chunk's bodies as of the
// last Flush is current after applying Leave, Enter and Moves. A player is in at most one of a chunk's three lists;
// each list is in ascending order of ids.
func (c *Crowd) Flush() map[grid.ChunkPos]*nodemsg.ChunkDelta {
	if len(c.changes) == 0 {
		return nil
	}
	deltas := make(map[grid.ChunkPos]*nodemsg.ChunkDelta, len(c.changes))
	for at, h := range c.changes {
		moves := movesOf(c.ordered(at), h)
		n := &nodemsg.ChunkDelta{Chunk: at, Blocks: h.blocks, Signs: h.signs, Chat: h.chats, Base: h.base, Moves: moves}
		for id, before := range h.wasInside {
			switch p := c.bodies[id]; {
			case p != nil && p.chunk == at: // inside now, so the last crossing was an entry
				n.Enter = append(n.Enter, p.body)
			case before:
				n.Leave = append(n.Leave, id)
			}
		}
		if len(n.Enter)+len(n.Moves)+len(n.Leave)+len(n.Blocks)+len(n.Chat)+len(n.Base) == 0 {
			continue // entered and left between two Flushes
		}
		slices.SortFunc(n.Enter, func(a, b nodemsg.Body) int { return player.ID.Compare(a.Player, b.Player) })
		slices.SortFunc(n.Leave, player.ID.Compare)
		deltas[at] = n
	}
	clear(c.changes)
	clear(c.chats)
	c.lines = 0
	return deltas
}

// movesOf returns the poses of those who moved within the chunk and have not entered since the last Flush.
func movesOf(inside []*avatar, h *chunkChanges) []nodemsg.BodyMove {
	if h.moved == 0 {
		return nil
	}
	moves := make([]nodemsg.BodyMove, 0, h.moved)
	for _, p := range inside {
		if !p.moved {
			continue
		}
		p.moved = false
		if _, entered := h.wasInside[p.body.Player]; !entered {
			moves = append(moves, nodemsg.BodyMove{Player: p.body.Player, Pose: p.body.Pose, Velocity: p.body.Velocity})
		}
	}
	return moves
}

// ordered returns the avatars in the chunk, by ascending id.
func (c *Crowd) ordered(at grid.ChunkPos) []*avatar {
	o := c.inside[at]
	if o == nil {
		return nil
	}
	if o.changes > c.inserts {
		c.orders++
		kept := o.list[:0]
		for _, p := range o.list {
			if p.found != c.orders && p.chunk == at && c.bodies[p.body.Player] == p {
				p.found = c.orders
				kept = append(kept, p)
			}
		}
		clear(o.list[len(kept):])
		o.list = kept
		slices.SortFunc(o.list, func(a, b *avatar) int { return player.ID.Compare(a.body.Player, b.body.Player) })
		if len(o.list) == 0 {
			delete(c.inside, at)
		}
	}
	o.changes = 0
	return o.list
}

// search returns the index of the player in a list that is in order.
func (o *occupants) search(id player.ID) (int, bool) {
	return slices.BinarySearchFunc(o.list, id, func(p *avatar, id player.ID) int { return player.ID.Compare(p.body.Player, id) })
}

func (c *Crowd) addToChunk(p *avatar) {
	o := c.inside[p.chunk]
	if o == nil {
		o = &occupants{}
		c.inside[p.chunk] = o
	}
	if o.changes++; o.changes <= c.inserts {
		i, _ := o.search(p.body.Player)
		o.list = slices.Insert(o.list, i, p)
	} else {
		o.list = append(o.list, p)
	}
	p.moved = false
	c.recordCrossing(p.chunk, p.body.Player, false)
}

func (c *Crowd) removeFromChunk(p *avatar) {
	o := c.inside[p.chunk]
	if o.changes++; o.changes <= c.inserts {
		if i, here := o.search(p.body.Player); here {
			o.list = slices.Delete(o.list, i, i+1)
		}
		if len(o.list) == 0 {
			delete(c.inside, p.chunk)
		}
	}
	c.recordCrossing(p.chunk, p.body.Player, true)
}

// recordCrossing records that the player has entered or left the chunk. before is kept only for the first such event
// since the last Flush.
func (c *Crowd) recordCrossing(at grid.ChunkPos, id player.ID, before bool) {
	h := c.changesOf(at)
	if _, recorded := h.wasInside[id]; recorded {
		return
	}
	if h.wasInside == nil {
		h.wasInside = make(map[player.ID]bool)
	}
	h.wasInside[id] = before
}

func (c *Crowd) changesOf(at grid.ChunkPos) *chunkChanges {
	h := c.changes[at]
	if h == nil {
		h = &chunkChanges{}
		c.changes[at] = h
	}
	return h
}
