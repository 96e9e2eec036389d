package replica_test

import (
	"crypto/sha256"
	"encoding/binary"
	"slices"
	"time"

	"github.com/voxelpopuli/voxeld/chunk"
	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/internal/kv"
	"github.com/voxelpopuli/voxeld/player"
	"github.com/voxelpopuli/voxeld/replica"
	"github.com/voxelpopuli/voxeld/replica/raftgroup"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
	"github.com/voxelpopuli/voxeld/world"
)

// owner owns a replica on a node, as region's loop and catalog do, with the same state machines: world.Land for a
// region, world.Catalog for the root.
type owner struct {
	node  *machine
	id    uint64
	group *replica.Group
	model *model
	land  *world.Land    // nil for the catalog
	root  *world.Catalog // nil for a region
	at    int            // number of the model's entries that have been applied
	base  uint64         // applied when it was loaded

	leading   bool
	leader    string
	since     time.Duration // since this node or another leads
	waiting   []nodemsg.Intent
	planned   bool // a proposal is planned
	asked     map[editKey][]func(answer)
	founding  map[string][]func(answer)
	reads     []*pendingRead
	used      time.Duration // when the region was last used
	announced uint64        // the configuration that the catalog has
	slow      bool          // it looks into its mailbox later
	closed    bool
}

type editKey struct {
	player player.ID
	seq    uint64
}

type pendingRead struct {
	pos    grid.Pos
	answer <-chan raftgroup.ReadAnswer
	index  uint64 // 0 while it is not known
	reply  func(answer)
}

// answer is the reply to a player's gateway.
type answer struct {
	leader  string // ask there
	refused string
	block   chunk.Block
	index   uint64 // the state's, after the edit or at the read
	region  *nodemsg.Region
}

func tablesOf(group uint64) []replica.TablePrefix {
	if group == world.CatalogID {
		return []replica.TablePrefix{{Table: world.CatalogTable}}
	}
	prefix := binary.BigEndian.AppendUint64(nil, group)
	return []replica.TablePrefix{{Table: world.LandTable, Prefix: prefix}, {Table: wakeTable, Prefix: prefix}}
}

const simHeight = 64

// wakeTable holds rows that come and go: each entry writes a row and deletes an older one, which no land does.
const wakeTable = "wake"

func wakeOf(group, index uint64) []kv.Write {
	key := func(i uint64) []byte {
		return binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint64(nil, group), i%64)
	}
	return []kv.Write{{Table: wakeTable, Key: key(index), Value: []byte{byte(index)}}, {Table: wakeTable, Key: key(index + 60)}}
}

func newOwner(n *machine, id uint64, g *replica.Group) *owner {
	o := &owner{
		node: n, id: id, group: g, model: n.sim.model(id), since: n.sim.now, used: n.sim.now,
		asked: make(map[editKey][]func(answer)), founding: make(map[string][]func(answer)),
	}
	if conf := g.Configuration(); conf.Index > max(1, g.AppliedIndex()) {
		n.sim.fail("%s stores configuration %d of group %d with applied index %d", n.peer, conf.Index, id, g.AppliedIndex())
	}
	o.load(g.AppliedIndex())
	return o
}

// load reads the state from the tables, which must exactly match the entries up to the applied index.
func (o *owner) load(applied uint64) {
	s := o.node.sim
	s.note(note{who: o.node.peer, what: "load", a: o.id, b: applied})
	var load func(key, value []byte) error
	if o.id == world.CatalogID {
		o.root = world.NewCatalog()
		load = o.root.Load
	} else {
		o.land = world.NewLand(o.id, o.model.cell, simHeight)
		load = o.land.Load
	}
	rows := make(map[string][]byte)
	for i, t := range tablesOf(o.id) {
		err := o.node.disk.Scan(t.Table, t.Prefix, func(key, value []byte) error {
			rows[t.Table+string(key)] = value
			if i > 0 {
				return nil
			}
			return load(key, value)
		})
		if err != nil {
			s.fail("%s loads group %d: %v", o.node.peer, o.id, err)
		}
	}
	o.model.checkRows(o.node, applied, rows)
	o.at, _ = slices.BinarySearch(o.model.order, applied+1)
	o.base = applied
}

