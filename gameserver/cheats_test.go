package gameserver

import (
	"math"
	"math/rand/v2"
	"net"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/time/rate"

	"github.com/voxelpopuli/voxeld/gameserver/codec"
	"github.com/voxelpopuli/voxeld/gameserver/outbox"
	"github.com/voxelpopuli/voxeld/gameserver/players/playerstest"
	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/motion"
	"github.com/voxelpopuli/voxeld/player"
	"github.com/voxelpopuli/voxeld/terrain"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
	"github.com/voxelpopuli/voxeld/wire/sessionmsg"
)

// cheat is a move that must be refused with the reason.
type cheat struct {
	pose   motion.Pose
	reason string
}

// cheats generates moves for a player who stands on natural land.
type cheats struct {
	rng  *rand.Rand
	land *terrain.Generator
}

func (c cheats) next(at motion.Pose) cheat {
	p := at
	angle := 2 * math.Pi * c.rng.Float64()
	away := func(blocks float64) {
		p.X += blocks * math.Sin(angle)
		p.Z += blocks * math.Cos(angle)
	}
	switch c.rng.IntN(6) {
	case 0: // far away at once, in the air
		away(21 + 1000*c.rng.Float64())
		p.Y += 15
		return cheat{p, player.TooFast}
	case 1: // up into the sky
		p.Y += 21 + 100*c.rng.Float64()
		return cheat{p, player.TooFast}
	case 2: // out of the world
		p.Y = []float64{-65, -1e6, 500, 1e9}[c.rng.IntN(4)]
		return cheat{p, player.OutOfWorld}
	case 3: // nowhere
		bad := []float64{math.NaN(), math.Inf(1), math.Inf(-1)}[c.rng.IntN(3)]
		switch c.rng.IntN(4) {
		case 0:
			p.X = bad
		case 1:
			p.Y = bad
		case 2:
			p.Z = bad
		default:
			p.Yaw = float32(bad)
		}
		return cheat{p, player.NotFinite}
	case 4: // into the ground
		p.Y -= 1 + 10*c.rng.Float64()
		return cheat{p, insideBlock}
	default: // through the ground, to somewhere below
		away(10 * c.rng.Float64())
		p.Y = -2
		return cheat{p, insideBlock}
	}
}

func TestCheatingMovesAreRefused(t *testing.T) {
	land, err := terrain.New(terrain.Params{Seed: 7, Sections: 4, Version: terrain.Version})
	if err != nil {
		t.Fatal(err)
	}
	o := options(newLands(), playerstest.NewMemory(), playerstest.NewMemory())
	o.World.Sections, o.Terrain = 4, land
	g := newIdleGateway(o)
	feet := motion.Pose{}
	for x := int32(2 * 32); feet.Y <= float64(terrain.SeaLevel(4))+1; x++ { // on dry land
		feet = motion.Pose{X: float64(x) + .5, Y: float64(land.Surface(x, 80)), Z: 80.5}
	}
	s := &session{
		g: g, out: outbox.New(func() {}), body: nodemsg.Body{Player: guestID("eve"), Name: "eve"}, codec: codec.CBOR,
		subs: make(subscriptions), limits: actionLimits{move: rate.NewLimiter(rate.Inf, 1)},
		motion: player.NewMotion(g.rules, g.now(), feet.X, feet.Y, feet.Z),
	}
	if s.permissions, err = g.enforcer.Admit(s.body.Player, s.body.Name, nil, &net.TCPAddr{}, func(sessionmsg.FromServer) {}); err != nil {
		t.Fatal(err)
	}
	s.out.SetCodec(codec.CBOR)
	s.view.set(1, 0)
	for x := int32(1); x <= 3; x++ {
		for z := int32(1); z <= 3; z++ {
			at := grid.ChunkPos{X: x, Z: z}
			s.subs[at] = showChunk(g, at, s)
		}
	}
	s.bodySub = s.subs[grid.ChunkPos{X: 2, Z: 2}]
	discard(s.out)
	s.place.moveTo(feet)
	const moves = 100_000
	c := cheats{rng: rand.New(rand.NewPCG(3, 4)), land: land}
	var view corrected
	var desk outbox.Writer
	for i := range moves {
		before := s.place.pose()
		move := c.next(before)
		view.reason = ""
		if err := s.move(move.pose); err != nil {
			t.Fatal(err)
		}
		if s.place.pose() != before {
			t.Fatalf("move %d from %+v to %+v was allowed", i, before, move.pose)
		}
		if err := desk.WriteNext(s.out, &view); err != nil {
			t.Fatal(err)
		}
		if view.reason != move.reason {
			t.Fatalf("move %d from %+v to %+v was corrected for %q, want %q", i, before, move.pose, view.reason, move.reason)
		}
	}
	families, err := o.Registerer.(*prometheus.Registry).Gather()
	if err != nil {
		t.Fatal(err)
	}
	counted := 0.
	for _, family := range families {
		if family.GetName() == "voxeld_move_corrections_total" {
			for _, reason := range family.GetMetric() {
				counted += reason.GetCounter().GetValue()
			}
		}
	}
	if counted != moves {
		t.Errorf("%v corrections counted, want %d", counted, moves)
	}
}

// corrected records the corrections that a session is sent.
type corrected struct{ reason string }

func (c *corrected) Send(data []byte) error {
	m, err := sessionmsg.DecodeServerCBOR(data)
	if correction, ok := m.(sessionmsg.Correction); ok {
		c.reason = correction.Reason
	}
	return err
}

func (c *corrected) Flush() error { return nil }
