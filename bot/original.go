package bot

import (
	"bytes"
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/wire"
)

// How the released client loads chunks (§3.3.3): what is within near is loaded, what is beyond far is let go.
const (
	loadNear   = 1               // 3×3
	loadFar    = 4               // 9×9
	askAgain   = 2 * time.Second // after a chunk could not be connected to
	maxInQuest = 32              // chunks that the locator has yet to look for
)

// originalPlayer speaks VoxelPopuli's own protocol: one connection for each chunk around the player, on whatever
// server the dht names, and one in dht mode. The player is registered in the chunk where he stands.
type originalPlayer struct {
	*body
	links   map[grid.ChunkPos]*link
	here    grid.ChunkPos // registered there, or about to be
	events  chan event
	quest   chan grid.ChunkPos // for the goroutine that asks and dials
	readers sync.WaitGroup
	pending *sentEdit // one at a time: the answer names no edit
	astray  time.Time // since when the chunk under the feet is not connected; zero: it is
}

// link is a chunk that the player is connected to, or waits for.
type link struct {
	conn  *conn     // nil while not connected
	again time.Time // not before then may it be asked for (after a failure)
	asked bool
}

// event is what the other goroutines of a player tell him about a chunk: exactly one of the last three is set.
type event struct {
	chunk grid.ChunkPos
	at    time.Time
	from  *conn  // which connection tells; nil: the search
	conn  *conn  // connected
	slab  []byte // a line of CHUNK_DATA
	err   error  // not connected, or not any more
}

func (p *originalPlayer) run(ctx context.Context) error {
	life, end := context.WithCancel(context.WithoutCancel(ctx)) // for lastWord, as in a session
	p.began = time.Now()
	p.ground = newGround(unpackSlab)
	p.links = make(map[grid.ChunkPos]*link)
	p.events = make(chan event, 64)
	p.quest = make(chan grid.ChunkPos, maxInQuest)
	p.mark = newPen(p.stamps, p.name, p.rng)
	l := &locator{crew: p.crew, name: p.name}
	defer l.close()
	at, err := p.start(ctx, l)
	if err != nil {
		end()
		return err
	}
	p.here = at
	p.readers.Go(func() { p.search(life, l) })
	defer func() {
		close(p.quest)
		end() // closes every connection
		p.readers.Wait()
	}()
	return p.loop(ctx, life)
}

// start chooses the chunk to begin in. A wanderer begins where the world remembers him, if it does.
func (p *originalPlayer) start(ctx context.Context, l *locator) (grid.ChunkPos, error) {
	if p.Mode != Wander {
		return p.homeOf(p.index), nil
	}
	x, y, z, err := l.place(ctx)
	if err != nil {
		return grid.ChunkPos{}, err
	}
	if x != wire.DefaultX || y != wire.DefaultY || z != wire.DefaultZ {
		return chunkOf(wire.Pose{X: x, Y: y, Z: z}), nil
	}
	return grid.ChunkPos{
		X: p.Chunk.X + int32(p.rng.IntN(2*p.Spread+1)-p.Spread),
		Z: p.Chunk.Z + int32(p.rng.IntN(2*p.Spread+1)-p.Spread),
	}, nil
}

// search is the goroutine that finds chunks and connects to them.
func (p *originalPlayer) search(ctx context.Context, l *locator) {
	for at := range p.quest {
		c, err := l.connect(ctx, at)
		if !p.tell(ctx, event{chunk: at, at: time.Now(), conn: c, err: err}) {
			return
		}
	}
}

// read is the goroutine of one link: it counts and stamps what comes, and hands over the land.
func (p *originalPlayer) read(ctx context.Context, at grid.ChunkPos, c *conn) {
	w := newWatcher(p.stamps, p.meter)
	for {
		line, err := c.readLine()
		now := time.Now()
		if err != nil {
			p.tell(ctx, event{chunk: at, at: now, from: c, err: err})
			return
		}
		// 65 KB of numbers are parsed only when somebody wants to stand on them.
		if bytes.HasPrefix(line, []byte(`{"type":5,`)) {
			p.meter.read("CHUNK_DATA", len(line)+1)
			if !p.tell(ctx, event{chunk: at, at: now, from: c, slab: line}) {
				return
			}
			continue
		}
		packet, err := wire.DecodePacket(line)
		if err != nil {
			p.tell(ctx, event{chunk: at, at: now, from: c, err: err})
			return
		}
		p.meter.read(nameOf(packet), len(line)+1)
		if m, ok := packet.(wire.PlayerMove); ok {
			w.saw(m.Player, m.X, m.Z, now)
		}
	}
}

