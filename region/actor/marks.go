package actor

import (
	"time"

	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/history"
	"github.com/voxelpopuli/voxeld/player"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
	"github.com/voxelpopuli/voxeld/world"
)

// Orders are those of the policy's orders, as they are known on this node, of which regions have marks in their
// history: *policy.Builders.
type Orders interface {
	// Numbered returns the number of the last one.
	Numbered() int64
	// ModActs returns the last command of an operator about each mod. Its result is never changed in place.
	ModActs() []nodemsg.Act
	// RefuseMod returns why a mod may not change a block for a player, as a code of wire; empty if it may.
	RefuseMod(player player.ID, at grid.Pos, now time.Time) string
	// Marks returns the marks after a number that a cell must have, by number, if the rollbacks up to another one are
	// over there.
	Marks(cell grid.Cell, after, over int64) []history.Mark
}

// markedFor is how long an entry with marks is awaited before it is proposed again.
const markedFor = time.Second

// marker has orders arrive at a region: it proposes their marks, before any edit that this node accepts since it knows
// of them (docs/adr/0098).
type marker struct {
	known    [3]int64  // the last order, and the state of the land, for which no mark was missing
	proposed time.Time // when marks were proposed that are not applied yet
}

// missing returns the marks that the region must have, and does not.
func (m *marker) missing(l *land) []history.Mark {
	orders, land := l.Orders(), l.contents.land
	now := [3]int64{orders.Numbered(), land.Marked(), land.RolledBack()}
	if now == m.known {
		return nil
	}
	missing := orders.Marks(l.info.Cell, land.Marked(), land.RolledBack())
	if len(missing) == 0 {
		m.known = now
	}
	return missing
}

// last returns the number of the last order that is known on this node. It reports false if one that concerns the
// history of the region has not arrived.
func (m *marker) last(l *land) (number int64, all bool) {
	if l.Orders == nil {
		return 0, true
	}
	if l.contents.land.Structure().Edited && len(m.missing(l)) > 0 {
		return 0, false
	}
	return l.Orders().Numbered(), true
}

// arrived reports whether all orders that are known on this node have arrived at the region. If not, their marks are
// proposed: edits wait.
func (m *marker) arrived(l *land) bool {
	if l.Orders == nil {
		return true
	}
	missing := m.missing(l)
	if len(missing) == 0 {
		m.proposed = time.Time{}
		return true
	}
	if time.Since(m.proposed) > markedFor {
		if err := l.group.Propose(world.EncodeMarks(missing[:min(len(missing), world.MaxMarks)])); err != nil {
			l.edits.rejected(err)
			return false
		}
		m.proposed = time.Now()
	}
	return false
}
