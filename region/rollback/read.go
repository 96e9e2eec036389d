package rollback

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/history"
	"github.com/voxelpopuli/voxeld/region/actor"
	"github.com/voxelpopuli/voxeld/region/transport"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
)

// This file reads the history of a region that this node leads.

// chunkHistory is the history of a chunk.
type chunkHistory struct {
	pos      grid.ChunkPos
	base     [32]byte
	segments [][]byte
}

// bytes returns the size of the segments. It grows with each change, and so tells whether there was one.
func (c *chunkHistory) bytes() (n int) {
	for _, s := range c.segments {
		n += len(s)
	}
	return n
}

// state is what is read of a region in its goroutine.
type state struct {
	leads      bool
	members    []nodemsg.Member
	keeps      bool // the region has a history: it was edited
	frozen     bool // it takes no changes for now
	split      bool // it has no land
	rolledBack int64
	marked     int64
	chunks     []chunkHistory // those in the box that have a history since the time, by position
}

// read returns the state of a region, and the history of its chunks in a box since a time.
func read(ctx context.Context, l *actor.Land, box grid.Box, since int64) (state, error) {
	return actor.Ask(ctx, l.Actor, l.Enqueue, func(tx actor.Tx) state {
		land := tx.Contents()
		structure := land.Structure()
		s := state{
			leads: tx.Leads(), members: tx.Region().Members, keeps: structure.Edited, frozen: structure.RefusesEdits(), split: structure.Split != 0,
			rolledBack: land.RolledBack(), marked: land.Marked(),
		}
		area := box.Area()
		for _, pin := range land.Pins() {
			if !area.Contains(pin.Chunk) {
				continue
			}
			if segments := land.History(pin.Chunk, since); len(segments) > 0 {
				s.chunks = append(s.chunks, chunkHistory{pin.Chunk, pin.Base, segments})
			}
		}
		slices.SortFunc(s.chunks, func(a, b chunkHistory) int { return a.pos.Compare(b.pos) })
		return s
	})
}

// answerTime bounds one question about a region.
const answerTime = 5 * time.Second

// maxListed bounds how many records can be skipped and listed: they are in memory at the same time.
const maxListed = nodemsg.MaxHistorySkip

var (
	errTooMany    = errors.New("too many questions about history; ask again later")
	errNotOrdered = errors.New("the rollback is not known on this node yet, or not listed any more")
	errTooFar     = errors.New("too many changes to be listed: ask for a shorter time or a smaller area")
)

// Answer answers a question of another node.
func (k *Keeper) Answer(ctx context.Context, peer string, q nodemsg.HistoryRequest) nodemsg.Answer {
	if !k.askers.Allow(peer) {
		return nodemsg.Answer{Error: errTooMany.Error()}
	}
	a, err := k.here(ctx, q)
	if err != nil {
		return transport.Refused(err)
	}
	return nodemsg.Answer{History: &a}
}

// here answers a question about a region that this node leads, or comes to lead.
func (k *Keeper) here(ctx context.Context, q nodemsg.HistoryRequest) (a nodemsg.HistoryAnswer, err error) {
	if q.Skip+q.Most > maxListed {
		return a, errTooFar
	}
	ctx, cancel := context.WithTimeout(ctx, answerTime)
	defer cancel()
	l, err := k.Lead(ctx, q.Region)
	if err != nil {
		return a, err
	}
	if err := k.reading.Acquire(ctx, 1); err != nil {
		return a, errTooMany
	}
	defer k.reading.Release(1)
	filter := history.Filter{Box: grid.Box{Min: q.Min, Max: q.Max}, Since: q.Since, Until: q.Until, Players: q.Players()}
	r := history.Rollback{Number: q.Rollback, Filter: filter, After: q.After}
	if q.Rollback > 0 {
		ordered, known := k.ordered(q.Rollback)
		if !known {
			return a, errNotOrdered
		}
		r = ordered.Rollback
	}
	s, err := read(ctx, l, r.Box, r.Since)
	switch {
	case err != nil:
		return a, err
	case !s.leads:
		return a, actor.ErrNotHere
	case q.Rollback != 0:
		return progress(ctx, r, s)
	}
	a.Records, a.More, err = list(ctx, filter, s, q)
	return a, err
}

// progress returns what a rollback has done in a region, and what it has yet to do: before it arrives there, what it
// would do now.
func progress(ctx context.Context, r history.Rollback, s state) (a nodemsg.HistoryAnswer, err error) {
	a.Done = r.Number > 0 && (s.rolledBack >= r.Number || !s.keeps)
	r.Marked = r.Marked && s.marked >= r.Number
	by := history.Author(r.Number)
	for _, c := range s.chunks {
		if err := ctx.Err(); err != nil {
			return a, err
		}
		for _, segment := range c.segments {
			if err := history.Decode(segment, func(rec history.Record) {
				if rec.Player == by {
					a.Changed++
				}
			}); err != nil {
				return a, err
			}
		}
		if a.Done {
			continue
		}
		changes, err := r.Changes(c.pos, c.segments)
		if err != nil {
			return a, err
		}
		if len(changes) > 0 {
			columns := nodemsg.ChunkColumns{Chunk: c.pos}
			for _, change := range changes {
				columns.Set(change.At)
			}
			a.Left += len(changes)
			a.Columns = append(a.Columns, columns)
		}
	}
	return a, nil
}

// list returns a page of records.
func list(ctx context.Context, f history.Filter, s state, q nodemsg.HistoryRequest) (page []nodemsg.HistoryRecord, more bool, err error) {
	var all []nodemsg.HistoryRecord
	order := func(a, b nodemsg.HistoryRecord) int { return cmp.Compare(a.Time, b.Time) }
	if q.Newest {
		order = func(a, b nodemsg.HistoryRecord) int { return cmp.Compare(b.Time, a.Time) }
	}
	keep := q.Skip + q.Most + 1
	shorten := func() {
		slices.SortStableFunc(all, order)
		all = all[:min(len(all), keep)]
	}
	for _, c := range s.chunks {
		if err := ctx.Err(); err != nil {
			return nil, false, err
		}
		var found []nodemsg.HistoryRecord
		for _, segment := range c.segments {
			if err := history.Decode(segment, func(r history.Record) {
				if f.Matches(c.pos, r) {
					found = append(found, nodemsg.HistoryRecord{Time: r.Time, Player: r.Player, Guest: r.Guest, At: r.At.Pos(c.pos), Old: r.Old, New: r.New})
				}
			}); err != nil {
				return nil, false, err
			}
		}
		if q.Newest {
			slices.Reverse(found) // the order of changes of one block stays, although their times may be equal
		}
		if all = append(all, found...); len(all) > 2*keep+1<<12 {
			shorten()
		}
	}
	shorten()
	all = all[min(q.Skip, len(all)):]
	return all[:min(len(all), q.Most)], len(all) > q.Most, nil
}
