package gameserver

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/voxelpopuli/voxeld/motion"
	"github.com/voxelpopuli/voxeld/overlay"
	"github.com/voxelpopuli/voxeld/wire/sessionmsg"
	"github.com/voxelpopuli/voxeld/world"
)

// streams connect a gateway of a test with the others; cut ones cannot be reached.
type streams struct {
	self string
	all  map[string]*Gateway
}

func (s streams) Open(ctx context.Context, peer, protocol string) (io.ReadWriteCloser, error) {
	g := s.all[peer]
	if g == nil || protocol != OverlayProtocol {
		return nil, errors.New("nobody there")
	}
	here, there := net.Pipe()
	go func() {
		defer there.Close()
		g.ServeOverlay(ctx, s.self, there)
	}()
	return here, nil
}

// peerID returns an id of the form of libp2p's.
func peerID(i int) string { return fmt.Sprintf("peerThisNode%c", 'A'+i) }

func newOverlayCluster(t *testing.T, kind string, gateways, people int) *cluster {
	v := &cluster{t: t, lands: newLands()}
	ways := make(map[string]*Gateway)
	for i := range gateways {
		r := newHarness(t, func(o *Options) {
			o.Regions, o.Overlay, o.Streams, o.Peer = v.lands, kind, streams{peerID(i), ways}, peerID(i)
		})
		r.lands = v.lands
		ways[peerID(i)] = r.g
		v.rigs = append(v.rigs, r)
	}
	for i := range people {
		name := fmt.Sprint("p", i)
		c := v.rigs[i%gateways].join(name, 1)
		v.people, v.names = append(v.people, c), append(v.names, name)
	}
	pass(time.Second)
	return v
}

// seenAt returns where a client sees a player.
func (c *client) seenAt(name string) (at motion.Pose, sees bool) {
	c.look(func() {
		a, known := c.mu.avatars[guestID(name).String()]
		at, sees = a.Pose, known
	})
	return at, sees
}

func (v *cluster) wantSeen(what, name string, x, z float64) {
	v.t.Helper()
	for i, c := range v.people {
		if v.names[i] == name {
			continue
		}
		if at, sees := c.seenAt(name); !sees || math.Hypot(at.X-x, at.Z-z) > .3 {
			v.t.Errorf("%s: %s sees %s at %.2f %.2f (%v), want %.2f %.2f", what, v.names[i], name, at.X, at.Z, sees, x, z)
		}
	}
}

// Movement is seen under each overlay, within a chunk, over borders of chunks and regions; and without leaders under those that
// do not need them.
func TestOverlays(t *testing.T) {
	for _, kind := range Overlays {
		t.Run(kind, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				v := newOverlayCluster(t, kind, 3, 5)
				ann := v.people[0]
				walk := func(what string, from, to float64) {
					steps := math.Ceil(math.Abs(to-from) / .4)
					for i := range int(steps) {
						ann.goTo(from+(to-from)*float64(i+1)/steps, 25, .5)
						pass(100 * time.Millisecond)
					}
					pass(700 * time.Millisecond)
					v.wantSeen(what, "p0", to, .5)
				}
				walk("in a chunk", .5, 6.5)
				walk("over borders", 6.5, -5.5)
				if kind == OverlayRelay {
					if n := valueOf(t, v.rigs[0].g.metrics.packetsOut); n > 0 {
						t.Errorf("%v packets under relay", n)
					}
					return
				}
				out := valueOf(t, v.rigs[0].g.metrics.packetsOut)
				pass(time.Second)
				if out = valueOf(t, v.rigs[0].g.metrics.packetsOut) - out; out < 36 || out > 42 {
					t.Errorf("%v packets to two gateways in a second of 20 rounds", out)
				}
				v.lands.down(true)
				pass(100 * time.Millisecond)
				walk("without leaders", -5.5, -9.5)
				walk("without leaders over borders", -9.5, 3.5)
				v.lands.down(false)
				pass(10 * time.Second)
				v.wantSeen("with leaders again", "p0", 3.5, .5)
				walk("with leaders again", 3.5, -2.5)
				ann.conn.Close()
				pass(5 * time.Second)
				if at, sees := v.people[1].seenAt("p0"); sees {
					t.Errorf("who has left is still seen at %v", at)
				}
				if refused := valueOf(t, v.rigs[1].g.metrics.p2pRefused); refused != 0 {
					t.Errorf("%v updates refused", refused)
				}
			})
		})
	}
}

