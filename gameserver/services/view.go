package services

import (
	"context"
	"slices"
	"sync"

	"github.com/voxelpopuli/voxeld/chunk"
	"github.com/voxelpopuli/voxeld/gameserver/admission"
	"github.com/voxelpopuli/voxeld/gameserver/mirror"
	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/motion"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
	"github.com/voxelpopuli/voxeld/wire/sessionmsg"
)

// unseen is the part of a mirror.Subscriber that services do not use.
type unseen struct{}

func (unseen) SendChunk(*mirror.Chunk, bool)              {}
func (unseen) HasRoom(*mirror.Chunk) bool                 { return true }
func (unseen) SendDelta(*mirror.Delta)                    {}
func (unseen) WantsEveryMove() bool                       { return false }
func (unseen) Predictable() bool                          { return false }
func (unseen) SendResult(nodemsg.EditResult) (waits bool) { return false }
func (unseen) Flush()                                     {}
func (unseen) SendNotice(sessionmsg.Notice)               {}

// view is the chunks that a request or a stream has in the mirror. It is the mirror's subscriber of them.
type view struct {
	unseen
	subs   map[grid.ChunkPos]*mirror.Subscription
	loaded chan struct{} // closed when no chunk is missing

	mu struct {
		sync.Mutex
		changed map[grid.ChunkPos]struct{} // chunks that arrived, or whose blocks have changed, since take
		missing map[grid.ChunkPos]struct{} // chunks that have not arrived
	}
}

// watch begins to watch chunks, until close. It waits where land may have to be founded.
func (s *Server) watch(ctx context.Context, c *call, chunks []grid.ChunkPos) (*view, error) {
	v := &view{subs: make(map[grid.ChunkPos]*mirror.Subscription), loaded: make(chan struct{})}
	v.mu.changed, v.mu.missing = make(map[grid.ChunkPos]struct{}), make(map[grid.ChunkPos]struct{})
	for _, at := range chunks {
		v.mu.missing[at] = struct{}{}
	}
	for _, at := range chunks {
		if s.Mirror.At(at) == nil {
			if err := s.Client(c.remote).Wait(ctx, admission.Found); err != nil {
				v.close()
				return nil, errBusy
			}
		}
		v.subs[at] = s.Mirror.Watch(at, v)
	}
	return v, nil
}

// close ends the watch.
func (v *view) close() {
	for at, sub := range v.subs {
		sub.Unwatch(at, v)
	}
}

// load waits until all chunks are here.
func (v *view) load(ctx context.Context) error {
	select {
	case <-v.loaded:
		return nil
	case <-ctx.Done():
		return errBusy
	}
}

// SendChunk notes that a chunk is here.
func (v *view) SendChunk(c *mirror.Chunk, _ bool) { v.note(c.At()) }

// SendDelta notes that blocks have changed.
func (v *view) SendDelta(d *mirror.Delta) {
	if len(d.Blocks) > 0 {
		v.note(d.Chunk)
	}
}

func (v *view) note(at grid.ChunkPos) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.mu.changed[at] = struct{}{}
	if _, missing := v.mu.missing[at]; missing {
		if delete(v.mu.missing, at); len(v.mu.missing) == 0 {
			close(v.loaded)
		}
	}
}

// take returns the chunks that have changed since the last call.
func (v *view) take() (all []grid.ChunkPos) {
	v.mu.Lock()
	defer v.mu.Unlock()
	for at := range v.mu.changed {
		all = append(all, at)
	}
	clear(v.mu.changed)
	slices.SortFunc(all, grid.ChunkPos.Compare)
	return all
}

// block returns a block of a chunk that is here.
func (v *view) block(pos grid.Pos) (chunk.Block, error) {
	b, known := v.subs[pos.Chunk()].Block(pos)
	if !known {
		return b, errBusy // a node that has other terrain is asked for its land
	}
	return b, nil
}

// bodies returns where the bodies of players are that may reach into a chunk, as far as they are known here.
func (s *Server) bodies(at grid.ChunkPos) (all []motion.Pose) {
	for x := at.X - 1; x <= at.X+1; x++ {
		for z := at.Z - 1; z <= at.Z+1; z++ {
			near := grid.ChunkPos{X: x, Z: z}
			if sub := s.Mirror.At(near); sub != nil {
				sub.AnyOccupant(near, func(b *nodemsg.Body) bool {
					all = append(all, b.Pose)
					return false
				})
			}
		}
	}
	return all
}

// chunksOf returns the chunks of a box.
func chunksOf(box grid.Box) (all []grid.ChunkPos) {
	area := box.Area()
	for x := area.MinX; x < area.MaxX; x++ {
		for z := area.MinZ; z < area.MaxZ; z++ {
			all = append(all, grid.ChunkPos{X: x, Z: z})
		}
	}
	return all
}

// countOf returns how many chunks a box touches.
func countOf(box grid.Box) int64 {
	area := box.Area()
	return int64(area.MaxX-area.MinX) * int64(area.MaxZ-area.MinZ)
}
