package gameserver

import (
	"bytes"
	"context"

	"github.com/voxelpopuli/voxeld/chunk"
	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/terrain"
	"github.com/voxelpopuli/voxeld/wire"
)

// Builders generate terrain and encode chunks beside the feeds: a chunk takes milliseconds, and a feed
// must not keep its players' moves waiting for it.

// usualBuilders is how many run at once.
const usualBuilders = 2

// attempts is how often a builder encodes a chunk that changes under its hands before it stops the
// feed to do so.
const attempts = 3

// job is one view that a builder shall settle.
type job struct {
	f     *feed
	v     *view
	order uint64 // of the view, when it was queued
}

// queue hands the view to a builder, if there is something to do. The feed's lock is held.
func (f *feed) queue(v *view) {
	if !v.queued && v.unsettled() {
		v.queued = true
		f.g.jobs.put(job{f, v, v.order})
	}
}

// build works off jobs until ctx ends.
func (g *Gateway) build(ctx context.Context) {
	with := newTools()
	for {
		j, ok := g.jobs.next(ctx)
		if !ok {
			return
		}
		j.f.settle(j.v, with)
	}
}

// tools are the memory that a builder keeps for making one chunk after the other, about a megabyte.
type tools struct {
	room   terrain.Room
	packer *wire.Packer
	plain  []byte // a chunk's encoding
}

func newTools() *tools { return &tools{packer: wire.NewPacker()} }

// settle brings one view's land about and serves its viewers. Whatever happens to the view meanwhile
// (edits, a new viewer, a new link) is taken up before it ends.
func (f *feed) settle(v *view, with *tools) {
	for attempt := 0; ; attempt++ {
		f.mu.Lock()
		switch {
		case !v.unsettled():
			v.queued = false
			f.mu.Unlock()
			return
		case !v.laid():
			foreign := v.foreign
			f.mu.Unlock()
			base, missing := f.lay(v, foreign, with)
			if missing && f.g.Bases != nil && !f.g.run(func(ctx context.Context) { f.fetchBase(ctx, v, base) }) {
				return // the gateway is ending
			}
		case v.latest.version == v.version:
			f.serve(v)
			f.mu.Unlock()
		case attempt >= attempts:
			v.latest = snapshot{version: v.version, packed: with.pack(v.open())}
			f.serve(v)
			f.mu.Unlock()
		default:
			land, version := v.open().Clone(), v.version
			f.mu.Unlock()
			packed := with.pack(land)
			f.mu.Lock()
			v.latest = snapshot{version: version, packed: packed}
			f.mu.Unlock()
		}
	}
}

// lay puts the edits over the terrain: this node's own, or the foreign one, if it is given. If it is not the one that
// the edits lie on, missing says so, and base which that is. Land that nobody has changed is what the terrain's generator made, and is
// not even unpacked.
func (f *feed) lay(v *view, foreign *chunk.Chunk, with *tools) (base [32]byte, missing bool) {
	var ground *chunk.Chunk
	var hash [32]byte
	if foreign != nil {
		ground, hash = foreign.Clone(), foreign.Hash()
	} else {
		own, made := f.g.terrain(v.at, with)
		if f.layPristine(v, own) {
			return base, false
		}
		if ground, hash = made, own.hash; ground == nil {
			ground = unpackChunk(own.packed)
		}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if v.laid() || !v.known || v.wanting {
		return base, false
	}
	if len(v.base) > 0 && !bytes.Equal(v.base, hash[:]) {
		f.want(v, hash)
		return [32]byte(v.base), true
	}
	v.ground = hash
	if v.build(ground) {
		for whom, sees := range v.viewers {
			if sees == current {
				v.viewers[whom] = outdated
			}
		}
	}
	return base, false
}

// layPristine takes the terrain for the land, if nobody has ever changed that.
func (f *feed) layPristine(v *view, own shelved) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !v.known || v.wanting || v.laid() || v.former != nil || !v.pristine() {
		return false
	}
	v.version++
	v.ground = own.hash
	v.latest, v.folded = snapshot{version: v.version, packed: own.packed}, true
	return true
}

// shelved is a chunk's generated terrain.
type shelved struct {
	packed []byte
	hash   [32]byte
}

// shelfSize is how many chunks' generated terrain is kept packed, about 3 KB each.
const shelfSize = 4096

// terrain gives a chunk's generated terrain, packed, and unpacked if it was made just now.
func (g *Gateway) terrain(at grid.ChunkPos, with *tools) (own shelved, made *chunk.Chunk) {
	if own, kept := g.shelf.Get(at); kept {
		return own, nil
	}
	g.metrics.generated.Inc()
	made = g.Terrain.ChunkIn(&with.room, at)
	own = shelved{packed: with.pack(made), hash: chunk.HashOf(with.plain)}
	g.shelf.Add(at, own)
	return own, made
}

// serve hands the chunk to all viewers who wait for it. The feed's lock is held, and the latest
// snapshot is of the present version.
func (f *feed) serve(v *view) {
	v.tick = f.mu.tick
	for whom, sees := range v.viewers {
		switch {
		case sees != nothing && sees != outdated:
		case !whom.room(f, v):
			v.viewers[whom] = sees | held
		default:
			v.viewers[whom] = current
			whom.whole(v, sees == outdated)
		}
	}
}

// serveAgain hands a viewer the chunk for which it had no room.
func (f *feed) serveAgain(v *view, whom viewer) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if sees, looks := v.viewers[whom]; looks && sees&held != 0 && f.mu.views[v.at] == v {
		v.viewers[whom] = sees &^ held
		f.queue(v)
	}
}

// pack makes the bytes that sessions get, and leaves the chunk's encoding in plain.
func (t *tools) pack(land *chunk.Chunk) []byte {
	var err error
	if t.plain, err = land.AppendBinary(t.plain[:0]); err != nil {
		panic(err) // a chunk in memory can always be encoded
	}
	packed, err := t.packer.Pack(t.plain)
	if err != nil {
		panic(err) // nor can compressing into memory fail
	}
	return packed
}

// unpackChunk is the inverse of pack.
func unpackChunk(packed []byte) *chunk.Chunk {
	plain, err := wire.UnpackChunk(packed)
	if err != nil {
		panic(err) // we packed it ourselves
	}
	land, err := chunk.Decode(plain)
	if err != nil {
		panic(err) // the same
	}
	return land
}
