package gameserver

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/voxelpopuli/voxeld/chunk"
	"github.com/voxelpopuli/voxeld/gameserver/mirror"
	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/terrain"
	"github.com/voxelpopuli/voxeld/wire"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
	"github.com/voxelpopuli/voxeld/wire/sessionmsg"
)

// otherGround is a generator that puts a block on top of what the others generate, in every chunk.
type otherGround struct{ Terrain }

var oddity = grid.Pos{X: 5, Y: 30, Z: 6} // within the chunk

func (o otherGround) ChunkIn(room *terrain.Room, pos grid.ChunkPos) *chunk.Chunk {
	c := o.Terrain.ChunkIn(room, pos)
	c.Set(chunk.At(oddity), chunk.Dirt)
	return c
}

// library returns bases by their hash while it is open.
type library struct {
	mu    sync.Mutex
	open  bool
	asked int
}

func (l *library) BaseOf(_ context.Context, pos grid.ChunkPos, hash [32]byte) (*chunk.Chunk, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.asked++
	if c := ground().Chunk(pos); l.open && c.Hash() == hash {
		return c, nil
	}
	return nil, errors.New("nobody has it")
}

func (l *library) set(open bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.open = open
}

// A gateway that generates other terrain does not show an edited chunk before it has fetched the terrain that the edits
// were made on; then it shows exactly that. Edits of what is not shown are refused.
func TestForeignBase(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		books := &library{}
		r := newHarness(t, func(o *Options) { o.Terrain, o.Bases = otherGround{o.Terrain}, books })
		pos := under(nil)
		at := pos.Chunk()
		r.lands.commit(nodemsg.Intent{Player: [16]byte{1}, Seq: 1, Pos: pos, Block: chunk.Stone})
		c := r.join("ann", 1)
		c.look(func() {
			if c.mu.chunks[at] != nil {
				t.Error("the chunk is shown on the wrong terrain")
			}
			if len(c.mu.chunks) != 8 {
				t.Errorf("%d other chunks are shown, want 8", len(c.mu.chunks))
			}
		})
		c.send(sessionmsg.Edit{Seq: c.seq, X: 2, Y: 22, Z: 3, Block: uint16(chunk.Stone)})
		pass(time.Second)
		c.look(func() {
			if a := c.mu.acks[c.seq]; len(a) != 1 || a[0].Error != wire.RefusedNotLoaded {
				t.Errorf("an edit there: %+v", a)
			}
		})
		books.set(true)
		pass(2 * mirror.BaseRetry)
		want := ground().Chunk(at)
		want.Set(chunk.At(pos), chunk.Stone)
		c.look(func() {
			if got := c.mu.chunks[at]; got == nil || got.Hash() != want.Hash() {
				t.Errorf("the chunk is not as it should be: %v", got != nil)
			}
		})
	})
}

// A chunk that is edited for the first time while players watch it gets the terrain of its region's leader; a gateway
// that generated another one sends it anew.
func TestForeignBaseOfTheFirstEdit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		books := &library{open: true}
		r := newHarness(t, func(o *Options) { o.Terrain, o.Bases = otherGround{o.Terrain}, books })
		c := r.join("ann", 1)
		pos := under(nil)
		at := pos.Chunk()
		c.look(func() {
			if got := c.mu.chunks[at]; got == nil || got.Get(chunk.At(oddity)) != chunk.Dirt {
				t.Error("what was never edited is not as this node generates it")
			}
		})
		r.lands.commit(nodemsg.Intent{Player: [16]byte{1}, Seq: 1, Pos: pos, Block: chunk.Stone})
		pass(time.Second)
		want := ground().Chunk(at)
		want.Set(chunk.At(pos), chunk.Stone)
		c.look(func() {
			if got := c.mu.chunks[at]; got == nil || got.Hash() != want.Hash() {
				t.Error("after its first edit it is not as its region has it")
			}
		})
		if books.asked != 1 {
			t.Errorf("asked %d times", books.asked)
		}
	})
}
