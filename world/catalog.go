package world

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/kv"
	"github.com/voxelpopuli/voxeld/wire"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
)

// CatalogTable is the table of the catalog: cell as text → encoded region.
const CatalogTable = "catalog"

// Catalog is the replicated state of the root region: which cells are founded, and on which members. A region exists if
// and only if a committed entry in its parent's log founds it. The catalog's log is the parent of every cell of label
// length grid.FoundingLabel. Longer labels belong to the children of split regions, whose parents' logs decide; the catalog lists
// them when their parents' leaders have reported the split.
type Catalog struct {
	regions map[grid.Cell]nodemsg.Region
	cells   map[uint64]grid.Cell // founded cells by region id
	gone    []uint64             // see Gone
}

// NewCatalog returns the catalog of an empty world.
func NewCatalog() *Catalog {
	return &Catalog{regions: make(map[grid.Cell]nodemsg.Region), cells: make(map[uint64]grid.Cell)}
}

// Load adds one stored row.
func (c *Catalog) Load(key, value []byte) error {
	region, err := nodemsg.DecodeRegion(value)
	if err != nil {
		return fmt.Errorf("load catalog row %q: %w", key, err)
	}
	if region.Cell.String() != string(key) {
		return fmt.Errorf("load catalog row %q: it describes cell %v", key, region.Cell)
	}
	c.put(region)
	return nil
}

func (c *Catalog) put(region nodemsg.Region) {
	c.regions[region.Cell] = region
	c.cells[region.ID] = region.Cell
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
// nothing. An entry that changes a region takes effect if the region is listed and the entry is newer. If the entry reports that the
// region was split, its children are listed, too. In all these cases Apply returns the region of the cell, as it is now.
func (c *Catalog) Apply(index uint64, entry []byte) (nodemsg.Region, []kv.Write, error) {
	region, err := c.apply(index, entry)
	if err != nil {
		return nodemsg.Region{}, nil, fmt.Errorf("apply catalog entry %d: %w", index, err)
	}
	c.gone = nil
	if there, founded := c.regions[region.Cell]; founded && !region.Newer(there) {
		return there, nil, nil
	}
	changed := []nodemsg.Region{region}
	if region.Split != 0 {
		for _, child := range c.childrenOf(region) {
			if there, listed := c.regions[child.Cell]; !listed || there.ID != child.ID {
				changed = append(changed, child)
			}
		}
	}
	writes := make([]kv.Write, 0, len(changed)+2)
	for _, gone := range c.mergedBy(region) {
		delete(c.regions, gone.Cell)
		delete(c.cells, gone.ID)
		c.gone = append(c.gone, gone.ID)
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
		c.put(r)
	}
	return region, writes, nil
}

// childrenOf describes the children of a split region. If the region's members have changed since the split, the children's are not
// known for certain: they are among those before and after the changes, and the children's leaders report which.
func (c *Catalog) childrenOf(region nodemsg.Region) [2]nodemsg.Region {
	children := ChildrenOf(region)
	if region.Epoch%nodemsg.RecoveredEpoch <= region.Split {
		return children
	}
	for i := range children {
		child := &children[i]
		child.Epoch-- // so that the report is newer
		child.Members = slices.Clone(child.Members)
		for _, m := range c.regions[region.Cell].Members {
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

// mergedBy lists the regions that no longer exist when the region becomes this: those in its cell if it was merged, or its former
// children if it was merged and split again.
func (c *Catalog) mergedBy(region nodemsg.Region) (gone []nodemsg.Region) {
	if before := c.regions[region.Cell]; before.Split == 0 || before.Split == region.Split {
		return nil
	}
	for cell, there := range c.regions {
		if cell != region.Cell && region.Cell.Covers(cell) {
			gone = append(gone, there)
		}
	}
	slices.SortFunc(gone, func(a, b nodemsg.Region) int { return cmp.Compare(a.ID, b.ID) })
	return gone
}

// apply returns the region as the entry would change it.
func (c *Catalog) apply(index uint64, entry []byte) (nodemsg.Region, error) {
	q, err := nodemsg.DecodeQuestion(entry)
	switch {
	case err != nil:
		return nodemsg.Region{}, err
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
		Leader: found.Members[0].Peer, Members: found.Members,
	}, nil
}

func (c *Catalog) moved(to nodemsg.Region) (nodemsg.Region, error) {
	there, founded := c.regions[to.Cell]
	if !founded || there.ID != to.ID {
		return nodemsg.Region{}, fmt.Errorf("move region %d: it does not cover cell %v", to.ID, to.Cell)
	}
	if len(to.Members) == 0 {
		return nodemsg.Region{}, fmt.Errorf("move region %d: no members", to.ID)
	}
	return to, nil
}

// Locate returns the region that covers the chunk, if it is founded: of a split one the child, and so on.
func (c *Catalog) Locate(pos grid.ChunkPos) (nodemsg.Region, bool) {
	region, ok := c.regions[grid.CellAt(pos, grid.FoundingLabel)]
	for ok && region.Split != 0 {
		region, ok = c.regions[grid.CellAt(pos, region.Cell.Label.Len()+1)]
	}
	region.Members = slices.Clone(region.Members)
	return region, ok
}

// At returns the region of exactly this cell, split or not.
func (c *Catalog) At(cell grid.Cell) (nodemsg.Region, bool) {
	region, ok := c.regions[cell]
	region.Members = slices.Clone(region.Members)
	return region, ok
}

// Find returns the region with the id, if it is founded.
func (c *Catalog) Find(id uint64) (nodemsg.Region, bool) {
	region, ok := c.regions[c.cells[id]]
	region.Members = slices.Clone(region.Members)
	return region, ok && region.ID == id
}

// Len returns the number of founded cells.
func (c *Catalog) Len() int { return len(c.regions) }

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
func (c *Catalog) Page(after uint64, n int) []nodemsg.Region {
	var ids []uint64
	for id := range c.cells {
		if id > after {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	var page []nodemsg.Region
	for _, id := range ids[:min(n, len(ids))] {
		if region, ok := c.Find(id); ok {
			page = append(page, region)
		}
	}
	return page
}

// Within lists up to n of the regions that have land in the area, with ids above after, by ascending id. It looks at every founding
// cell that the area touches.
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
	region, ok := c.regions[cell]
	switch {
	case !ok || !cell.Area().Overlaps(area):
		return all
	case region.Split == 0:
		return append(all, region)
	}
	lower, upper := cell.Children()
	return c.appendWithin(c.appendWithin(all, lower, area), upper, area)
}
