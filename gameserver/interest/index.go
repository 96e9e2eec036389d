package interest

import (
	"slices"

	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/motion"
	"github.com/voxelpopuli/voxeld/player"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
	"github.com/voxelpopuli/voxeld/wire/sessionmsg"
)

// Options are the settings of an Index.
type Options struct {
	Budget        float64 // maximum bytes a tick of a viewer's motion, as far as LOD profiles can keep it
	RememberTicks uint64  // how long FirstAwaited knows a player who has gone out of sight
}

// Index is the index of all avatars in the mirrored chunks: each has a number, and is in a cell of a chunk. Apply and
// ClearChunk change it, and BeginTick encodes the motion from it. One goroutine at a time may use it, and the Occupants
// that it was passed.
type Index struct {
	opts      Options
	tick      uint64 // of the newest frame, by the clock
	frames    uint64 // frames
	avatars   map[player.ID]*avatar
	departed  map[player.ID]departed // players who went out of sight recently
	lost      []player.ID            // they left the chunk where they were, and are still in view in another one
	unused    []uint32               // indices below next that are free
	next      uint32
	buckets   map[grid.ChunkPos]*bucket // those with avatars
	awake     []*bucket                 // those that need checking, and some that have no avatars any more
	observers map[observerPoint]*observer
	costs     costs
	found     []*bucket // scratch: buckets in view, in order
	nearest   []uint64  // scratch of chooseProfile
}

// departed is a player who has gone out of sight: the number of their last chat event when they came, and the tick when
// they went.
type departed struct{ firstAwaited, tick uint64 }

// New returns an empty index.
func New(o Options) *Index {
	return &Index{
		opts:      o,
		avatars:   make(map[player.ID]*avatar),
		departed:  make(map[player.ID]departed),
		buckets:   make(map[grid.ChunkPos]*bucket),
		observers: make(map[observerPoint]*observer),
		costs:     newCosts(o.Budget),
	}
}

// Tick returns the tick of the newest frame.
func (ix *Index) Tick() uint64 { return ix.tick }

// Apply applies the delta of a chunk, with what it has changed among the chunk's occupants. It returns the delta as
// CBOR sessions get it, without motion and chat; nil if nothing is left.
func (ix *Index) Apply(n *nodemsg.ChunkDelta, in Occupants, change Change) *sessionmsg.TickDelta {
	for _, o := range change.Moved {
		if a := o.avatar; a != nil && a.bucket != nil && a.bucket.at == n.Chunk {
			ix.move(a, o.Pose)
		}
	}
	if len(n.Enter)+len(n.Leave)+len(n.Blocks) == 0 {
		return nil
	}
	td := &sessionmsg.TickDelta{Chunk: n.Chunk, Blocks: n.Blocks}
	for i := range change.Entered {
		a := ix.avatar(change.Entered[i].Player)
		if a.chunks == 0 {
			a.firstAwaited = ix.meet(&change.Entered[i])
		}
		a.chunks++
		if o := in.Of(change.Entered[i].Player); o != nil { // otherwise they entered and left in one frame
			o.avatar = a
		}
	}
	for i := range n.Enter {
		td.Enter = append(td.Enter, ix.enter(n.Chunk, &n.Enter[i]))
	}
	for i := range change.Left {
		if a := ix.avatars[change.Left[i].Player]; a != nil {
			td.Leave = append(td.Leave, a.index)
			ix.leave(n.Chunk, change.Left[i].Player, a)
		}
	}
	return td
}

// Present returns those of a chunk's bodies that are still there, as far as any region has sent. Others have entered
// another chunk, whose region sent that first: a client that was sent them here would remove them when they leave here.
func (ix *Index) Present(at grid.ChunkPos, bodies []nodemsg.Body) []nodemsg.Body {
	return slices.DeleteFunc(bodies, func(b nodemsg.Body) bool {
		a := ix.avatars[b.Player]
		return a != nil && a.movedOn(at)
	})
}

// Entering returns a delta in which all who are present in a chunk enter.
func (ix *Index) Entering(at grid.ChunkPos, in Occupants) *sessionmsg.TickDelta {
	td := &sessionmsg.TickDelta{Chunk: at, Enter: make([]sessionmsg.TickAvatar, 0, len(in))}
	for i := range in {
		if o := &in[i]; o.avatar != nil && !o.avatar.movedOn(at) {
			td.Enter = append(td.Enter, tickAvatar(o.avatar.index, &o.Body, sessionmsg.PlaceOf(at, o.Pose)))
		}
	}
	return td
}

// ClearChunk removes all occupants of a chunk that is no longer in the mirror.
func (ix *Index) ClearChunk(at grid.ChunkPos, in Occupants) {
	for i := range in {
		if o := &in[i]; o.avatar != nil {
			ix.leave(at, o.Player, o.avatar)
		}
	}
}

// Find returns where a player is in view, and their name.
func (ix *Index) Find(id player.ID) (name string, pose motion.Pose, at grid.ChunkPos, inView bool) {
	a := ix.avatars[id]
	if a == nil || a.bucket == nil {
		return "", pose, at, false
	}
	return a.name, a.place.Pose(a.bucket.at), a.bucket.at, true
}