// takeDeliveries takes the mailbox. Sometimes it processes the deliveries a little later, because owners do other
// things, too.
func (o *owner) takeDeliveries() {
	for _, r := range o.reads {
		if r.index == 0 {
			select {
			case got := <-r.answer:
				index, err := got.Index, got.Err
				if err != nil {
					r.reply(answer{leader: o.leader})
					r.reply = nil
					continue
				}
				r.index = max(index, 1)
			default:
			}
		}
	}
	o.answerReads()
	select {
	case <-o.group.Ready():
	default:
		return
	}
	if o.slow {
		return
	}
	if o.node.sim.chance(0.02) {
		o.slow = true
		taken := o.group.Dequeue()
		lag := 400 * time.Millisecond
		if o.node.sim.chance(0.2) {
			lag = 3 * time.Second
		}
		o.node.later(o.node.sim.between(0, lag), func() {
			if o.slow = false; !o.closed {
				o.deliver(append(taken, o.group.Dequeue()...))
			}
		})
		return
	}
	o.deliver(o.group.Dequeue())
}

func (o *owner) answerReads() {
	o.reads = slices.DeleteFunc(o.reads, func(r *pendingRead) bool {
		if r.reply == nil {
			return true
		}
		if r.index == 0 || r.index > o.applied() {
			return false
		}
		r.reply(answer{block: o.block(r.pos), index: o.seen()})
		return true
	})
}

// applied returns the index up to which the owner has applied all entries.
func (o *owner) applied() uint64 {
	if o.at == 0 {
		return max(1, o.base)
	}
	return max(o.base, o.model.order[o.at-1])
}

// seen returns the index of the last entry in its state. Others may have applied later, internal entries.
func (o *owner) seen() uint64 {
	if o.at == 0 {
		return 1
	}
	return o.model.order[o.at-1]
}

func (o *owner) block(pos grid.Pos) chunk.Block {
	for _, e := range o.land.Chunk(pos.Chunk()).Edits {
		if e.At == chunk.At(pos) {
			return e.Block
		}
	}
	return 0
}

func (o *owner) deliver(taken []replica.Delivery) {
	for _, d := range taken {
		switch d := d.(type) {
		case replica.Committed:
			o.apply(d)
		case replica.Leadership:
			o.lead(d)
		case replica.Configured:
			o.model.configured(o.node, d)
		case replica.Restored:
			o.node.sim.count("snapshots installed")
			o.load(d.Index)
		case replica.Removed:
			o.node.forget(o.id, nil)
			return
		case replica.Failed:
			o.node.sim.note(note{who: o.node.peer, what: "failed", a: o.id, text: d.Err.Error()})
			o.node.sim.count("groups failed")
			o.model.mayFail(o.node, d.Err)
			o.closed = true
			o.node.owners = slices.DeleteFunc(o.node.owners, func(other *owner) bool { return other == o })
			group := o.id
			o.node.later(time.Second, func() { o.node.open(replica.Founding{Group: group}, nil) })
			return
		}
		if o.node.sim.failure != "" {
			return
		}
	}
	o.answerReads()
}

func (o *owner) lead(d replica.Leadership) {
	s := o.node.sim
	if d.Self {
		s.count("leaderships")
		s.note(note{who: o.node.peer, what: "leads", a: o.id, b: d.Term})
	}
	o.leading, o.leader, o.since = d.Self, d.Leader, s.now
	if !d.Self {
		o.waiting = nil // their gateways ask again
		clear(o.founding)
	}
}

