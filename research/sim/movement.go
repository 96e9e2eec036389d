package sim

import (
	"cmp"
	"math"
	"math/rand/v2"

	"github.com/voxelpopuli/voxeld/overlay"
)

// Body is a player's position in a round.
type Body struct {
	At       overlay.Point
	Velocity overlay.Point // blocks a round
	Here     bool          // false: not in the game (yet, or any more)
}

// Movement generates the players' movement.
type Movement interface {
	// Players returns the number of players.
	Players() int
	// Move writes everybody's position in the round into bodies, which has Players elements and holds the previous
	// round. Rounds come in order, from 0.
	Move(round int, bodies []Body)
}

// Field is the papers' game: a rectangle without obstacles in which everybody walks at one speed.
type Field struct {
	Players      int
	Width, Depth float64 // blocks
	Step         float64 // blocks a round; the papers do not state it. 0 is DefaultStep
	Turn         float64 // the share of rounds with a new direction; not in the papers. 0 is DefaultTurn
}

// Defaults for what the papers do not state. research/figures/overlays (psense-open.csv, areacast-open.csv) shows how
// much depends on them.
const (
	DefaultStep     = 5.0
	DefaultTurn     = 0.1
	DefaultHotspots = 10    // pSense §5.1; areacast does not state it
	DefaultReach    = 100.0 // radius around a hotspot within which its visitors walk, in blocks
	DefaultStay     = 50.0  // rounds at a hotspot, on average
)

func (f *Field) defaults() {
	f.Step, f.Turn = cmp.Or(f.Step, DefaultStep), cmp.Or(f.Turn, DefaultTurn)
}

func (f *Field) place(rng *rand.Rand) overlay.Point {
	return overlay.Point{X: rng.Float64() * f.Width, Z: rng.Float64() * f.Depth}
}

// direction returns one step in a random direction.
func (f *Field) direction(rng *rand.Rand) overlay.Point {
	a := rng.Float64() * 2 * math.Pi
	return overlay.Point{X: math.Cos(a) * f.Step, Z: math.Sin(a) * f.Step}
}

// walk moves a body by one step, turning it back at the edge of the field.
func (f *Field) walk(b *Body) {
	b.At = b.At.Add(b.Velocity)
	b.At.X, b.Velocity.X = bounce(b.At.X, b.Velocity.X, f.Width)
	b.At.Z, b.Velocity.Z = bounce(b.At.Z, b.Velocity.Z, f.Depth)
}

func bounce(at, v, most float64) (float64, float64) {
	if at < 0 {
		return min(-at, most), -v
	}
	if at > most {
		return max(2*most-at, 0), -v
	}
	return at, v
}

// Random is the papers' Random game: everybody walks in a random direction, and occasionally changes it.
type Random struct {
	field Field
	rng   *rand.Rand
}

// NewRandom places the players at random.
func NewRandom(f Field, seed uint64) *Random {
	f.defaults()
	return &Random{field: f, rng: rand.New(rand.NewPCG(seed, 0x52616e646f6d))}
}

// Players implements Movement.
func (g *Random) Players() int { return g.field.Players }

// Move implements Movement.
func (g *Random) Move(round int, bodies []Body) {
	for i := range bodies {
		b := &bodies[i]
		if round == 0 {
			*b = Body{At: g.field.place(g.rng), Velocity: g.field.direction(g.rng), Here: true}
			continue
		}
		if g.rng.Float64() < g.field.Turn {
			b.Velocity = g.field.direction(g.rng)
		}
		g.field.walk(b)
	}
}

// Hotspot is the papers' Hotspot game: everybody goes to a hotspot, walks there at random for a while, and then goes to
// another one.
type Hotspot struct {
	field    Field
	reach    float64
	stay     float64
	rng      *rand.Rand
	hotspots []overlay.Point
	players  []visitor
}

type visitor struct {
	hotspot int
	there   bool
	until   int // round of the departure
}

// HotspotOptions are the game's parameters. 0 is the default.
type HotspotOptions struct {
	Hotspots int     // number of hotspots
	Reach    float64 // radius of a hotspot, blocks
	Stay     float64 // average rounds at one; drawn uniformly between 0.5 and 1.5 times this
}

// NewHotspot places hotspots and players at random.
func NewHotspot(f Field, o HotspotOptions, seed uint64) *Hotspot {
	f.defaults()
	g := &Hotspot{field: f, reach: cmp.Or(o.Reach, DefaultReach), stay: cmp.Or(o.Stay, DefaultStay), rng: rand.New(rand.NewPCG(seed, 0x486f7473706f74)), players: make([]visitor, f.Players)}
	for range cmp.Or(o.Hotspots, DefaultHotspots) {
		g.hotspots = append(g.hotspots, f.place(g.rng))
	}
	return g
}

// Players implements Movement.
func (g *Hotspot) Players() int { return g.field.Players }

// Move implements Movement.
func (g *Hotspot) Move(round int, bodies []Body) {
	for i := range bodies {
		b, v := &bodies[i], &g.players[i]
		if round == 0 {
			*b = Body{At: g.field.place(g.rng), Here: true}
			v.hotspot = g.rng.IntN(len(g.hotspots))
		}
		if v.there && round >= v.until {
			v.there = false
			v.hotspot = g.rng.IntN(len(g.hotspots))
		}
		offset := g.hotspots[v.hotspot].Sub(b.At)
		dist := math.Hypot(offset.X, offset.Z)
		if !v.there && dist <= g.reach/2 {
			v.there = true
			v.until = round + int(g.stay*(.5+g.rng.Float64()))
			b.Velocity = g.field.direction(g.rng)
		}
		switch {
		case !v.there:
			b.Velocity = offset.Times(g.field.Step / dist)
		case dist > g.reach: // back towards the middle
			b.Velocity = offset.Times(g.field.Step / dist)
		case g.rng.Float64() < g.field.Turn:
			b.Velocity = g.field.direction(g.rng)
		}
		if round > 0 {
			g.field.walk(b)
		}
	}
}

// gameOf returns one of the papers' games, with 100 players on a square of 1,000 blocks unless the arguments say
// otherwise.
func gameOf(players int, side, step, turn float64, hotspot bool, o HotspotOptions, seed uint64) Movement {
	side = cmp.Or(side, 1000)
	f := Field{Players: cmp.Or(players, 100), Width: side, Depth: side, Step: step, Turn: turn}
	if hotspot {
		return NewHotspot(f, o, seed)
	}
	return NewRandom(f, seed)
}
