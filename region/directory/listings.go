package directory

import (
	"time"

	lru "github.com/hashicorp/golang-lru/v2"

	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/region/actor"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
	"github.com/voxelpopuli/voxeld/world"
)

const (
	// listedFor is how long a region's members count as listed. For that long a node that was removed from the region
	// can still pass for its leader.
	listedFor = 10 * time.Minute
	// olderFor is the same if a route is newer, which may be a lie.
	olderFor = 10 * time.Second
)

// listings are regions as the catalog listed them last, by cell. Any goroutine may use them.
type listings struct{ *lru.Cache[grid.Cell, listing] }

// listing is a region as the catalog had it, or as it followed from that.
type listing struct {
	region nodemsg.Region
	since  time.Time
}

// put remembers what the catalog has answered, and returns it.
func (l listings) put(info nodemsg.Region) nodemsg.Region {
	l.Add(info.Cell, listing{info, time.Now()})
	return info
}

// putChildren lists the children of a region that was split by the entry at the log index, as a member has said: the
// catalog may not have heard of it yet. They begin with what is listed of the region, and for as long.
func (l listings) putChildren(info nodemsg.Region, index uint64) {
	parent, ok := l.Peek(info.Cell)
	if !ok || parent.region.ID != info.ID {
		return
	}
	split := parent.region
	split.Split = index
	for _, child := range world.ChildrenOf(split) {
		if before, ok := l.Peek(child.Cell); !ok || before.region.ID != child.ID || before.since.Before(parent.since) {
			l.Add(child.Cell, listing{child, parent.since})
		}
	}
}

// expire has the catalog asked again about the cell.
func (l listings) expire(cell grid.Cell) {
	if before, ok := l.Peek(cell); ok {
		l.Add(cell, listing{region: before.region})
	}
}

// last returns the region of a route as it was listed last, and reports whether that was lately. Ok is false if it was
// not listed, or without the leader.
func (l listings) last(known nodemsg.Region) (listed nodemsg.Region, lately, ok bool) {
	before, ok := l.Get(known.Cell)
	ok = ok && before.region.ID == known.ID && actor.HasMember(before.region, known.Leader)
	most := listedFor
	if known.Newer(before.region) {
		most = olderFor
	}
	return before.region, ok && time.Since(before.since) < most, ok
}
