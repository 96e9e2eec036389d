package actor

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"math"
	"math/rand/v2"

	"github.com/voxelpopuli/voxeld/chunk"
	"github.com/voxelpopuli/voxeld/creature"
	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/motion"
	"github.com/voxelpopuli/voxeld/player"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
	"github.com/voxelpopuli/voxeld/world"
	"github.com/voxelpopuli/voxeld/world/crowd"
)

// This file moves the creatures of a region on its leader (docs/adr/0122). The land has them as they were logged; here
// are those steps since that a new leader may lack.

const (
	// poseTicks is how often the poses of creatures that have moved are logged, in one entry: 4 s, so that after the
	// leader's death they are at most 5 s old.
	poseTicks = 80
	// poseMoved is how far, in blocks, a creature moves before its pose is logged again.
	poseMoved = .25
	// carryTicks is how often departures are offered to the regions beyond the border, until these have accepted them.
	carryTicks = 10
	// groundTicks is how long the blocks of a chunk are kept that no creature needs.
	groundTicks = 400
	// foresight is how many blocks ahead of a creature the blocks are requested.
	foresight = 6
	// closedTicks is how long creatures turn at a border behind which the land is asleep, before one asks again.
	closedTicks = 200
	// creaturesLink is the link of creatures in the crowd: none that a gateway has.
	creaturesLink = math.MaxUint64
)

// CreatureOptions are what creatures need of others. The functions are like those of LandOptions. If Ground is nil,
// creatures stand.
type CreatureOptions struct {
	// Ground requests a chunk's terrain, or the one with the hash if it is pinned. The receiver owns the chunk.
	Ground func(pos grid.ChunkPos, pinned *[32]byte, found func(*chunk.Chunk, error))
	// Ahead asks the region beyond the border whether a creature could stand where it is, and at which pose. An error
	// means that nobody knows: the land is asleep, or not founded.
	Ahead func(c creature.Creature, answer func(at motion.Pose, can bool, err error))
	// Carry offers departures to the regions where their poses are; those that have accepted them are answered.
	Carry func(all []nodemsg.Departure, accepted func([]nodemsg.Passage))
}

// creatures are the creatures of a region; none on members that do not lead it.
type creatures struct {
	land    *land
	walkers map[player.ID]*walker
	grounds map[grid.ChunkPos]*ground
	closed  map[grid.ChunkPos]uint64 // beyond the border, and until which tick nobody asks about them
	moved   bool                     // since their poses were logged

	changes  world.CreatureChanges // that wait to be proposed
	answers  []creatureAnswer      // to those
	entry    []byte                // that was proposed and is not applied yet; nil: none
	awaiting []creatureAnswer      // its answers
	carrying bool
}

// creatureAnswer is called when its changes were applied, or with an error: then they may still be, later.
type creatureAnswer func(world.Outcome, error)

// walker is a creature, and what it waits for.
type walker struct {
	*creature.Walker
	asks   bool // whether it may cross the border
	leaves bool // its departure is proposed
}

// ground is a chunk's blocks.
type ground struct {
	blocks *chunk.Chunk // nil: requested
	wanted []func()     // what waits for them
	used   uint64       // tick
}

func newCreatures(l *land) creatures {
	return creatures{land: l, walkers: make(map[player.ID]*walker), grounds: make(map[grid.ChunkPos]*ground), closed: make(map[grid.ChunkPos]uint64)}
}

// sync makes the creatures those of the land, on its leader, and shows them.
func (c *creatures) sync() {
	l := c.land
	if !l.leading {
		c.reset()
		return
	}
	there := len(c.walkers)
	l.contents.land.Creatures(func(one creature.Creature) {
		if c.walkers[one.ID] != nil {
			return
		}
		c.walkers[one.ID] = &walker{Walker: creature.NewWalker(one)}
		l.contents.crowd.Enter(crowd.Owner{Link: creaturesLink}, nodemsg.Body{
			Player: one.ID, Name: one.Kind.String(), Pose: one.Pose, Skin: one.Kind.Skin(),
		})
	})
	for id := range c.walkers {
		if _, here := l.contents.land.Creature(id); !here {
			l.contents.crowd.Leave(creaturesLink, id)
			delete(c.walkers, id)
		}
	}
	l.Metrics.creatures.Add(float64(len(c.walkers) - there))
}

