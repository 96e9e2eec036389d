package world

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"math"
	"slices"

	"github.com/google/btree"

	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/internal/kv"
	"github.com/voxelpopuli/voxeld/wire"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
)

// CatalogTable is the table of the catalog: cell as text → encoded region.
const CatalogTable = "catalog"

// Catalog is the replicated state of the root region: which cells are founded, and on which members. A region exists if
// and only if a committed entry in its parent's log founds it. The catalog's log is the parent of every cell of label
// length grid.FoundingLabel. Longer labels belong to the children of split regions, whose parents' logs decide; the
// catalog lists them when their parents' leaders have reported the split.
//
// It reads rows from storage when it needs them. In memory are the ids of all regions, and the rows that may not be
// stored yet.
type Catalog struct {
	stored  func(key string) []byte // the value of a stored row, nil if there is none; itself nil if no rows are stored
	changed map[grid.Cell]row
	order   []change // of changed, oldest first; empty if no rows are stored
	ids     *btree.BTreeG[listed]
	gone    []uint64 // see Gone
}

// row is a row that may not be stored yet.
type row struct {
	region nodemsg.Region
	gone   bool
	index  uint64 // of the entry that changed it last
}

type change struct {
	cell  grid.Cell
	index uint64
}

// listed is a region in the order of the ids.
type listed struct {
	id   uint64
	cell grid.Cell
}

// NewCatalog returns the catalog of an empty world, which holds all rows in memory.
func NewCatalog() *Catalog { return NewStoredCatalog(nil) }

// NewStoredCatalog returns the catalog whose rows are stored: stored returns the value at a key, nil if there is none.
// List must be called with all rows; until then Find, Page and Len miss some.
func NewStoredCatalog(stored func(key string) []byte) *Catalog {
	return &Catalog{
		stored: stored, changed: make(map[grid.Cell]row),
		ids: btree.NewG(32, func(a, b listed) bool { return a.id < b.id }),
	}
}

// Load adds one row to a catalog that holds all rows in memory.
func (c *Catalog) Load(key, value []byte) error {
	region, err := decodeRow(key, value)
	if err == nil {
		c.put(region, 0)
	}
	return err
}

// List adds the id of a stored row. It returns the region, and reports whether it was not listed before.
func (c *Catalog) List(key, value []byte) (region nodemsg.Region, added bool, err error) {
	if region, err = decodeRow(key, value); err != nil {
		return region, false, err
	}
	now, ok := c.get(region.Cell)
	if !ok || now.ID != region.ID || c.ids.Has(listed{id: region.ID}) {
		return region, false, nil // an entry has changed it since
	}
	c.ids.ReplaceOrInsert(listed{region.ID, region.Cell})
	return now, true, nil
}

func decodeRow(key, value []byte) (nodemsg.Region, error) {
	region, err := nodemsg.DecodeRegion(value)
	if err != nil {
		return nodemsg.Region{}, fmt.Errorf("load catalog row %q: %w", key, err)
	}
	if region.Cell.String() != string(key) {
		return nodemsg.Region{}, fmt.Errorf("load catalog row %q: it describes cell %v", key, region.Cell)
	}
	return region, nil
}

// get returns the region of a cell.
func (c *Catalog) get(cell grid.Cell) (nodemsg.Region, bool) {
	if r, ok := c.changed[cell]; ok || c.stored == nil {
		return r.region, ok && !r.gone
	}
	key := cell.String()
	value := c.stored(key)
	if value == nil {
		return nodemsg.Region{}, false
	}
	region, err := decodeRow([]byte(key), value)
	if err != nil {
		panic(err) // the store has verified its checksum
	}
	return region, true
}

// put changes a row by the entry at the index.
func (c *Catalog) put(region nodemsg.Region, index uint64) {
	c.change(region.Cell, row{region: region, index: index})
	c.ids.ReplaceOrInsert(listed{region.ID, region.Cell})
}

// remove removes a row by the entry at the index.
func (c *Catalog) remove(region nodemsg.Region, index uint64) {
	c.change(region.Cell, row{gone: true, index: index})
	c.ids.Delete(listed{id: region.ID})
	c.gone = append(c.gone, region.ID)
}

func (c *Catalog) change(cell grid.Cell, r row) {
	c.changed[cell] = r
	if c.stored != nil {
		c.order = append(c.order, change{cell, r.index})
	}
}

// Unstored returns how many changes are in memory that may not be stored yet.
func (c *Catalog) Unstored() int { return len(c.order) }

// Stored drops from memory what entries up to the index have changed, which is stored.
func (c *Catalog) Stored(index uint64) {
	done := 0
	for ; done < len(c.order) && c.order[done].index <= index; done++ {
		if cell := c.order[done].cell; c.changed[cell].index <= index {
			delete(c.changed, cell)
		}
	}
	c.order = slices.Delete(c.order, 0, done)
}

