package replica_test

import (
	"bytes"
	"errors"
	"slices"
	"sort"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/voxelpopuli/voxeld/chunk"
	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/internal/kv"
	"github.com/voxelpopuli/voxeld/replica"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
	"github.com/voxelpopuli/voxeld/world"
)

// model is what the test has observed of a group: the first report of any node. All other nodes are compared with it.
type model struct {
	sim    *sim
	group  uint64
	cell   grid.Cell
	copies int

	order   []uint64          // indexes of the entries that owners see, ascending
	entries map[uint64]uint64 // index → hash of term, entry, what it writes, and the hash before it
	rows    map[string][]version
	used    map[editKey]uint64 // index at which an edit was applied
	blocks  map[grid.Pos][]blockAt
	settled uint64 // a completed operation saw the state of this index: later ones must not see less

	confs   map[uint64][]replica.Member
	newest  replica.Configured
	retired map[uint64]uint64 // replica ids that were members once → index of the configuration without them
	leaders map[uint64][2]any // term → peer, replica id
	region  nodemsg.Region    // as the catalog has it
}

type version struct {
	index uint64
	value []byte // nil: deleted
}

type blockAt struct {
	index uint64
	block chunk.Block
}

func (s *sim) model(group uint64) *model {
	m := s.models[group]
	if m == nil {
		m = &model{
			sim: s, group: group, copies: 3, entries: make(map[uint64]uint64), rows: make(map[string][]version),
			used: make(map[editKey]uint64), blocks: make(map[grid.Pos][]blockAt), confs: make(map[uint64][]replica.Member),
			retired: make(map[uint64]uint64), leaders: make(map[uint64][2]any),
		}
		if group == world.CatalogID {
			m.copies = 5
		}
		s.models[group] = m
	}
	return m
}

// inOrder returns the models by their groups.
func (s *sim) inOrder() []*model {
	var all []*model
	for _, m := range s.models {
		all = append(all, m)
	}
	slices.SortFunc(all, func(a, b *model) int {
		if a.group < b.group {
			return -1
		}
		return 1
	})
	return all
}

// founded records a region that an entry of the catalog founds or moves.
func (s *sim) founded(region nodemsg.Region) {
	for _, m := range s.models {
		if m.cell == region.Cell && m.group != region.ID && m.group != world.CatalogID {
			s.fail("cell %v is founded as region %d and as %d", region.Cell, m.group, region.ID)
		}
	}
	m := s.model(region.ID)
	m.cell = region.Cell
	if region.Epoch > m.region.Epoch {
		m.region = region
	}
}

// applied records that an owner applies an entry. It must be the same that all others had at this place, with none left
// out. It reports whether this owner is the first.
func (m *model) applied(o *owner, c replica.Committed, writes []kv.Write) (first bool) {
	before := uint64(0)
	if o.at > 0 {
		before = m.entries[m.order[o.at-1]]
	}
	parts := [][]byte{c.Entry, {byte(before), byte(before >> 8), byte(before >> 16), byte(before >> 24), byte(before >> 32), byte(before >> 40), byte(before >> 48), byte(before >> 56)}}
	for _, w := range writes {
		parts = append(parts, []byte(w.Table), w.Key, w.Value)
	}
	sum := hash64(parts...) ^ c.Term*0x9e3779b97f4a7c15
	m.sim.note(note{who: o.node.peer, what: "applies", a: m.group, b: c.Index})
	if o.at < len(m.order) {
		switch {
		case m.order[o.at] != c.Index:
			m.sim.fail("%s applies entry %d of group %d after %d, others %d", o.node.peer, c.Index, m.group, o.applied(), m.order[o.at])
		case m.entries[c.Index] != sum:
			m.sim.fail("%s has another entry %d of group %d, or another state before or after it, than others had", o.node.peer, c.Index, m.group)
		}
		o.at++
		return false
	}
	if c.Index <= o.applied() {
		m.sim.fail("%s applies entry %d of group %d after %d", o.node.peer, c.Index, m.group, o.applied())
		return false
	}
	m.sim.count("entries")
	m.order = append(m.order, c.Index)
	m.entries[c.Index] = sum
	for _, w := range writes {
		key := w.Table + string(w.Key)
		m.rows[key] = append(m.rows[key], version{c.Index, w.Value})
	}
	o.at++
	o.used = m.sim.now
	return true
}

// countEdit counts the edits: each is applied at most once.
func (m *model) countEdit(c replica.Committed, out world.Outcome) {
	batch, err := world.DecodeBatch(c.Entry)
	if err != nil || len(batch.Edits) != len(out.Results) {
		m.sim.fail("entry %d of group %d: %v, %d results", c.Index, m.group, err, len(out.Results))
		return
	}
	changes := out.Changes
	for i, e := range batch.Edits {
		key := editKey{e.Player, e.Seq}
		changed := len(changes) > 0 && changes[0].At == chunk.At(e.Pos) && changes[0].Chunk == e.Pos.Chunk() && changes[0].Block == e.Block
		if changed { // blocks have a number each
			changes = changes[1:]
		}
		_, before := m.used[key]
		switch {
		case before && changed:
			m.sim.fail("edit %d of %x is applied a second time, at entry %d", e.Seq, e.Player[:8], c.Index)
		case before:
			m.sim.count("edits that came again")
		case changed:
			m.used[key] = c.Index
			m.blocks[e.Pos] = append(m.blocks[e.Pos], blockAt{c.Index, e.Block})
			m.sim.count("edits")
		case out.Results[i].Refused == "":
			m.sim.fail("edit %d of %x is confirmed at entry %d, and was never applied", e.Seq, e.Player[:8], c.Index)
		}
	}
}