func (o *owner) apply(c replica.Committed) {
	if o.root != nil {
		o.applyRoot(c)
		return
	}
	out, err := o.land.Apply(c.Index, c.Entry)
	if err != nil {
		o.node.sim.fail("%s cannot apply entry %d of group %d: %v", o.node.peer, c.Index, o.id, err)
		return
	}
	writes := append(o.land.Writes(), wakeOf(o.id, c.Index)...)
	if o.model.applied(o, c, writes) {
		o.model.countEdit(c, out)
	}
	o.group.ReportApplied(c.Index, writes)
	for _, r := range out.Results {
		key := editKey{r.Player, r.Seq}
		for _, reply := range o.asked[key] {
			reply(answer{refused: r.Refused, block: r.Block, index: c.Index})
		}
		delete(o.asked, key)
	}
}

func (o *owner) applyRoot(c replica.Committed) {
	region, writes, err := o.root.Apply(c.Index, c.Entry)
	if err != nil {
		o.node.sim.fail("%s cannot apply entry %d of the catalog: %v", o.node.peer, c.Index, err)
		return
	}
	o.model.applied(o, c, writes)
	o.node.sim.founded(region)
	o.group.ReportApplied(c.Index, writes)
	key := region.Cell.String()
	for _, reply := range o.founding[key] {
		reply(answer{region: &region})
	}
	delete(o.founding, key)
}

// edit accepts an edit of a gateway.
func (o *owner) edit(e nodemsg.Intent, reply func(answer)) {
	o.used = o.node.sim.now
	if !o.leading {
		reply(answer{leader: o.leader})
		return
	}
	key := editKey{e.Player, e.Seq}
	o.asked[key] = append(o.asked[key], reply)
	o.waiting = append(o.waiting, e)
	o.plan()
}

// plan proposes what waits with the next tick of the region.
func (o *owner) plan() {
	if o.planned {
		return
	}
	o.planned = true
	o.node.later(50*time.Millisecond, func() {
		o.planned = false
		if o.closed || !o.leading || len(o.waiting) == 0 {
			return
		}
		b := world.Batch{Time: 1e12 + o.node.sim.now.Milliseconds(), Edits: o.waiting}
		for _, e := range o.waiting {
			pos := e.Pos.Chunk()
			if !o.land.Pinned(pos) && !slices.ContainsFunc(b.Pins, func(p world.Pin) bool { return p.Chunk == pos }) {
				b.Pins = append(b.Pins, world.Pin{Chunk: pos, Base: sha256.Sum256([]byte(o.model.cell.String()))})
			}
		}
		if err := o.group.Propose(b.Encode()); err != nil {
			o.plan()
			return
		}
		o.waiting = nil
	})
}

// read accepts a linearizable read of a block.
func (o *owner) read(pos grid.Pos, reply func(answer)) {
	o.used = o.node.sim.now
	got, err := o.group.RequestReadIndex()
	if err != nil {
		reply(answer{leader: o.leader})
		return
	}
	o.reads = append(o.reads, &pendingRead{pos: pos, answer: got, reply: reply})
}

// found answers a question for the region that covers a cell, which is founded if there is none.
func (o *owner) found(cell grid.Cell, members []nodemsg.Member, reply func(answer)) {
	if !o.leading {
		reply(answer{leader: o.leader})
		return
	}
	if region, ok := o.root.Locate(firstChunk(cell)); ok {
		reply(answer{region: &region})
		return
	}
	entry, err := world.EncodeFound(nodemsg.Found{Cell: cell, Members: members})
	if err != nil {
		o.node.sim.fail("found %v: %v", cell, err)
		return
	}
	if o.group.Propose(entry) == nil {
		o.founding[cell.String()] = append(o.founding[cell.String()], reply)
	}
}

// moved accepts a region leader's report of its members.
func (o *owner) moved(to nodemsg.Region, reply func(answer)) {
	if !o.leading {
		reply(answer{leader: o.leader})
		return
	}
	entry, err := world.EncodeMoved(to)
	if err != nil {
		o.node.sim.fail("move: %v", err)
		return
	}
	if o.group.Propose(entry) == nil {
		o.founding[to.Cell.String()] = append(o.founding[to.Cell.String()], reply)
	}
}

func firstChunk(c grid.Cell) grid.ChunkPos {
	a := c.Area()
	return grid.ChunkPos{X: a.MinX, Z: a.MinZ}
}
