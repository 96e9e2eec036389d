package gameserver

import (
	"math"

	"golang.org/x/time/rate"

	"github.com/voxelpopuli/voxeld/chunk"
	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/player"
	"github.com/voxelpopuli/voxeld/wire"
)

// This file is what players do to one another: hits and gifts. The gateway of who does it checks it, by what it sees of the other
// one; from there on it goes the way of chat, and is shown in causal order with it.

const (
	// deedLeeway is how much farther than for blocks the other one may be, in blocks: he walks, and his place comes late.
	deedLeeway = 1
	// lookStep is how far apart the places are at which a line of sight is looked at, in blocks.
	lookStep = .1
)

// aims are the heights over the feet of the other one at one of which he must be seen, in blocks.
var aims = [...]float64{player.EyeHeight, bodyHeight / 2, .2}

// act does something to another player, or tells why not.
func (s *session) act(to string, d wire.Deed, pace *rate.Limiter) {
	denied := s.judgeDeed(to, &d, pace)
	if denied == "" && !s.utter(d.Words(), &d) {
		denied = wire.DeniedUnavailable
	}
	if denied != "" {
		s.g.metrics.denials.WithLabelValues(denied).Inc()
		s.out.send(wire.Denied{Deed: d.Kind.String(), Player: to, Error: denied})
	}
}

// judgeDeed tells why the player may not do it, and puts into the deed to whom it is done.
func (s *session) judgeDeed(to string, d *wire.Deed, pace *rate.Limiter) (denied string) {
	id, err := player.ParseID(to)
	switch {
	case !pace.Allow():
		return wire.DeniedRate
	case err != nil:
		return wire.DeniedUnknownPlayer
	case id == s.body.Player:
		return wire.DeniedSelf
	case d.Kind == wire.DeedGift && !d.Block.Known():
		return wire.DeniedUnknownBlock
	case d.Kind == wire.DeedGift && (d.Block == chunk.Air || !d.Block.Placeable()):
		return wire.DeniedNotPlaceable
	}
	name, pose, at, there := s.g.stage.meets(id)
	eyes := s.where()
	eyes.Y += player.EyeHeight
	switch {
	case !there || s.feeds[at] == nil:
		return wire.DeniedUnknownPlayer
	case gapToBody(eyes, pose) > s.g.rules.Reach+deedLeeway:
		return wire.DeniedOutOfReach
	case !s.discerns(eyes, pose):
		return wire.DeniedBehindBlock
	}
	d.To, d.ToName = id, name
	return ""
}

// meets gives who a player is, and where his avatar stands, as far as that is told here.
func (s *stage) meets(id player.ID) (name string, pose wire.Pose, at grid.ChunkPos, there bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	a := s.mu.actors[id]
	if a == nil || a.plot == nil {
		return "", pose, at, false
	}
	return a.name, a.place.Pose(a.plot.at), a.plot.at, true
}

// gapToBody is how far eyes are from the nearest point of a body with its feet there.
func gapToBody(eyes, feet wire.Pose) float64 {
	beyond := func(v, low, high float64) float64 { return max(low-v, 0, v-high) }
	const half = bodyWidth / 2
	return math.Hypot(
		math.Hypot(beyond(eyes.X, feet.X-half, feet.X+half), beyond(eyes.Z, feet.Z-half, feet.Z+half)),
		beyond(eyes.Y, feet.Y, feet.Y+bodyHeight))
}

// discerns tells whether some part of a body is to be seen: whether no solid block stands between, as far as is known here.
func (s *session) discerns(eyes, feet wire.Pose) bool {
	for _, height := range aims {
		if s.clear([3]float64{eyes.X, eyes.Y, eyes.Z}, [3]float64{feet.X, feet.Y + height, feet.Z}) {
			return true
		}
	}
	return false
}

// clear tells whether a line is free of solid blocks. Those at its ends do not count: eyes and bodies may have got into them.
func (s *session) clear(from, to [3]float64) bool {
	blockAt := func(part float64) grid.Pos {
		return grid.Pos{
			X: floor(from[0] + part*(to[0]-from[0])), Y: floor(from[1] + part*(to[1]-from[1])), Z: floor(from[2] + part*(to[2]-from[2])),
		}
	}
	first, last := blockAt(0), blockAt(1)
	steps := math.Ceil(distanceOf(from, to) / lookStep)
	looked := first
	for i := 1.; i < steps; i++ {
		pos := blockAt(i / steps)
		if pos == looked || pos == last {
			continue
		}
		if looked = pos; s.solid(pos) {
			return false
		}
	}
	return true
}
