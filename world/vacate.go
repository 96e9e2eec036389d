package world

import (
	"errors"

	"github.com/voxelpopuli/voxeld/internal/kv"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
)

// This file gives up land on which nothing was ever built (docs/adr/0097). The region ends for good by an entry in its
// own log, which takes effect only if the land is empty at that place: an edit before it keeps the region, and one
// after it has no result. Then an entry in the catalog's log removes the region from the list, and its members delete
// it. Nothing takes the first step back, so a repeated or late message does no harm.

// EncodeVacate returns the log entry that gives up a region. It takes effect if the region is Empty.
func EncodeVacate() []byte { return []byte{tagVacate} }

func (l *Land) applyVacate(index uint64, entry []byte) (Step, error) {
	if len(entry) != 1 {
		return NoStep, errBatch
	}
	if !l.Empty() {
		return NoStep, nil
	}
	l.structure.Vacated, l.dirtyRows.structure = index, true
	return Vacated, nil
}

// Empty reports whether nothing was ever built in a region, and it was never split: it has no rows. A region that was
// given up is not Empty.
func (l *Land) Empty() bool {
	return len(l.pinned) == 0 && len(l.recents) == 0 && len(l.mods) == 0 && l.ordersRow() == nil && l.structure == Structure{}
}

var errRowFound = errors.New("a row was found")

// EmptyIn reports whether a region is Empty as it is stored. Keys visits the keys of a table with a prefix, until visit
// fails.
func EmptyIn(keys func(table string, prefix []byte, visit func(key []byte) error) error, id uint64) (bool, error) {
	err := keys(LandTable, landKeys{id}.Prefix(), func([]byte) error { return errRowFound })
	if errors.Is(err, errRowFound) {
		return false, nil
	}
	return err == nil, err
}

// EncodeVacated returns the log entry of the catalog that removes a region that was given up.
func EncodeVacated(vacated nodemsg.Vacated) ([]byte, error) {
	return nodemsg.EncodeQuestion(nodemsg.Question{Vacated: &vacated})
}

// vacate removes a region that was given up. It changes nothing if the cell has another region by now, or none.
func (c *Catalog) vacate(index uint64, vacated nodemsg.Vacated) (nodemsg.Region, []kv.Write) {
	there, founded := c.get(vacated.Cell)
	if !founded || there.ID != vacated.Region || there.Split != 0 {
		return nodemsg.Region{Cell: vacated.Cell}, nil
	}
	c.remove(there, index)
	return there, []kv.Write{{Table: CatalogTable, Key: []byte(there.Cell.String())}}
}