// FirstAwaited returns the number of a player's last chat event when they came into view: earlier ones are not waited
// for. It reports whether they are in view, or were until recently.
func (ix *Index) FirstAwaited(id player.ID) (number uint64, inView bool) {
	if a := ix.avatars[id]; a != nil {
		return a.firstAwaited, true
	}
	p, recently := ix.departed[id]
	return p.firstAwaited, recently
}

// meet returns the number up to which a player's events are not waited for, when they come into view.
func (ix *Index) meet(b *nodemsg.Body) uint64 {
	p, back := ix.departed[b.Player]
	if delete(ix.departed, b.Player); back {
		return p.firstAwaited
	}
	return b.Said
}

// dropDeparted removes players who have been out of view for long.
func (ix *Index) dropDeparted() {
	for id, p := range ix.departed {
		if ix.tick-p.tick > ix.opts.RememberTicks {
			delete(ix.departed, id)
		}
	}
}

// avatar returns a player's avatar, and creates it if necessary.
func (ix *Index) avatar(id player.ID) *avatar {
	a := ix.avatars[id]
	if a == nil {
		a = &avatar{}
		if n := len(ix.unused); n > 0 {
			a.index = ix.unused[n-1]
			ix.unused = ix.unused[:n-1]
		} else {
			a.index = ix.next
			ix.next++
		}
		ix.avatars[id] = a
	}
	return a
}

func tickAvatar(index uint32, b *nodemsg.Body, p sessionmsg.Place) sessionmsg.TickAvatar {
	return sessionmsg.TickAvatar{Index: index, Player: b.Player, Name: b.Name, Guest: b.Guest, Skin: b.Skin, Stance: b.Stance, Place: p}
}

func (ix *Index) enter(at grid.ChunkPos, b *nodemsg.Body) sessionmsg.TickAvatar {
	a := ix.avatar(b.Player)
	if a.bucket == nil || a.bucket.at != at {
		ix.changeBucket(a, nil)
		bkt := ix.buckets[at]
		if bkt == nil {
			bkt = &bucket{at: at}
			ix.buckets[at] = bkt
			ix.reassign(at)
		}
		a.place = sessionmsg.PlaceOf(at, b.Pose)
		ix.changeBucket(a, bkt)
	}
	a.name = b.Name
	ix.move(a, b.Pose)
	a.appear(ix.tick)
	return tickAvatar(a.index, b, a.place)
}

func (ix *Index) leave(at grid.ChunkPos, id player.ID, a *avatar) {
	if a.bucket != nil && a.bucket.at == at {
		ix.changeBucket(a, nil)
	}
	switch a.chunks--; {
	case a.chunks <= 0:
		ix.changeBucket(a, nil)
		delete(ix.avatars, id)
		ix.departed[id] = departed{a.firstAwaited, ix.tick}
		ix.unused = append(ix.unused, a.index)
	case a.bucket == nil:
		ix.lost = append(ix.lost, id)
	}
}

// reassign makes observers with the chunk in view assign tiers anew.
func (ix *Index) reassign(at grid.ChunkPos) {
	for point, obs := range ix.observers {
		if point.chunk.Distance(at) <= int64(point.view)+1 {
			obs.stale = true
		}
	}
}

// TakeLost returns, once each, the players that subscriptions must send again: the chunk where they were has lost them,
// and another region, which has sent no update since, has them too.
func (ix *Index) TakeLost() []player.ID {
	lost := ix.lost
	ix.lost = nil
	return slices.DeleteFunc(lost, func(id player.ID) bool {
		a := ix.avatars[id]
		return a == nil || a.bucket != nil
	})
}

// move moves an avatar to a pose in its chunk.
func (ix *Index) move(a *avatar, pose motion.Pose) {
	bkt := a.bucket
	a.place, a.fine, a.lastUpdate = sessionmsg.PlaceOf(bkt.at, pose), finePosOf(bkt.at, pose), ix.frames+1
	if bkt.moved = true; !bkt.awake {
		bkt.awake = true
		ix.awake = append(ix.awake, bkt)
	}
	if c := a.place.Cell(); c != a.cell {
		bkt.crossed = append(bkt.crossed, crossing{a, a.cell, a.predictions, a.valid})
		bkt.remove(a)
		a.cell = c
		bkt.add(a)
	}
}

// changeBucket moves an avatar from its bucket to another one; nil is none.
func (ix *Index) changeBucket(a *avatar, to *bucket) {
	if from := a.bucket; from != nil {
		from.remove(a)
		if from.avatars--; from.costObservers > 0 {
			ix.costs.avatars--
		}
		if from.avatars == 0 {
			delete(ix.buckets, from.at)
			ix.reassign(from.at)
		}
	}
	a.bucket = to
	if to != nil {
		if to.avatars++; to.costObservers > 0 {
			ix.costs.avatars++
		}
		a.cell = a.place.Cell()
		to.add(a)
	}
}
