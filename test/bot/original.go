package bot

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/voxelpopuli/voxeld/chunk"
	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/wire/legacymsg"
)

// originalPlayer uses VoxelPopuli's own protocol as its released client does, and fails in the same situations. It
// has one connection for each chunk around the player, on whatever server the dht names, and one in dht mode, which
// is silent between queries. The player is registered in the chunk where they stand, and sends a move there once a
// frame, whether they walk or not.
type originalPlayer struct {
	*basePlayer
	links        map[grid.ChunkPos]*link
	here         grid.ChunkPos // registered there, or about to be
	events       chan event
	requests     chan grid.ChunkPos // for the search goroutine
	readers      sync.WaitGroup
	pending      *sentEdit // one at a time: the protocol's answer does not identify the edit
	unregistered bool      // the chunk under the player was reset, and they have not crossed a border since
	stalledSince time.Time // since when the chunk under the player is disconnected (the player stands still); zero: it is connected
}

func (p *originalPlayer) run(ctx context.Context) error {
	life, end := context.WithCancel(context.WithoutCancel(ctx)) // for drainTime, as in a session
	p.began = time.Now()
	p.ground = newGround(unpackSlab)
	p.links = make(map[grid.ChunkPos]*link)
	p.events = make(chan event, 64)
	p.requests = make(chan grid.ChunkPos, maxQueued)
	p.probes = newProbeSender(p.allProbes, p.name, p.rng)
	l := &locator{run: p.runState, name: p.name}
	defer l.close()
	at, err := p.start(life, l) // its connection is used until the end
	if err != nil {
		end()
		return err
	}
	p.here = at
	p.readers.Go(func() { p.search(life, l) })
	defer func() {
		close(p.requests)
		end() // closes every connection
		p.readers.Wait()
	}()
	return p.loop(ctx, life)
}

// start chooses the first chunk. A wanderer begins where the dht says that the player is.
func (p *originalPlayer) start(ctx context.Context, l *locator) (grid.ChunkPos, error) {
	if p.Mode != Wander {
		return p.homeOf(p.index), nil
	}
	x, y, z, err := l.place(ctx)
	if err != nil {
		return grid.ChunkPos{}, err
	}
	p.walk.pose.X, p.walk.pose.Y, p.walk.pose.Z = x, y, z
	return p.walk.pose.Chunk(), nil
}

func (p *originalPlayer) loop(ctx, life context.Context) error {
	moves, stopMoves := newTicker(p.moveEvery())
	defer func() { stopMoves() }()
	edits, stopEdits := newTicker(p.editEvery())
	defer func() { stopEdits() }()
	defer func() { p.abandonEdit() }()
	joining := time.NewTimer(p.Timeout)
	defer joining.Stop()
	over, last := ctx.Done(), (<-chan time.Time)(nil)
	for {
		p.load()
		var err error
		select {
		case <-over:
			over, moves, edits = nil, nil, nil
			last = time.After(drainTime)
		case <-last:
			return p.leave()
		case <-joining.C:
			if p.since.IsZero() {
				return &failure{"timeout", "no land under the feet"}
			}
		case e := <-p.events:
			err = p.handle(life, e)
		case now := <-moves:
			err = p.move(now)
		case now := <-edits:
			err = p.edit(now)
		}
		if err == nil {
			err = p.ground.broken
		}
		if err != nil {
			return err
		}
		if over == nil && p.pending == nil {
			return p.leave()
		}
	}
}

// enter puts the player into the world once the land under them has arrived.
func (p *originalPlayer) enter() error {
	put := p.settle
	if p.Mode == Wander {
		put = p.fall
	}
	if done, err := put(); !done || err != nil {
		return err
	}
	if err := p.register(p.here); err != nil {
		return err
	}
	p.entered()
	return p.sendPlace()
}

// fall lowers a wanderer to the ground, and reports whether that land has arrived.
func (p *originalPlayer) fall() (done bool, err error) {
	if err := p.overGround(); err != nil {
		return false, err
	}
	pose := &p.walk.pose
	y, known, ok := p.ground.stand(pose.X, min(pose.Y, legacymsg.SlabHeight), pose.Z)
	if known && !ok {
		return false, &failure{"no footing", fmt.Sprintf("nowhere to stand at %g, %g, %g", pose.X, pose.Y, pose.Z)}
	}
	if known {
		pose.Y = y
	}
	return known, nil
}