// reset forgets the creatures, and what was proposed: this node does not lead the region, or has another land.
func (c *creatures) reset() {
	c.land.contents.crowd.LeaveAll(creaturesLink)
	c.end()
}

// end is reset for a region that ends, and may have failed: it touches nothing else.
func (c *creatures) end() {
	c.fail(errUncertain)
	c.land.Metrics.creatures.Sub(float64(len(c.walkers)))
	clear(c.walkers)
	clear(c.grounds)
	clear(c.closed)
	c.moved, c.carrying = false, false
}

// fail answers what was proposed, or waits to be.
func (c *creatures) fail(err error) {
	for _, answer := range append(c.awaiting, c.answers...) {
		answer(world.Outcome{}, err)
	}
	c.changes, c.answers, c.entry, c.awaiting = world.CreatureChanges{}, nil, nil, nil
	c.moved = c.moved || len(c.walkers) > 0
	for _, w := range c.walkers {
		w.leaves = false
	}
}

// idle reports whether nothing is left to be logged, nor to be carried over a border.
func (c *creatures) idle() bool {
	return !c.moved && c.changes.Len() == 0 && c.entry == nil && len(c.land.contents.land.Departures(1)) == 0
}

// tick moves the creatures that are watched, and logs where they are.
func (c *creatures) tick() {
	l := c.land
	if !l.leading || l.paused || l.edits.frozen {
		return
	}
	tick := l.hub.tick
	if l.Creatures.Ground != nil {
		for _, w := range c.walkers {
			c.step(w)
		}
	}
	if tick%poseTicks == 0 && c.entry == nil {
		c.logPoses()
	}
	if tick%groundTicks == 0 {
		for pos, g := range c.grounds {
			if g.used+groundTicks < tick && g.blocks != nil {
				delete(c.grounds, pos)
			}
		}
	}
	if tick%carryTicks == 0 {
		c.carry()
	}
	c.propose()
}

// step moves a creature. One that nobody watches sleeps.
func (c *creatures) step(w *walker) {
	at := w.Pose.Chunk()
	if w.asks || w.leaves || c.land.hub.watched[at] == nil || !c.known(at) {
		return
	}
	before := w.Pose
	ahead, unknown := w.Step(c.block, rand.Uint64)
	switch {
	case !unknown:
	case c.land.info.Cell.Contains(ahead.Chunk()):
		w.Wait()
	default:
		w.Wait()
		c.ask(w, ahead)
	}
	c.moved = c.moved || w.Pose != before
	if w.Show() {
		c.land.contents.crowd.Move(creaturesLink, nodemsg.BodyMove{Player: w.ID, Pose: w.Pose, Velocity: w.Velocity})
		further := w.Pose
		further.X -= foresight * math.Sin(float64(w.Pose.Yaw))
		further.Z += foresight * math.Cos(float64(w.Pose.Yaw))
		if pos := further.Chunk(); pos != at && c.land.info.Cell.Contains(pos) {
			c.known(pos)
		}
	}
}

// ask asks the region beyond the border whether a creature may come, and has it leave then.
func (c *creatures) ask(w *walker, ahead motion.Pose) {
	l, one, beyond := c.land, w.Creature, ahead.Chunk()
	if c.closed[beyond] > l.hub.tick {
		w.Turn(rand.Uint64)
		return
	}
	one.Pose = ahead
	w.asks = true
	l.Creatures.Ahead(one, func(at motion.Pose, can bool, err error) {
		l.handle.enqueue(func(l *land) {
			if l.creatures.walkers[one.ID] != w {
				return
			}
			if err != nil {
				l.creatures.closed[beyond] = l.hub.tick + closedTicks
			}
			if w.asks = false; !can || l.info.Cell.Contains(at.Chunk()) {
				w.Turn(rand.Uint64)
				return
			}
			one.Pose, one.Goal, w.leaves = at, w.Goal, true
			l.creatures.changes.Departed(one)
		})
	})
}