func (p *originalPlayer) loop(ctx, life context.Context) error {
	moves, stopMoves := beat(p.moveEvery())
	defer func() { stopMoves() }()
	edits, stopEdits := beat(p.editEvery())
	defer func() { stopEdits() }()
	defer func() { p.giveUp() }()
	joining := time.NewTimer(p.Timeout)
	defer joining.Stop()
	over, last := ctx.Done(), (<-chan time.Time)(nil)
	p.want(p.here, time.Now())
	for {
		var err error
		select {
		case <-over:
			over, moves, edits = nil, nil, nil
			last = time.After(lastWord)
		case <-last:
			return p.leave()
		case <-joining.C:
			if p.since.IsZero() {
				return &failure{"timeout", "no land under the feet"}
			}
		case e := <-p.events:
			err = p.take(life, e)
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

// take acts on what another goroutine of the player has found.
func (p *originalPlayer) take(life context.Context, e event) error {
	l := p.links[e.chunk]
	if e.from != nil && (l == nil || l.conn != e.from) {
		return nil // last words of a connection that was let go
	}
	switch {
	case e.err != nil:
		return p.cut(e)
	case e.conn != nil:
		p.links[e.chunk] = &link{conn: e.conn, asked: true}
		p.readers.Go(func() { p.read(life, e.chunk, e.conn) })
	default:
		p.ground.put(e.chunk, e.slab)
		p.answered(e)
		switch {
		case e.chunk != p.here:
		case p.since.IsZero():
			return p.appear()
		case !p.astray.IsZero():
			p.astray = time.Time{}
			if err := p.register(p.here); err != nil {
				return err
			}
			return p.tellPlace(e.at)
		}
	}
	return nil
}

// cut takes note of a chunk that could not be connected to, or has closed its connection: perhaps it has moved to
// another server. A wanderer asks again in a while, and stands still meanwhile if he was in that chunk.
func (p *originalPlayer) cut(e event) error {
	if p.Mode != Wander || p.since.IsZero() && e.chunk == p.here {
		return e.err
	}
	p.drop(e.chunk)
	p.links[e.chunk] = &link{again: e.at.Add(askAgain)}
	if e.chunk != p.here {
		return nil
	}
	if p.astray.IsZero() {
		p.astray = e.at
		p.meter.corrected("chunk closed its connection")
	}
	if e.at.Sub(p.astray) > p.Timeout {
		return e.err
	}
	return nil
}

// appear puts the player into the world, somewhere in the chunk that has just arrived.
func (p *originalPlayer) appear() error {
	o := p.here.Origin()
	for range 100 {
		x := float64(o.X) + 1 + p.rng.Float64()*(grid.ChunkSize-2)
		z := float64(o.Z) + 1 + p.rng.Float64()*(grid.ChunkSize-2)
		y, known, ok := p.ground.stand(x, wire.SlabHeight+1, z)
		if !known || !ok {
			continue
		}
		p.walk.pose.X, p.walk.pose.Y, p.walk.pose.Z = x, y, z
		if err := p.register(p.here); err != nil {
			return err
		}
		p.entered()
		return p.tellPlace(time.Now())
	}
	return &failure{"no footing", fmt.Sprintf("nowhere to stand in chunk %v", p.here)}
}

// move walks for one interval, over borders with the formalities, and keeps the right chunks loaded (§3.3.3).
func (p *originalPlayer) move(now time.Time) error {
	if p.since.IsZero() {
		return nil
	}
	if !p.astray.IsZero() {
		p.want(p.here, now)
		return nil
	}
	walked := p.walk.step(p.moveEvery(), p.ground)
	if at := chunkOf(p.walk.pose); at != p.here {
		if err := p.send(p.here, wire.PlayerDeregister{Player: p.name, Chunk: p.here}); err != nil {
			return err
		}
		if err := p.register(at); err != nil {
			return err
		}
		p.here = at
	}
	if p.Mode == Wander {
		p.loadAround(now)
	}
	if !walked {
		return nil
	}
	return p.tellPlace(now)
}

func (p *originalPlayer) loadAround(now time.Time) {
	for c := range p.links {
		if abs(c.X-p.here.X) > loadFar || abs(c.Z-p.here.Z) > loadFar {
			p.drop(c)
		}
	}
	for dx := int32(-loadNear); dx <= loadNear; dx++ {
		for dz := int32(-loadNear); dz <= loadNear; dz++ {
			p.want(grid.ChunkPos{X: p.here.X + dx, Z: p.here.Z + dz}, now)
		}
	}
}

// want asks for a chunk, unless it is there, asked for already, or was refused a moment ago.
func (p *originalPlayer) want(at grid.ChunkPos, now time.Time) {
	if l := p.links[at]; !at.Valid() || l != nil && (l.asked || now.Before(l.again)) {
		return
	}
	select {
	case p.quest <- at:
		p.links[at] = &link{asked: true}
	default: // the locator has enough to do; the next move asks again
	}
}

func (p *originalPlayer) drop(at grid.ChunkPos) {
	if l := p.links[at]; l != nil && l.conn != nil {
		l.conn.close()
	}
	delete(p.links, at)
	p.ground.forget(at)
}

func (p *originalPlayer) edit(now time.Time) error {
	if p.pending != nil && now.Sub(p.pending.at) > p.Timeout {
		p.giveUp()
	}
	if p.since.IsZero() || !p.astray.IsZero() || p.pending != nil {
		return nil
	}
	pos, block, ok := p.build.next(p.walk.pose, p.reach, p.ground)
	if !ok || pos.Y >= wire.SlabHeight {
		p.build.placed = nil
		return nil
	}
	p.pending = &sentEdit{at: time.Now(), pos: pos, block: block}
	p.meter.edited()
	for at, l := range p.links { // to all its chunks: the one that holds the block applies it
		if l.conn == nil {
			continue
		}
		if err := p.send(at, wire.BlockWrite{Player: p.name, Pos: pos, Block: uint16(block)}); err != nil {
			return err
		}
	}
	return nil
}

// giveUp counts an edit that the player has not seen, and does not wait for any more. The protocol answers no edit: it may
// have been refused, or changed again by somebody else before the chunk was sent.
func (p *originalPlayer) giveUp() {
	if p.pending != nil {
		p.meter.unanswered(1)
		p.pending = nil
	}
}

// answered takes new contents of a chunk for the answer to an edit in it, if the edit is there.
func (p *originalPlayer) answered(e event) {
	if p.pending == nil || p.pending.pos.Chunk() != e.chunk {
		return
	}
	if b, known := p.ground.block(p.pending.pos); known && b == p.pending.block {
		p.meter.acknowledged(e.at.Sub(p.pending.at), "")
		p.pending = nil
	}
}

// leave says goodbye, so that the world remembers where the player stood.
func (p *originalPlayer) leave() error {
	if p.since.IsZero() || !p.astray.IsZero() {
		return nil
	}
	return p.send(p.here, wire.PlayerDeregister{Player: p.name, Chunk: p.here})
}

func (p *originalPlayer) register(at grid.ChunkPos) error {
	return p.send(at, wire.PlayerRegister{Player: p.name, Chunk: at})
}

func (p *originalPlayer) tellPlace(now time.Time) error {
	err := p.send(p.here, wire.PlayerMove{
		Player: p.name, X: p.walk.pose.X, Y: p.walk.pose.Y, Z: p.walk.pose.Z,
		Yaw: wire.OriginalYaw(p.walk.pose.Yaw), HasYaw: true,
	})
	if err == nil {
		p.mark.write(p.walk.pose, now)
	}
	return err
}

// send sends to a chunk, if the player is connected to it.
func (p *originalPlayer) send(at grid.ChunkPos, packet wire.Packet) error {
	l := p.links[at]
	if l == nil || l.conn == nil {
		return &failure{"not connected", fmt.Sprintf("no connection to chunk %v", at)}
	}
	line, err := wire.AppendPacket(nil, packet)
	if err != nil {
		return err
	}
	return l.conn.send(nameOf(packet), line)
}

func (p *originalPlayer) tell(ctx context.Context, e event) bool {
	select {
	case p.events <- e:
		return true
	case <-ctx.Done():
		return false
	}
}

func abs(v int32) int32 { return max(v, -v) }