// The precision of poses in the overlay is that of sessions.
func TestOverlayPoses(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		far := rapid.Float64Range(-p2pReach, p2pReach)
		p := motion.Pose{
			X: far.Draw(t, "x"), Y: rapid.Float64Range(motion.MinY, motion.MaxY).Draw(t, "y"), Z: far.Draw(t, "z"),
			Yaw: rapid.Float32Range(-10, 10).Draw(t, "yaw"), Pitch: rapid.Float32Range(-1.5, 1.5).Draw(t, "pitch"),
		}
		u := overlay.Update{Origin: 1, Round: 7, At: overlay.Point{X: p.X, Z: p.Z}, Body: bodyOf(p)}
		payload, err := overlay.ReadPayload(overlay.AppendPayload(nil, 1, &overlay.Position{Update: u}), 1, overlay.Reference{})
		if err != nil {
			t.Fatal(err)
		}
		got := poseOf(payload.(*overlay.Position).Update)
		want := sessionmsg.PlaceOf(world.ChunkOf(p), p).Pose(world.ChunkOf(p))
		if math.Abs(got.X-p.X) > halfUnit || math.Abs(got.Z-p.Z) > halfUnit || got.Y != want.Y || got.Yaw != want.Yaw || got.Pitch != want.Pitch {
			t.Errorf("%+v came as %+v", p, got)
		}
	})
}

// Updates that are old, repeated, or too far away for a player's speed are not shown; invalid packets end their stream.
func TestOverlayRefuses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := newOverlayCluster(t, OverlayPSense, 2, 2)
		d := v.rigs[1].g.p2p
		id, to := numberOf(guestID("p0")), numberOf(guestID("p1"))
		needsUpdate := func(x float64, rounds uint32) {
			t.Helper()
			p := motion.Pose{X: x, Y: 25, Z: .5}
			u := overlay.Update{Origin: id, Round: roundOf(time.Now()) + rounds, At: overlay.Point{X: x, Z: .5}, Body: bodyOf(p)}
			packet := overlay.AppendPacket(nil, []overlay.Message{{From: id, To: to, Payload: &overlay.Position{Update: u}}})
			places, err := d.receive("somebody", packet)
			if err != nil {
				t.Error(err)
			}
			d.received <- peerPlaces{"somebody", places}
			pass(3 * round / 2)
		}
		needsUpdate(90, 2)
		if n := valueOf(t, v.rigs[1].g.metrics.p2pRefused); n == 0 {
			t.Error("nothing was refused")
		}
		v.wantSeen("after a leap", "p0", .5, .5)
		needsUpdate(3, 0x7fffffff)
		needsUpdate(3, 0x80000000)
		v.wantSeen("from another time", "p0", .5, .5)
		if _, err := d.receive("somebody", []byte{1, 2, 3}); err == nil {
			t.Error("rubbish was taken for a packet")
		}
		pass(5 * time.Second)
		v.wantSeen("later", "p0", .5, .5)
	})
}

