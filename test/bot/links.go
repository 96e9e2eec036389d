package bot

import (
	"context"
	"errors"
	"fmt"
	"io"
	"syscall"
	"time"

	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/test/testkit/legacyclient"
	"github.com/voxelpopuli/voxeld/wire/legacymsg"
)

// This file holds an original player's connections to chunks, and what their ends mean.

// How the released client loads chunks (§3.3.3): it loads chunks within loadNear and drops chunks beyond loadFar.
const (
	loadNear  = 1 // 3×3
	loadFar   = 4 // 9×9
	maxQueued = 2 // chunks queued for the locator: few, so that the one under the player is found soon
)

// link is a chunk that the player is connected to or waits for.
type link struct {
	conn      *legacyclient.Conn // nil while not connected
	requested bool               // connected, or queued for the locator
	reset     time.Time          // when the server reset its connection; zero once there is another
}

// event is what another goroutine of the player reports about a chunk. Exactly one of the last three fields is set.
type event struct {
	chunk grid.ChunkPos
	at    time.Time
	from  *legacyclient.Conn // the connection that it is about; nil: it comes from search
	conn  *legacyclient.Conn // connected
	slab  []byte             // a line of CHUNK_DATA
	err   error              // not connected, or not any more
}

// search is the goroutine that finds chunks and connects to them.
func (p *originalPlayer) search(ctx context.Context, l *locator) {
	for at := range p.requests {
		c, err := l.connect(ctx, at)
		if !p.report(ctx, event{chunk: at, at: time.Now(), conn: c, err: err}) {
			return
		}
	}
}

// read is the goroutine of one link: it counts packets, measures delays and passes on the land.
func (p *originalPlayer) read(ctx context.Context, at grid.ChunkPos, c *legacyclient.Conn) {
	w := newProbeReader(p.allProbes, p.meter)
	for {
		line, err := c.ReadLine()
		now := time.Now()
		if err != nil {
			p.report(ctx, event{chunk: at, at: now, from: c, err: err})
			return
		}
		if legacyclient.IsChunkData(line) { // parsed only when a player needs to stand there
			p.meter.read("CHUNK_DATA", len(line)+1)
			if !p.report(ctx, event{chunk: at, at: now, from: c, slab: line}) {
				return
			}
			continue
		}
		packet, err := legacymsg.DecodePacket(line)
		if err != nil {
			p.report(ctx, event{chunk: at, at: now, from: c, err: err})
			return
		}
		p.meter.read(nameOf(packet), len(line)+1)
		if m, ok := packet.(legacymsg.PlayerMove); ok {
			w.observe(m.Player, m.X, m.Z, now)
		}
	}
}

func (p *originalPlayer) report(ctx context.Context, e event) bool {
	select {
	case p.events <- e:
		return true
	case <-ctx.Done():
		return false
	}
}

// handle handles an event of another goroutine of the player.
func (p *originalPlayer) handle(life context.Context, e event) error {
	l := p.links[e.chunk]
	if e.from != nil && (l == nil || l.conn != e.from) {
		return nil // a connection that was dropped
	}
	switch {
	case e.err != nil:
		return p.disconnected(e)
	case e.conn != nil:
		if l == nil || l.conn != nil { // dropped meanwhile, and perhaps requested again and connected
			_ = e.conn.Close()
			return nil
		}
		if !l.reset.IsZero() {
			p.meter.reconnected()
		}
		*l = link{conn: e.conn, requested: true}
		p.readers.Go(func() { p.read(life, e.chunk, e.conn) })
		return nil
	}
	p.ground.put(e.chunk, e.slab)
	p.answered(e)
	switch {
	case p.since.IsZero():
		return p.enter()
	case e.chunk == p.here && !p.stalledSince.IsZero():
		p.resume(e.at)
	}
	return nil
}

// disconnected does what the released client does when a chunk cannot be reached or its connection ends. After a reset
// it asks the dht again; until that chunk is connected, a player in it stands still. The released client reads an end
// without a reset as an endless empty read, and anything but an ok to its handshake ends its network thread: the player
// is lost.
func (p *originalPlayer) disconnected(e event) error {
	if e.from == nil {
		return e.err
	}
	switch endOf(e.err) {
	case endClosed:
		return &failure{"server closed a connection", fmt.Sprintf("chunk %v: %v: the released client would hang", e.chunk, e.err)}
	case endOther:
		return e.err
	case endReset:
	}
	p.drop(e.chunk)
	p.links[e.chunk] = &link{reset: e.at}
	if e.chunk == p.here && !p.since.IsZero() && p.stalledSince.IsZero() {
		p.stalledSince = e.at
	}
	return nil
}

// end is how a connection ended or failed to open, as far as the released client distinguishes it.
type end int

const (
	endOther  end = iota
	endClosed     // by FIN
	endReset      // by RST
)

func endOf(err error) end {
	switch {
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return endClosed
	case errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE):
		return endReset
	}
	return endOther
}

// load requests the missing chunks around the player and drops those that are far away (§3.3.3).
func (p *originalPlayer) load() {
	p.want(p.here)
	if p.Mode == Wander {
		for dx := int32(-loadNear); dx <= loadNear; dx++ {
			for dz := int32(-loadNear); dz <= loadNear; dz++ {
				p.want(grid.ChunkPos{X: p.here.X + dx, Z: p.here.Z + dz})
			}
		}
	}
	for c := range p.links {
		if abs(c.X-p.here.X) > loadFar || abs(c.Z-p.here.Z) > loadFar {
			p.drop(c)
		} else {
			p.want(c) // if it was reset
		}
	}
}

// want requests a chunk, unless it is connected or already requested.
func (p *originalPlayer) want(at grid.ChunkPos) {
	l := p.links[at]
	if !at.Valid() || l != nil && l.requested {
		return
	}
	select {
	case p.requests <- at:
		if l == nil {
			l = &link{}
			p.links[at] = l
		}
		l.requested = true
	default: // the queue is full; the next frame tries again
	}
}

func (p *originalPlayer) drop(at grid.ChunkPos) {
	if l := p.links[at]; l != nil && l.conn != nil {
		_ = l.conn.Close()
	}
	delete(p.links, at)
	p.ground.remove(at)
}

// send sends to a chunk, if the player is connected to it. The reader reports a broken connection.
func (p *originalPlayer) send(at grid.ChunkPos, packet legacymsg.Packet) error {
	l := p.links[at]
	if l == nil || l.conn == nil {
		return &failure{"not connected", fmt.Sprintf("no connection to chunk %v", at)}
	}
	size, err := l.conn.Send(packet)
	if err == nil {
		p.meter.wrote(nameOf(packet), size)
	} else if endOf(err) != endReset {
		return err
	}
	return nil
}

func abs(v int32) int32 { return max(v, -v) }