// blockAt returns the block at a position after an entry.
func (m *model) blockAt(pos grid.Pos, index uint64) chunk.Block {
	all := m.blocks[pos]
	i := sort.Search(len(all), func(i int) bool { return all[i].index > index })
	if i == 0 {
		return 0
	}
	return all[i-1].block
}

// checkRows compares what is stored with the result of the entries up to applied.
func (m *model) checkRows(n *machine, applied uint64, rows map[string][]byte) {
	if len(m.order) > 0 && applied > m.order[len(m.order)-1] {
		applied = m.order[len(m.order)-1] // entries that owners do not see
	}
	count := 0
	for key, versions := range m.rows {
		i := sort.Search(len(versions), func(i int) bool { return versions[i].index > applied })
		if i == 0 || versions[i-1].value == nil {
			continue
		}
		count++
		if !bytes.Equal(rows[key], versions[i-1].value) {
			m.sim.fail("%s stores %x at %x in group %d, entries up to %d make it %x", n.peer, rows[key], key, m.group, applied, versions[i-1].value)
		}
	}
	if count != len(rows) {
		m.sim.fail("%s stores %d rows of group %d, entries up to %d make %d", n.peer, len(rows), m.group, applied, count)
	}
}

func (m *model) configured(n *machine, d replica.Configured) {
	m.sim.note(note{who: n.peer, what: "configured", a: m.group, b: d.Index})
	if have, ok := m.confs[d.Index]; ok && !slices.Equal(have, d.Members) {
		m.sim.fail("%s has the members %v at entry %d of group %d, others %v", n.peer, d.Members, d.Index, m.group, have)
	}
	m.confs[d.Index] = d.Members
	if d.Index <= m.newest.Index {
		return
	}
	m.sim.count("configurations")
	for _, old := range m.newest.Members {
		if !slices.ContainsFunc(d.Members, func(k replica.Member) bool { return k.ID == old.ID && k.Peer == old.Peer }) {
			m.retired[old.ID] = d.Index
		}
	}
	for _, k := range d.Members {
		if m.retired[k.ID] != 0 {
			m.sim.fail("replica id %d of group %d is used again: %v", k.ID, m.group, d.Members)
		}
	}
	m.newest = d
}

// mayFail checks the reason for the end of a group on a node: only a disk that refused is allowed.
func (m *model) mayFail(n *machine, err error) {
	if !errors.Is(err, errDiskFull) {
		m.sim.fail("group %d failed on %s: %v", m.group, n.peer, err)
	}
}

// checkLeaders: a term has one leader, and a removed replica is never elected. Most members may not have applied its
// removal yet: then it may be elected if it has not either, but has it in its log, and no other change was applied
// since. Its votes and any later ones have a member in common.
func (n *machine) checkLeaders() {
	if n.host == nil {
		return
	}
	n.host.Leads(func(group, id, term uint64) {
		m := n.sim.model(group)
		is := [2]any{n.peer, id}
		was, known := m.leaders[term]
		switch {
		case known && was != is:
			n.sim.fail("group %d has two leaders in term %d: %v and %v", group, term, was, is)
		case known:
		case m.retired[id] != 0 && !n.removalPending(group, m.retired[id]):
			n.sim.fail("%s, which was removed as replica %d of group %d, is elected in term %d", n.peer, id, group, term)
		default:
			m.leaders[term] = is
			n.sim.count("elections")
			n.sim.note(note{who: n.peer, what: "elected", a: group, b: term})
		}
	})
}

// removalPending reports whether the replica here has the configuration at an index, the newest, in its log, and has
// not applied it.
func (n *machine) removalPending(group, index uint64) bool {
	o := n.owner(group)
	if o == nil || n.sim.model(group).newest.Index != index {
		return false
	}
	pending := o.group.Status().Last >= index && o.group.Configuration().Index < index
	if pending {
		n.sim.count("removed replicas elected before they applied it")
	}
	return pending
}

// operation is an action of a player on a block, for the checker.
type operation struct {
	client     int
	read       bool
	block      chunk.Block
	call, back time.Duration
}

const never = time.Duration(1 << 62)

// blockModel is one block: it has the value that was written last.
var blockModel = porcupine.Model{
	Init: func() any { return chunk.Block(0) },
	Step: func(state, input, output any) (bool, any) {
		op := input.(operation)
		if op.read {
			return output.(chunk.Block) == state.(chunk.Block), state
		}
		return true, op.block
	},
}

// linearizable asks porcupine, which does not depend on logs, whether the players' observations fit one order per
// block.
func (s *sim) linearizable() {
	var names []string
	for name := range s.history {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		var ops []porcupine.Operation
		for _, op := range s.history[name] {
			ops = append(ops, porcupine.Operation{
				ClientId: op.client, Input: op, Output: op.block, Call: int64(op.call), Return: int64(op.back),
			})
		}
		switch porcupine.CheckOperationsTimeout(blockModel, ops, 10*time.Second) {
		case porcupine.Ok:
		case porcupine.Unknown:
			s.count("histories too hard to check")
		case porcupine.Illegal:
			s.fail("the history of block %s is not linearizable", name)
		}
	}
}