// Slow regions, leaders that come and go, players who walk to and fro over borders: in the end everybody sees everybody where
// they are, once, and nobody else.
func TestOverlayAndRegionsAgree(t *testing.T) {
	for _, kind := range []string{OverlayPSense, OverlayAreacast} {
		for seed := range uint64(3) {
			t.Run(fmt.Sprint(kind, seed), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					v := newOverlayCluster(t, kind, 3, 6)
					rng := rand.New(rand.NewPCG(seed, 2))
					v.lands.slowBy(seed, 400*time.Millisecond)
					at := make([]motion.Pose, len(v.people))
					to := make([]motion.Pose, len(v.people))
					for i := range at {
						at[i] = motion.Pose{X: .5, Y: 25, Z: .5}
					}
					for n := range 300 {
						for i, c := range v.people {
							if rng.IntN(20) == 0 {
								to[i] = motion.Pose{X: rng.Float64()*40 - 20, Z: rng.Float64()*40 - 20}
							}
							dx, dz := to[i].X-at[i].X, to[i].Z-at[i].Z
							if way := math.Hypot(dx, dz); way > .5 {
								at[i].X, at[i].Z = at[i].X+dx/way*.4, at[i].Z+dz/way*.4
								c.goTo(at[i].X, 25, at[i].Z)
							}
						}
						if n%100 == 50 {
							v.lands.down(true)
						}
						if n%100 == 80 {
							v.lands.down(false)
						}
						pass(100 * time.Millisecond)
					}
					pass(8 * time.Second)
					for i, name := range v.names {
						if n := v.people[i].mu.corrections; n > 0 {
							t.Fatalf("%s was put back %d times", name, n)
						}
						v.wantSeen("at rest", name, at[i].X, at[i].Z)
						if n := len(v.people[i].mu.avatars); n > len(v.people) {
							t.Errorf("%s sees %d avatars", name, n)
						}
						v.people[i].sees(v.lands, 1)
					}
				})
			})
		}
	}
}

// The place of a player when a round begins is shown by another gateway at once: it waits for that round and for nothing else.
// The moves come at all phases of a round, the last ones when machines have chosen recipients already.
func TestOverlaySendsWithTheRound(t *testing.T) {
	for _, kind := range []string{OverlayPSense, OverlayAreacast} {
		t.Run(kind, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				v := newOverlayCluster(t, kind, 3, 6)
				pass(3 * time.Second)
				for i := range 25 {
					pass(untilRound(time.Now()) + time.Duration(i)*round/25 + round/100)
					x := .5 + float64(i*i%7) // no prediction leads there
					v.people[0].goTo(x, 25, .5)
					pass(untilRound(time.Now()) + round/50)
					v.wantSeen(fmt.Sprint("move ", i), "p0", x, .5)
				}
			})
		})
	}
}

// A round whose packets are late is shown when they have arrived, however soon after the previous frame that is.
func TestLateRoundsAreShownAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := newOverlayCluster(t, OverlayPSense, 2, 2)
		pass(3 * time.Second)
		d := v.rigs[1].g.p2p
		for i, late := range []time.Duration{12, 14, 16, 18, 19} {
			pass(untilRound(time.Now()) + time.Millisecond)
			d.received <- peerPlaces{peer: "somebody"} // so the next round waits for this gateway
			pass(untilRound(time.Now()) + late*time.Millisecond)
			x := 1 + float64(i)/2
			u := overlay.Update{Origin: numberOf(guestID("p0")), Round: roundOf(time.Now()) + 1, At: overlay.Point{X: x, Z: .5}, Body: bodyOf(motion.Pose{X: x, Y: 25, Z: .5})}
			packet := overlay.AppendPacket(nil, []overlay.Message{{From: u.Origin, To: numberOf(guestID("p1")), Payload: &overlay.Position{Update: u}}})
			places, err := d.receive("somebody", packet)
			if err != nil {
				t.Fatal(err)
			}
			d.received <- peerPlaces{"somebody", places}
			pass(time.Millisecond)
			v.wantSeen(fmt.Sprintf("late by %d ms", late), "p0", x, .5)
			pass(time.Second)
		}
	})
}

func TestGatheringWaitsForWhoSentLastTime(t *testing.T) {
	for _, test := range []struct {
		last map[string]uint32
		want bool
	}{
		{nil, true},
		{map[string]uint32{"a": 10, "b": 10}, true},
		{map[string]uint32{"a": 10, "b": 9}, false},
		{map[string]uint32{"a": 10, "b": 8}, true}, // b has nothing to send any more, or is gone
		{map[string]uint32{"a": 11}, true},         // the clock of a is ahead
	} {
		n := roundPackets{round: 10, last: test.last}
		if got := n.complete(); got != test.want {
			t.Errorf("with %v it is complete: %v", test.last, got)
		}
		if _, there := n.last["b"]; there && test.last["b"] == 8 {
			t.Error("who was silent for a round is waited for again")
		}
	}
}