// EncodeFound returns the log entry that founds a cell.
func EncodeFound(found nodemsg.Found) ([]byte, error) {
	if err := checkFounding(found); err != nil {
		return nil, err
	}
	return nodemsg.EncodeQuestion(nodemsg.Question{Found: &found})
}

func checkFounding(found nodemsg.Found) error {
	if found.Cell.Label.Len() != grid.FoundingLabel {
		return fmt.Errorf("found cell %v: the catalog founds cells of label length %d", found.Cell, grid.FoundingLabel)
	}
	if len(found.Members) == 0 {
		return fmt.Errorf("found cell %v: no members", found.Cell)
	}
	return nil
}

// EncodeMoved returns the log entry that changes a region's members.
func EncodeMoved(moved nodemsg.Region) ([]byte, error) {
	if len(moved.Members) == 0 {
		return nil, fmt.Errorf("move region %d: no members", moved.ID)
	}
	return nodemsg.EncodeQuestion(nodemsg.Question{Moved: &moved})
}

// Apply applies a committed entry. The first entry that founds a cell takes effect; later ones for the same cell change
// nothing. An entry that changes a region takes effect if the region is listed and the entry is newer. If the entry
// reports that the region was split, its children are listed, too. In all these cases Apply returns the region of the
// cell, as it is now. Of an entry that removes a region, Apply returns what it was; its id is 0 if the entry has no
// effect.
func (c *Catalog) Apply(index uint64, entry []byte) (nodemsg.Region, []kv.Write, error) {
	c.gone = nil
	q, err := nodemsg.DecodeQuestion(entry)
	if err == nil && q.Vacated != nil {
		region, writes := c.vacate(index, *q.Vacated)
		return region, writes, nil
	}
	var region nodemsg.Region
	if err == nil {
		region, err = c.apply(index, q)
	}
	if err != nil {
		return nodemsg.Region{}, nil, fmt.Errorf("apply catalog entry %d: %w", index, err)
	}
	if there, founded := c.get(region.Cell); founded && (q.Found != nil || !region.Newer(there)) {
		return there, nil, nil
	}
	changed := []nodemsg.Region{region}
	if region.Split != 0 {
		for _, child := range c.childrenOf(region) {
			if there, ok := c.get(child.Cell); !ok || there.ID != child.ID {
				changed = append(changed, child)
			}
		}
	}
	writes := make([]kv.Write, 0, len(changed)+2)
	for _, gone := range c.mergedBy(region) {
		c.remove(gone, index)
		writes = append(writes, kv.Write{Table: CatalogTable, Key: []byte(gone.Cell.String())})
	}
	for _, r := range changed {
		encoded, err := nodemsg.EncodeRegion(r)
		if err != nil {
			return nodemsg.Region{}, nil, fmt.Errorf("apply catalog entry %d: %w", index, err)
		}
		writes = append(writes, kv.Write{Table: CatalogTable, Key: []byte(r.Cell.String()), Value: encoded})
	}
	for _, r := range changed {
		c.put(r, index)
	}
	return region, writes, nil
}

// childrenOf describes the children of a split region. If the region's members have changed since the split, the
// children's are not known for certain: they are among those before and after the changes, and the children's leaders
// report which.
func (c *Catalog) childrenOf(region nodemsg.Region) [2]nodemsg.Region {
	children := ChildrenOf(region)
	if region.Epoch%nodemsg.RecoveredEpoch <= region.Split {
		return children
	}
	before, _ := c.get(region.Cell)
	for i := range children {
		child := &children[i]
		child.Epoch-- // so that the report is newer
		child.Members = slices.Clone(child.Members)
		for _, m := range before.Members {
			known := slices.ContainsFunc(child.Members, func(there nodemsg.Member) bool { return there.Peer == m.Peer })
			if !known && len(child.Members) < wire.MaxMembers {
				child.Members = append(child.Members, m)
			}
		}
	}
	return children
}

// Gone lists the ids of the regions that the entry applied last has removed.
func (c *Catalog) Gone() []uint64 { return c.gone }

// mergedBy lists the regions that no longer exist when the region becomes this: those in its cell if it was merged, or
// its former children if it was merged and split again.
func (c *Catalog) mergedBy(region nodemsg.Region) (gone []nodemsg.Region) {
	if before, _ := c.get(region.Cell); before.Split == 0 || before.Split == region.Split {
		return nil
	}
	gone = c.below(region.Cell, nil)
	slices.SortFunc(gone, func(a, b nodemsg.Region) int { return cmp.Compare(a.ID, b.ID) })
	return gone
}

