package crowd

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync"
	"time"

	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/motion"
	"github.com/voxelpopuli/voxeld/test/testkit/sessionclient"
	"github.com/voxelpopuli/voxeld/wire/sessionmsg"
)

// Probe is one player who measures how land arrives. It reads every message at once, on its own goroutine, and
// records when each chunk was requested.
type Probe struct {
	conn *sessionclient.Conn
	view int
	pose motion.Pose   // guarded by mu
	sky  float64       // height above all land
	done chan struct{} // closed when the reader has ended

	mu struct {
		sync.Mutex
		requested map[grid.ChunkPos]time.Time // not yet arrived
		loaded    map[grid.ChunkPos]bool      // ever arrived while in view
		loads     []Load
		last      time.Time // arrival of the newest chunk
		err       error     // of the reader
		changed   chan struct{}
	}
}

// Load is one chunk that arrived.
type Load struct {
	Chunk grid.ChunkPos
	Took  time.Duration // from the request to its last byte; 0 if it was not requested by itself
	Bytes int           // of its message
}

// StartProbe connects a probe to a server.
func StartProbe(ctx context.Context, target, name string, view int) (*Probe, error) {
	conn, err := sessionclient.Dial(ctx, target, sessionmsg.Join{Name: name, View: view, Encoding: sessionmsg.EncodingCBOR})
	if err != nil {
		return nil, fmt.Errorf("send probe: %w", err)
	}
	p := &Probe{conn: conn, view: view, done: make(chan struct{})}
	p.mu.requested, p.mu.loaded, p.mu.changed = make(map[grid.ChunkPos]time.Time), make(map[grid.ChunkPos]bool), make(chan struct{}, 1)
	defer context.AfterFunc(ctx, func() { conn.Close() })() //nolint:errcheck // the read reports it
	welcome, err := p.conn.Enter(func(m sessionclient.Message) error {
		if data, ok := m.FromServer.(sessionmsg.ChunkData); ok {
			p.mu.loaded[data.Chunk] = true // it arrived with the welcome
		}
		return nil
	})
	if err != nil {
		return nil, errors.Join(fmt.Errorf("send probe: %w", err), conn.Close())
	}
	p.pose, p.sky = welcome.Pose, float64(grid.ChunkSize*welcome.Sections)+overLand
	go func() { // awaited by Close
		defer close(p.done)
		err := p.read()
		p.mu.Lock()
		defer p.mu.Unlock()
		p.mu.err = err
	}()
	return p, nil
}

// Pose returns where the probe is.
func (p *Probe) Pose() motion.Pose {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.pose
}

// Close disconnects the probe.
func (p *Probe) Close() {
	p.conn.Close() //nolint:errcheck // the reader reports it
	<-p.done
}

func (p *Probe) read() error {
	for {
		m, err := p.conn.Read()
		if err != nil {
			return err
		}
		if data, ok := m.FromServer.(sessionmsg.ChunkData); ok {
			p.arrived(data.Chunk, m.At, m.Size)
		}
	}
}

func (p *Probe) arrived(at grid.ChunkPos, now time.Time, bytes int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	l := Load{Chunk: at, Bytes: bytes}
	if asked, ok := p.mu.requested[at]; ok {
		l.Took = now.Sub(asked)
		delete(p.mu.requested, at)
	}
	p.mu.loaded[at], p.mu.last = true, now
	p.mu.loads = append(p.mu.loads, l)
	select {
	case p.mu.changed <- struct{}{}:
	default:
	}
}

// Loads returns what has arrived since its last call.
func (p *Probe) Loads() []Load {
	p.mu.Lock()
	defer p.mu.Unlock()
	loads := p.mu.loads
	p.mu.loads = nil
	return loads
}

// Settle waits until all land in view has arrived, or nothing arrives for five seconds.
func (p *Probe) Settle(ctx context.Context) error {
	for {
		p.mu.Lock()
		missing, err := 0, p.mu.err
		middle := p.pose.Chunk()
		for x := -p.view; x <= p.view; x++ {
			for z := -p.view; z <= p.view; z++ {
				if !p.mu.loaded[grid.ChunkPos{X: middle.X + int32(x), Z: middle.Z + int32(z)}] {
					missing++
				}
			}
		}
		p.mu.Unlock()
		if missing == 0 || err != nil {
			return err
		}
		quiet := time.NewTimer(5 * time.Second)
		select {
		case <-ctx.Done():
			quiet.Stop()
			return ctx.Err()
		case <-p.mu.changed:
			quiet.Stop()
		case <-quiet.C:
			return fmt.Errorf("%d chunks did not arrive", missing)
		}
	}
}

// Fly moves above all land to (x, z), 20 moves a second. A move that crosses into another chunk also requests the
// chunks that come into view. Land that left the view may be requested again later.
func (p *Probe) Fly(ctx context.Context, x, z float64) error {
	b := mover{pose: p.pose, sky: p.sky, goalX: x, goalZ: z, placed: true, flying: true}
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for b.flying {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-p.done:
			return fmt.Errorf("fly: %w", p.failure())
		case <-tick.C:
		}
		before := b.pose.Chunk()
		b.travel(.05)
		if at := b.pose.Chunk(); at != before {
			p.recordRequest(at)
		}
		if _, err := p.conn.Send(sessionmsg.Move{Pose: b.pose}); err != nil {
			return fmt.Errorf("fly: %w", err)
		}
		p.mu.Lock()
		p.pose = b.pose
		p.mu.Unlock()
	}
	return nil
}

func (p *Probe) failure() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.mu.err
}

// recordRequest records that the land around a chunk is requested now. Land more than one chunk beyond the view has
// left it.
func (p *Probe) recordRequest(at grid.ChunkPos) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for pos := range p.mu.loaded {
		if max(math.Abs(float64(pos.X-at.X)), math.Abs(float64(pos.Z-at.Z))) > float64(p.view+1) {
			delete(p.mu.loaded, pos)
		}
	}
	now := time.Now()
	for x := -p.view; x <= p.view; x++ {
		for z := -p.view; z <= p.view; z++ {
			pos := grid.ChunkPos{X: at.X + int32(x), Z: at.Z + int32(z)}
			if _, waits := p.mu.requested[pos]; !p.mu.loaded[pos] && !waits {
				p.mu.requested[pos] = now
			}
		}
	}
}
