package world

import (
	"math"
	"slices"

	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/player"
	"github.com/voxelpopuli/voxeld/wire"
)

const (
	// maxCrowd bounds the bodies in a region: what one message between nodes may list.
	maxCrowd = wire.MaxBodies
	// maxSays bounds the chat lines of a region between two Takes, so that news fit into a frame.
	maxSays = 1024
)

// Crowd is who walks about in a region, and what became of each chunk since the last Take. It is live
// state: never logged, rebuilt by the gateways when a region moves.
type Crowd struct {
	cell   grid.Cell
	bodies map[player.ID]*presence
	inside map[grid.ChunkPos][]*presence // who is in which chunk, in the order of their ids; no empty lists
	news   map[grid.ChunkPos]*happenings // since the last Take
	says   int                           // chat lines in news
	tick   uint64
}

// presence is a body, the chunk it stands in, and the gateway (by the number of its link) that speaks
// for it. When a player comes in by a second gateway the newer one speaks.
type presence struct {
	body  wire.Body
	chunk grid.ChunkPos
	link  uint64
	told  uint64 // the tick in which its pose came, from which it goes on along its way
	moved bool   // within the chunk, since the last Take; the chunk's news count it
}

// happenings is what became of one chunk since the last Take. Poses are not in it: the newest one counts.
type happenings struct {
	marks  map[player.ID]mark // whoever came or went
	moved  int                // how many moved within the chunk; some of them may have left it since
	blocks []wire.BlockAt
	says   []wire.Utterance
	base   []byte // the chunk was pinned
}

// mark says of a player who came into a chunk, or left it, that he was there at the last Take: viewers know him.
type mark bool

// NewCrowd gives the empty crowd of a cell.
func NewCrowd(cell grid.Cell) *Crowd {
	return &Crowd{
		cell:   cell,
		bodies: make(map[player.ID]*presence),
		inside: make(map[grid.ChunkPos][]*presence),
		news:   make(map[grid.ChunkPos]*happenings),
	}
}

// Tick begins a tick, of which there are 20 a second while somebody is here.
func (c *Crowd) Tick() { c.tick++ }

// Len is the number of avatars in the region.
func (c *Crowd) Len() int { return len(c.bodies) }

// Enter brings a body in, by the link of its gateway. Poses outside of the region are ignored, and so is
// whoever comes when the region is full.
func (c *Crowd) Enter(link uint64, body wire.Body) {
	at := ChunkOf(body.Pose)
	if !c.cell.Contains(at) {
		return
	}
	p := c.bodies[body.Player]
	switch p {
	case nil:
		if len(c.bodies) == maxCrowd {
			return
		}
		p = &presence{}
		c.bodies[body.Player] = p
	default:
		c.takeOut(p)
	}
	p.body, p.chunk, p.link, p.told = body, at, link, c.tick
	c.putIn(p)
}

// Move takes a body to a new pose. Only the link that speaks for it may move it; a pose outside of the
// region is ignored: its gateway will take the body out.
func (c *Crowd) Move(link uint64, move wire.BodyMove) {
	p := c.bodies[move.Player]
	at := ChunkOf(move.Pose)
	if p == nil || p.link != link || !c.cell.Contains(at) {
		return
	}
	p.body.Pose, p.body.Way, p.told = move.Pose, move.Way, c.tick
	if at == p.chunk {
		if !p.moved { // most of what a region is told is this
			p.moved = true
			c.newsOf(at).moved++
		}
		return
	}
	c.takeOut(p)
	p.chunk = at
	c.putIn(p)
}

// Leave takes a body out, if the link speaks for it.
func (c *Crowd) Leave(link uint64, id player.ID) {
	if p := c.bodies[id]; p != nil && p.link == link {
		c.takeOut(p)
		delete(c.bodies, id)
	}
}

// LeaveAll takes out all bodies that the link speaks for: its gateway is gone.
func (c *Crowd) LeaveAll(link uint64) {
	for id, p := range c.bodies {
		if p.link == link {
			c.Leave(link, id)
		}
	}
}

// Say puts a chat line into the news of the chunk it is said in, and its number into the speaker's body. Lines beyond
// maxSays are dropped.
func (c *Crowd) Say(u wire.Utterance) {
	if c.cell.Contains(u.Chunk) && c.says < maxSays {
		c.says++
		if p := c.bodies[u.Player]; p != nil {
			if s, ok := u.Clock(); ok {
				p.body.Said = max(p.body.Said, s.Own())
			}
		}
		h := c.newsOf(u.Chunk)
		h.says = append(h.says, u)
	}
}

// Changed puts a block change into the news.
func (c *Crowd) Changed(change Change) {
	h := c.newsOf(change.Chunk)
	h.blocks = append(h.blocks, change.BlockAt)
}