// known reports whether the blocks of a chunk of the region are known. If not, they are requested.
func (c *creatures) known(pos grid.ChunkPos) bool {
	g := c.request(pos)
	return g.blocks != nil
}

func (c *creatures) request(pos grid.ChunkPos) *ground {
	l := c.land
	g := c.grounds[pos]
	if g == nil {
		g = &ground{}
		c.grounds[pos] = g
		var pinned *[32]byte
		if base, is := l.contents.land.Base(pos); is {
			pinned = &base
		}
		l.Creatures.Ground(pos, pinned, func(blocks *chunk.Chunk, err error) {
			l.handle.enqueue(func(l *land) { l.creatures.setGround(pos, g, blocks, err) })
		})
	}
	g.used = l.hub.tick
	return g
}

func (c *creatures) setGround(pos grid.ChunkPos, g *ground, blocks *chunk.Chunk, err error) {
	if c.grounds[pos] != g {
		return
	}
	if err != nil {
		c.land.Logger.Debug("blocks around creatures not known", "chunk", pos.String(), "error", err)
		delete(c.grounds, pos) // it is requested again
	} else {
		for _, e := range c.land.contents.land.Chunk(pos).Edits {
			blocks.Set(e.At, e.Block)
		}
		g.blocks = blocks
	}
	for _, then := range g.wanted {
		then()
	}
	g.wanted = nil
}

// changed applies a change to the blocks that creatures know.
func (c *creatures) changed(change world.Change) {
	if g := c.grounds[change.Chunk]; g != nil && g.blocks != nil {
		g.blocks.Set(change.At, change.Block)
	}
}

// block is a creature.Ground.
func (c *creatures) block(pos grid.Pos) (chunk.Block, bool) {
	g := c.grounds[pos.Chunk()]
	switch {
	case g == nil || g.blocks == nil:
		return chunk.Air, false
	case pos.Y < 0:
		return chunk.Bedrock, true
	case int(pos.Y) >= g.blocks.Height():
		return chunk.Air, true
	}
	return g.blocks.Get(chunk.At(pos)), true
}

// logPoses has the poses of those logged that have moved.
func (c *creatures) logPoses() {
	if !c.moved {
		return
	}
	c.moved = false
	for id, w := range c.walkers {
		if c.changes.Len() == world.MaxCreatureChanges {
			return
		}
		logged, _ := c.land.contents.land.Creature(id)
		p, q := &w.Pose, &logged.Pose
		if !w.leaves && (max(math.Abs(p.X-q.X), math.Abs(p.Y-q.Y), math.Abs(p.Z-q.Z)) > poseMoved || w.Goal != logged.Goal) {
			c.changes.Moved(w.Creature)
		}
	}
}

// carry offers those that have left to the regions where they go.
func (c *creatures) carry() {
	l := c.land
	all := l.contents.land.Departures(nodemsg.MaxCreatures)
	if c.carrying || len(all) == 0 || l.Creatures.Carry == nil {
		return
	}
	c.carrying = true
	l.Creatures.Carry(all, func(accepted []nodemsg.Passage) {
		l.handle.enqueue(func(l *land) {
			if l.creatures.carrying = false; !l.leading {
				return
			}
			for _, p := range accepted {
				l.creatures.changes.Settled(p)
			}
		})
	})
}

// propose proposes what has changed. One entry is in flight at a time.
func (c *creatures) propose() {
	if c.entry != nil || c.changes.Len() == 0 {
		return
	}
	c.entry, c.awaiting = c.changes.Encode(), c.answers
	c.changes, c.answers = world.CreatureChanges{}, nil
	if err := c.land.group.Propose(c.entry); err != nil {
		c.fail(err)
	}
}

// applied takes over what an entry has done.
func (c *creatures) applied(entry []byte, outcome world.Outcome) {
	c.sync()
	if c.entry == nil || !bytes.Equal(c.entry, entry) {
		return
	}
	answers := c.awaiting
	c.entry, c.awaiting = nil, nil
	for _, answer := range answers {
		answer(outcome, nil)
	}
	c.carry()
}

// errUncertain is returned when this node stopped leading the region before an entry was applied.
var errUncertain = errors.New("the region was led elsewhere meanwhile: what was asked of its creatures may take place, or not")

