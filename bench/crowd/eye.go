package crowd

import (
	"math"
	"time"

	"github.com/voxelpopuli/voxeld/player"
	"github.com/voxelpopuli/voxeld/wire"
)

// eye is the state of a sample.
type eye struct {
	scene    wire.Scene
	received []byte // not yet decoded
	shown    map[string]wire.Pose
	last     time.Time // the last frame with moves
	bit      uint64    // of step.received
	seen     uint64    // avatars so far, to choose those whose delay is measured
}

func newEye(sample int) *eye { return &eye{shown: make(map[string]wire.Pose), bit: 1 << sample} }

const (
	// oneIn is the number of sightings of which one is measured for its delay.
	oneIn = 8
	// judged is the number of players that a sample checks each time.
	judged = 32
	// sameSpot is the largest distance, in blocks, between a shown pose and the sent one: the wire quantises poses.
	// It is less than half a step of any walk.
	sameSpot = .1
)

// watch reads and decodes what a sample received. The crowd's lock is held.
func (c *Crowd) watch(p *walker) {
	n, ok := c.read(p)
	if !ok {
		return
	}
	now := time.Now()
	e := p.eye
	e.received = append(e.received, c.buffer[:n]...)
	rest := e.received
	for {
		message, left, err := c.tongue.cut(rest)
		if err != nil {
			c.lose(p, err)
			return
		}
		if message == nil {
			break
		}
		rest = left
		frame, err := c.tongue.look(&e.scene, message, func(id string, pose wire.Pose) { c.sight(p, id, pose, now) })
		if err != nil {
			c.lose(p, err)
			return
		}
		if frame {
			c.mu.Frames++
			if !e.last.IsZero() {
				c.mu.Gap.Add(now.Sub(e.last).Seconds())
			}
			e.last = now
		}
	}
	e.received = append(e.received[:0], rest...)
}

// sight records where a sample is shown a player, and for some sightings their delay.
func (c *Crowd) sight(p *walker, id string, pose wire.Pose, now time.Time) {
	e := p.eye
	e.shown[id] = pose
	if c.o.Original != nil {
		c.receive(p, id, pose, now)
		return
	}
	e.seen++
	if e.seen%oneIn != 0 {
		return
	}
	who := c.known[id]
	if who == nil || who == p {
		return
	}
	if sent, ok := who.trail.find(pose); ok {
		c.mu.Delay[ringOf(apart(p.body.pose, pose))].Add(now.Sub(sent).Seconds())
	}
}

// find returns the time at which the player was last near that place.
func (t *trail) find(pose wire.Pose) (at time.Time, ok bool) {
	best := sameSpot
	for i := range t.n {
		s := &t.at[(t.next-1-i+2*len(t.at))%len(t.at)]
		if d := apart(s.pose, pose); d < best {
			best, at, ok = d, s.at, true
		}
	}
	return at, ok
}

// judge compares where a sample is shown some players with where they really are now. Its times are independent of
// when frames arrive. The crowd's lock is held.
func (c *Crowd) judge(p *walker) {
	now := p.eye.shown
	if c.o.Original == nil && !p.eye.last.IsZero() { // session clients extrapolate avatars by their velocity
		now = make(map[string]wire.Pose, len(now))
		ticks := time.Since(p.eye.last).Seconds() / .05
		p.eye.scene.Each(ticks, func(id player.ID, pose wire.Pose) { now[id.String()] = pose })
	}
	for range min(judged, len(c.all)) {
		who := c.all[c.rng.IntN(len(c.all))]
		if who == p || who.trail.n == 0 || who.fd < 0 {
			continue
		}
		real := who.trail.at[(who.trail.next-1+len(who.trail.at))%len(who.trail.at)].pose
		ring := ringOf(apart(p.body.pose, real))
		c.mu.Looks[ring]++
		shown, ok := now[who.id]
		if !ok {
			c.mu.Unseen[ring]++
			continue
		}
		c.mu.Error[ring].Add(apart(shown, real))
	}
}

func apart(a, b wire.Pose) float64 {
	dx, dy, dz := a.X-b.X, a.Y-b.Y, a.Z-b.Z
	return math.Sqrt(dx*dx + dy*dy + dz*dz)
}