// Pinned puts the base of a chunk that was edited for the first time into the news.
func (c *Crowd) Pinned(p Pin) { c.newsOf(p.Chunk).base = p.Base[:] }

// Inside gives the bodies that are in the chunk, where they have got by now, in the order of their ids.
func (c *Crowd) Inside(at grid.ChunkPos) []wire.Body {
	var bodies []wire.Body
	for _, p := range c.inside[at] {
		body, ticks := p.body, min(c.tick-p.told, wire.WayTicks)
		body.Pose = body.Way.Along(body.Pose, float64(ticks), at)
		if ticks == wire.WayTicks {
			body.Way = wire.Way{}
		}
		bodies = append(bodies, body)
	}
	return bodies
}

// Take gives the news of all chunks since the last Take, and forgets them. Whoever knew the chunk's
// bodies at the last Take knows them again after applying Leave, Enter and Moves. One player is in at
// most one of a chunk's three lists; each list is in the order of the ids.
func (c *Crowd) Take() map[grid.ChunkPos]*wire.ChunkNews {
	if len(c.news) == 0 {
		return nil
	}
	news := make(map[grid.ChunkPos]*wire.ChunkNews, len(c.news))
	for at, h := range c.news {
		n := &wire.ChunkNews{Chunk: at, Blocks: h.blocks, Says: h.says, Base: h.base, Moves: c.takeMoves(at, h)}
		for id, m := range h.marks {
			switch _, here := c.search(at, id); {
			case here: // a mark of who is here says that he came: nobody leaves a chunk and is in it but by coming in
				n.Enter = append(n.Enter, c.bodies[id].body)
			case bool(m):
				n.Leave = append(n.Leave, id)
			}
		}
		if len(n.Enter)+len(n.Moves)+len(n.Leave)+len(n.Blocks)+len(n.Says)+len(n.Base) == 0 {
			continue // somebody came and went, unseen
		}
		slices.SortFunc(n.Enter, func(a, b wire.Body) int { return compareIDs(a.Player, b.Player) })
		slices.SortFunc(n.Leave, compareIDs)
		news[at] = n
	}
	clear(c.news)
	c.says = 0
	return news
}

// takeMoves gives the poses of those who moved within the chunk and have not come in since the last Take.
func (c *Crowd) takeMoves(at grid.ChunkPos, h *happenings) []wire.BodyMove {
	if h.moved == 0 {
		return nil
	}
	moves := make([]wire.BodyMove, 0, h.moved)
	for _, p := range c.inside[at] {
		if !p.moved {
			continue
		}
		p.moved = false
		if _, came := h.marks[p.body.Player]; !came {
			moves = append(moves, wire.BodyMove{Player: p.body.Player, Pose: p.body.Pose, Way: p.body.Way})
		}
	}
	return moves
}

// search gives the player's place among those in the chunk.
func (c *Crowd) search(at grid.ChunkPos, id player.ID) (int, bool) {
	return slices.BinarySearchFunc(c.inside[at], id, func(p *presence, id player.ID) int { return compareIDs(p.body.Player, id) })
}

func (c *Crowd) putIn(p *presence) {
	i, _ := c.search(p.chunk, p.body.Player)
	c.inside[p.chunk] = slices.Insert(c.inside[p.chunk], i, p)
	p.moved = false
	c.mark(p.chunk, p.body.Player, false)
}

func (c *Crowd) takeOut(p *presence) {
	if i, here := c.search(p.chunk, p.body.Player); here {
		c.inside[p.chunk] = slices.Delete(c.inside[p.chunk], i, i+1)
	}
	if len(c.inside[p.chunk]) == 0 {
		delete(c.inside, p.chunk)
	}
	c.mark(p.chunk, p.body.Player, true)
}

// mark notes that the player has come into the chunk, or left it. Before counts only if it is the first such thing
// since the last Take.
func (c *Crowd) mark(at grid.ChunkPos, id player.ID, before mark) {
	h := c.newsOf(at)
	if _, marked := h.marks[id]; marked {
		return
	}
	if h.marks == nil {
		h.marks = make(map[player.ID]mark)
	}
	h.marks[id] = before
}

func (c *Crowd) newsOf(at grid.ChunkPos) *happenings {
	h := c.news[at]
	if h == nil {
		h = &happenings{}
		c.news[at] = h
	}
	return h
}

// ChunkOf is the chunk that a pose stands in. The pose must be within the world's bounds.
func ChunkOf(p wire.Pose) grid.ChunkPos {
	return grid.ChunkPos{
		X: int32(math.Floor(p.X / grid.ChunkSize)),
		Z: int32(math.Floor(p.Z / grid.ChunkSize)),
	}
}