// errTooMany is returned while too many changes of creatures wait.
var errTooMany = errors.New("the region has too many changes of creatures to log")

// change logs changes and waits until they are applied. It is called by other goroutines.
func (l *Land) change(ctx context.Context, n int, add func(l *land, e *world.CreatureChanges), applied func(*land, world.Outcome)) error {
	answer := make(chan error, 1)
	err, failed := await(ctx, l.Actor, answer, l.enqueue(func(l *land) {
		c := &l.creatures
		switch {
		case !l.leading || l.contents.land.Structure().RefusesEdits():
			answer <- ErrNotHere
			return
		case c.changes.Len()+n > world.MaxCreatureChanges:
			answer <- errTooMany
			return
		}
		before := c.changes.Len()
		if add(l, &c.changes); c.changes.Len() == before {
			applied(l, world.Outcome{})
			answer <- nil
			return
		}
		c.answers = append(c.answers, func(outcome world.Outcome, err error) {
			if err == nil {
				applied(l, outcome)
			}
			answer <- err
		})
	}))
	return cmp.Or(failed, err)
}

// AddCreatures has creatures born in a region, which this node must lead, and returns how many were: a region has at
// most world.MaxCreatures.
func (l *Land) AddCreatures(ctx context.Context, all []creature.Creature) (born int, err error) {
	err = l.change(ctx, len(all), func(_ *land, e *world.CreatureChanges) {
		for _, one := range all {
			e.Born(one)
		}
	}, func(_ *land, outcome world.Outcome) { born = min(outcome.Born, len(all)) })
	return born, err
}

// RemoveCreatures has the creatures near a place end, in a region that this node must lead, and returns how many did.
func (l *Land) RemoveCreatures(ctx context.Context, near nodemsg.Removal) (removed int, err error) {
	err = l.change(ctx, 0, func(l *land, e *world.CreatureChanges) {
		for id, w := range l.creatures.walkers {
			if math.Hypot(w.Pose.X-near.At.X, w.Pose.Z-near.At.Z) <= near.Radius && e.Len() < world.MaxCreatureChanges {
				e.Died(id)
				removed++
			}
		}
	}, func(*land, world.Outcome) {})
	return removed, err
}

// AcceptCreatures has creatures come in from other regions, and returns those of the passages that are in the log of this
// one, which this node must lead: now, or before.
func (l *Land) AcceptCreatures(ctx context.Context, all []nodemsg.Departure) (accepted []nodemsg.Passage, err error) {
	err = l.change(ctx, len(all), func(l *land, e *world.CreatureChanges) {
		for _, d := range all {
			if !l.contents.land.Accepted(d.Passage) {
				e.Arrived(d)
			}
		}
	}, func(l *land, _ world.Outcome) {
		for _, d := range all {
			if l.contents.land.Accepted(d.Passage) {
				accepted = append(accepted, d.Passage)
			}
		}
	})
	return accepted, err
}

// errAsleep is returned of land that nobody watches.
var errAsleep = errors.New("the land is asleep")

// Stands returns the pose at which a creature would stand that comes from beyond the border, and reports whether it can.
// The error is ErrNotHere if this node does not lead the region.
func (l *Land) Stands(ctx context.Context, one creature.Creature) (at motion.Pose, can bool, err error) {
	type answer struct {
		at  motion.Pose
		can bool
		err error
	}
	answers := make(chan answer, 1)
	got, err := await(ctx, l.Actor, answers, l.enqueue(func(l *land) {
		pos := one.Pose.Chunk()
		switch {
		case !l.leading || l.edits.frozen || !l.info.Cell.Contains(pos):
			answers <- answer{err: ErrNotHere}
			return
		case l.hub.watched[pos] == nil || l.Creatures.Ground == nil:
			answers <- answer{err: errAsleep}
			return
		}
		look := func() {
			at, fits, _ := creature.NewWalker(one).Enters(l.creatures.block, one.Pose)
			answers <- answer{at: at, can: fits}
		}
		if g := l.creatures.request(pos); g.blocks != nil {
			look()
		} else {
			g.wanted = append(g.wanted, look)
		}
	}))
	return got.at, got.can, cmp.Or(err, got.err)
}
