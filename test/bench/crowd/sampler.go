package crowd

import (
	"math"
	"time"

	"github.com/voxelpopuli/voxeld/motion"
	"github.com/voxelpopuli/voxeld/player"
	"github.com/voxelpopuli/voxeld/wire/sessionmsg"
)

// sampler is the state of a sample.
type sampler struct {
	scene    sessionmsg.AvatarDecoder
	received inbound
	shown    map[string]motion.Pose
	last     time.Time // the last frame with moves
	seen     uint64    // avatars so far, to choose those whose delay is measured
}

func newSampler() *sampler { return &sampler{shown: make(map[string]motion.Pose)} }

const (
	// delayEvery is the number of sightings of which one is measured for its delay.
	delayEvery = 8
	// errorChecks is the number of players that a sample checks each time.
	errorChecks = 32
	// samePlace is the largest distance, in blocks, between a shown pose and the sent one: the wire quantises poses.
	// It is less than half a step of any walk.
	samePlace = .1
)

// readSample reads and decodes what a sample received. The crowd's lock is held.
func (c *Crowd) readSample(p *client) {
	n, ok := c.read(p)
	if !ok {
		return
	}
	now := time.Now()
	e := p.sampler
	err := e.received.each(c.carrier, c.buffer[:n], func(message []byte) error {
		frame, err := c.protocol.decode(&e.scene, message, func(id string, pose motion.Pose) { c.recordSighting(p, id, pose, now) })
		if frame {
			c.mu.Frames++
			if !e.last.IsZero() {
				c.mu.Gaps.Add(now.Sub(e.last).Seconds())
			}
			e.last = now
		}
		return err
	})
	if err != nil {
		c.remove(p, err)
	}
}

// recordSighting records where a sample is shown a player, and for some sightings their delay.
func (c *Crowd) recordSighting(p *client, id string, pose motion.Pose, now time.Time) {
	e := p.sampler
	e.shown[id] = pose
	e.seen++
	if e.seen%delayEvery != 0 {
		return
	}
	who := c.known[id]
	if who == nil || who == p {
		return
	}
	if sent, ok := who.history.find(pose); ok && distance(p.mover.pose, pose) <= nearby {
		c.mu.Delay.Add(now.Sub(sent).Seconds())
	}
}

// find returns the time at which the player was last near that place.
func (t *moveHistory) find(pose motion.Pose) (at time.Time, ok bool) {
	best := samePlace
	for i := range t.n {
		s := &t.at[(t.next-1-i+2*len(t.at))%len(t.at)]
		if d := distance(s.pose, pose); d < best {
			best, at, ok = d, s.at, true
		}
	}
	return at, ok
}

// measureErrors compares where a sample is shown some players with where they really are now. Its times are independent
// of when frames arrive. The crowd's lock is held.
func (c *Crowd) measureErrors(p *client) {
	now := p.sampler.shown
	if !p.sampler.last.IsZero() { // clients extrapolate avatars by their velocity
		now = make(map[string]motion.Pose, len(now))
		ticks := time.Since(p.sampler.last).Seconds() / .05
		p.sampler.scene.Each(ticks, func(_ uint32, id player.ID, pose motion.Pose) { now[id.String()] = pose })
	}
	for range min(errorChecks, len(c.all)) {
		who := c.all[c.rng.IntN(len(c.all))]
		if who == p || who.history.n == 0 || who.fd < 0 {
			continue
		}
		real := who.history.last()
		if shown, ok := now[who.player]; ok && distance(p.mover.pose, real) <= nearby {
			c.mu.Error.Add(distance(shown, real))
		}
	}
}

func distance(a, b motion.Pose) float64 {
	dx, dy, dz := a.X-b.X, a.Y-b.Y, a.Z-b.Z
	return math.Sqrt(dx*dx + dy*dy + dz*dz)
}