// settle puts a player who stays in one chunk at a random place in it.
func (p *originalPlayer) settle() (done bool, err error) {
	o := p.here.Origin()
	for range 100 {
		x := float64(o.X) + 1 + p.rng.Float64()*(grid.ChunkSize-2)
		z := float64(o.Z) + 1 + p.rng.Float64()*(grid.ChunkSize-2)
		if y, known, ok := p.ground.stand(x, legacymsg.SlabHeight+1, z); known && ok {
			p.walk.pose.X, p.walk.pose.Y, p.walk.pose.Z = x, y, z
			return true, p.overGround()
		}
	}
	return false, &failure{"no footing", fmt.Sprintf("nowhere to stand in chunk %v", p.here)}
}

// overGround returns an error above a column without solid blocks: the released client falls there forever.
func (p *originalPlayer) overGround() error {
	pose := p.walk.pose
	if solid, known := p.ground.solidBelow(pose.X, min(pose.Y, legacymsg.SlabHeight), pose.Z); known && !solid {
		return &failure{"no ground", fmt.Sprintf("under %d, %d: the released client would fall for ever", floor(pose.X), floor(pose.Z))}
	}
	return nil
}

// move plays one frame: the player walks, changes the registration when they cross a border, and sends the position.
func (p *originalPlayer) move(now time.Time) error {
	if p.since.IsZero() || !p.stalledSince.IsZero() {
		return nil
	}
	was := p.walk.pose
	p.walk.step(p.moveEvery(), p.ground)
	if err := p.overGround(); err != nil {
		return err
	}
	if at := p.walk.pose.Chunk(); at != p.here {
		if err := p.leave(); err != nil {
			return err
		}
		if err := p.register(at); err != nil {
			return err
		}
		p.here, p.unregistered = at, false
		p.meter.crossed()
	}
	if err := p.sendPlace(); err != nil {
		return err
	}
	if p.walk.pose.X != was.X || p.walk.pose.Z != was.Z { // else an observer could not identify the move
		p.probes.write(p.walk.pose, now)
	}
	return nil
}

// resume continues in the chunk under the player, which is connected again. The released client registers again only at
// the next border, and until then its moves go to the connection that was reset.
func (p *originalPlayer) resume(now time.Time) {
	p.meter.resumed(now.Sub(p.stalledSince))
	p.stalledSince = time.Time{}
	p.unregistered = true
}

func (p *originalPlayer) edit(now time.Time) error {
	if p.pending != nil && now.Sub(p.pending.at) > p.Timeout {
		p.abandonEdit()
	}
	if p.since.IsZero() || !p.stalledSince.IsZero() || p.pending != nil {
		return nil
	}
	pos, block, ok := p.build.next(p.walk.pose, p.reach, p.ground)
	// Elsewhere the edit could overtake, on another connection, the moves that bring it within reach.
	if !ok || pos.Y >= legacymsg.SlabHeight || pos.Chunk() != p.here {
		if p.build.placed = nil; ok && block == chunk.Air { // it is removed when the player is back
			p.build.placed = &pos
		}
		return nil
	}
	p.pending = &sentEdit{at: time.Now(), pos: pos, block: block}
	p.meter.edited()
	for at, l := range p.links { // to all connected chunks: the one that holds the block applies it
		if l.conn == nil {
			continue
		}
		if err := p.send(at, legacymsg.BlockWrite{Player: p.name, Pos: pos, Block: uint16(block)}); err != nil {
			return err
		}
	}
	return nil
}

// abandonEdit counts an edit whose effect was not seen in time, and stops waiting for it. The protocol does not
// acknowledge edits: it may have been refused, or overwritten by another player before the chunk was sent.
func (p *originalPlayer) abandonEdit() {
	if p.pending != nil {
		p.meter.unanswered(1)
		p.pending = nil
	}
}

// answered treats new contents of a chunk as the answer to an edit in it, if the edit is there.
func (p *originalPlayer) answered(e event) {
	if p.pending == nil || p.pending.pos.Chunk() != e.chunk {
		return
	}
	if b, known := p.ground.block(p.pending.pos); known && b == p.pending.block {
		p.meter.acknowledged(e.at.Sub(p.pending.at), "")
		p.pending = nil
	}
}

// leave deregisters the player, so that the world saves where they stood.
func (p *originalPlayer) leave() error {
	if p.since.IsZero() || !p.stalledSince.IsZero() || p.unregistered {
		return nil
	}
	return p.send(p.here, legacymsg.PlayerDeregister{Player: p.name, Chunk: p.here})
}

func (p *originalPlayer) register(at grid.ChunkPos) error {
	return p.send(at, legacymsg.PlayerRegister{Player: p.name, Chunk: at})
}

func (p *originalPlayer) sendPlace() error {
	if p.unregistered {
		return nil
	}
	return p.send(p.here, legacymsg.PlayerMove{
		Player: p.name, X: p.walk.pose.X, Y: p.walk.pose.Y, Z: p.walk.pose.Z,
		Yaw: legacymsg.OriginalYaw(p.walk.pose.Yaw), HasYaw: true,
	})
}