// below appends the regions in the cell's halves.
func (c *Catalog) below(cell grid.Cell, all []nodemsg.Region) []nodemsg.Region {
	if cell.Label.Len() == grid.MaxLabel {
		return all
	}
	lower, upper := cell.Children()
	for _, half := range []grid.Cell{lower, upper} {
		if region, ok := c.get(half); ok {
			all = c.below(half, append(all, region))
		}
	}
	return all
}

// apply returns the region as the entry would change it.
func (c *Catalog) apply(index uint64, q nodemsg.Question) (nodemsg.Region, error) {
	switch {
	case q.Found != nil:
		return founded(index, *q.Found)
	case q.Moved != nil:
		return c.moved(*q.Moved)
	default:
		return nodemsg.Region{}, fmt.Errorf("the entry has neither a founding nor a move")
	}
}

// founded returns the region that the entry would found.
func founded(index uint64, found nodemsg.Found) (nodemsg.Region, error) {
	if err := checkFounding(found); err != nil {
		return nodemsg.Region{}, err
	}
	return nodemsg.Region{
		ID: childID(CatalogID, index), Cell: found.Cell, Epoch: 1, Term: 1,
		Leader: found.Members[0].Peer, Members: found.Members, Founded: index,
	}, nil
}

func (c *Catalog) moved(to nodemsg.Region) (nodemsg.Region, error) {
	there, founded := c.get(to.Cell)
	if !founded || there.ID != to.ID {
		return nodemsg.Region{}, fmt.Errorf("move region %d: it does not cover cell %v", to.ID, to.Cell)
	}
	if len(to.Members) == 0 {
		return nodemsg.Region{}, fmt.Errorf("move region %d: no members", to.ID)
	}
	to.Founded = there.Founded
	return to, nil
}

// Locate returns the region that covers the chunk, if it is founded: of a split one the child, and so on.
func (c *Catalog) Locate(pos grid.ChunkPos) (nodemsg.Region, bool) {
	region, ok := c.get(grid.CellAt(pos, grid.FoundingLabel))
	for ok && region.Split != 0 {
		region, ok = c.get(grid.CellAt(pos, region.Cell.Label.Len()+1))
	}
	region.Members = slices.Clone(region.Members)
	return region, ok
}

// At returns the region of exactly this cell, split or not.
func (c *Catalog) At(cell grid.Cell) (nodemsg.Region, bool) {
	region, ok := c.get(cell)
	region.Members = slices.Clone(region.Members)
	return region, ok
}

// Find returns the region with the id, if it is founded.
func (c *Catalog) Find(id uint64) (nodemsg.Region, bool) {
	at, ok := c.ids.Get(listed{id: id})
	if !ok {
		return nodemsg.Region{}, false
	}
	region, ok := c.At(at.cell)
	return region, ok && region.ID == id
}

// Len returns the number of founded cells.
func (c *Catalog) Len() int { return c.ids.Len() }

// childID returns the id of the region that the entry at the index of its parent's log founds. Ids are thus unique for
// ever without a counter, and the same on every replica.
func childID(parent, index uint64) uint64 {
	var b [16]byte
	binary.BigEndian.PutUint64(b[:8], parent)
	binary.BigEndian.PutUint64(b[8:], index)
	sum := sha256.Sum256(b[:])
	return max(binary.BigEndian.Uint64(sum[:8]), CatalogID+1)
}

// Page lists up to n founded regions with ids above after, by ascending id.
func (c *Catalog) Page(after uint64, n int) (page []nodemsg.Region) {
	if after == math.MaxUint64 {
		return nil
	}
	c.ids.AscendGreaterOrEqual(listed{id: after + 1}, func(next listed) bool {
		if len(page) < n {
			if region, ok := c.Find(next.id); ok {
				page = append(page, region)
			}
		}
		return len(page) < n
	})
	return page
}

// Within lists up to n of the regions that have land in the area, with ids above after, by ascending id. It looks at
// every founding cell that the area touches.
func (c *Catalog) Within(area grid.Area, after uint64, n int) []nodemsg.Region {
	var all []nodemsg.Region
	for cell := range area.Cells(grid.FoundingLabel) {
		all = c.appendWithin(all, cell, area)
	}
	all = slices.DeleteFunc(all, func(r nodemsg.Region) bool { return r.ID <= after })
	slices.SortFunc(all, func(a, b nodemsg.Region) int { return cmp.Compare(a.ID, b.ID) })
	all = all[:min(n, len(all))]
	for i := range all {
		all[i].Members = slices.Clone(all[i].Members)
	}
	return all
}

func (c *Catalog) appendWithin(all []nodemsg.Region, cell grid.Cell, area grid.Area) []nodemsg.Region {
	region, ok := c.get(cell)
	switch {
	case !ok || !cell.Area().Overlaps(area):
		return all
	case region.Split == 0:
		return append(all, region)
	}
	lower, upper := cell.Children()
	return c.appendWithin(c.appendWithin(all, lower, area), upper, area)
}
