package gameserver

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/voxelpopuli/voxeld/gameserver/p2p"
	"github.com/voxelpopuli/voxeld/motion"
	"github.com/voxelpopuli/voxeld/overlay"
	"github.com/voxelpopuli/voxeld/region"
)

// streams connect a gateway of a test with the others; cut ones cannot be reached.
type streams struct {
	self string
	all  map[string]*Gateway
}

func (s streams) Open(ctx context.Context, peer, protocol string) (io.ReadWriteCloser, error) {
	g := s.all[peer]
	if g == nil || protocol != p2p.Protocol {
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
	byPeer := make(map[string]*Gateway)
	for i := range gateways {
		r := newHarness(t, func(o *Options) {
			o.Regions, o.Overlay, o.Streams, o.Peer = v.lands, kind, streams{peerID(i), byPeer}, peerID(i)
		})
		r.lands = v.lands
		byPeer[peerID(i)] = r.g
		v.gateways = append(v.gateways, r)
	}
	for i := range people {
		name := fmt.Sprint("p", i)
		c := v.gateways[i%gateways].join(name, 1)
		v.people, v.names = append(v.people, c), append(v.names, name)
	}
	pass(time.Second)
	return v
}

// round is the length of a round.
const round = region.TickEvery

// untilRound returns the time until the next round begins.
func untilRound() time.Duration { return round - time.Duration(time.Now().UnixNano())%round }

// neighbour connects with a gateway of the cluster, as another gateway would. Ended reports whether it has closed the
// stream.
func (v *cluster) neighbour(i int) (stream net.Conn, ended func() bool) {
	here, there := net.Pipe()
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer there.Close()
		v.gateways[i].g.ServeOverlay(v.t.Context(), "somebody", there)
	}()
	v.t.Cleanup(func() { here.Close() })
	return here, func() bool {
		select {
		case <-done:
			return true
		default:
			return false
		}
	}
}

// packetOf returns a packet with a player's place, as it is sent to another player's gateway, with its length.
func packetOf(name, to string, x float64, rounds uint32) []byte {
	u := p2p.UpdateOf(guestID(name), motion.Pose{X: x, Y: 25, Z: .5}, p2p.RoundOf(time.Now())+rounds)
	receiver := p2p.UpdateOf(guestID(to), motion.Pose{}, 0).Origin
	packet := overlay.AppendPacket(nil, []overlay.Message{{From: u.Origin, To: receiver, Payload: &overlay.Position{Update: u}}})
	return append(binary.BigEndian.AppendUint32(nil, uint32(len(packet))), packet...)
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

// Movement is seen under each overlay, within a chunk, over borders of chunks and regions; and without leaders under
// those that do not need them.
func TestOverlays(t *testing.T) {
	for _, kind := range p2p.Overlays {
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
				if kind == p2p.Relay {
					if n := counted(t, v.gateways[0].g, "voxeld_overlay_packets_total", "out"); n > 0 {
						t.Errorf("%v packets under relay", n)
					}
					return
				}
				out := counted(t, v.gateways[0].g, "voxeld_overlay_packets_total", "out")
				pass(time.Second)
				if out = counted(t, v.gateways[0].g, "voxeld_overlay_packets_total", "out") - out; out < 36 || out > 42 {
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
				if refused := counted(t, v.gateways[1].g, "voxeld_overlay_refused_total"); refused != 0 {
					t.Errorf("%v updates refused", refused)
				}
			})
		})
	}
}

// Updates that are old, repeated, or too far away for a player's speed are not shown; invalid packets end their stream.
func TestOverlayRefuses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := newOverlayCluster(t, p2p.PSense, 2, 2)
		stream, _ := v.neighbour(1)
		needsUpdate := func(x float64, rounds uint32) {
			t.Helper()
			if _, err := stream.Write(packetOf("p0", "p1", x, rounds)); err != nil {
				t.Error(err)
			}
			pass(3 * round / 2)
		}
		needsUpdate(90, 2)
		if n := counted(t, v.gateways[1].g, "voxeld_overlay_refused_total"); n == 0 {
			t.Error("nothing was refused")
		}
		v.wantSeen("after a leap", "p0", .5, .5)
		needsUpdate(3, 0x7fffffff)
		needsUpdate(3, 0x80000000)
		v.wantSeen("from another time", "p0", .5, .5)
		stream, ended := v.neighbour(1)
		if _, err := stream.Write([]byte{0, 0, 0, 3, 1, 2, 3}); err != nil {
			t.Error(err)
		}
		pass(time.Millisecond)
		if !ended() {
			t.Error("rubbish was taken for a packet")
		}
		pass(5 * time.Second)
		v.wantSeen("later", "p0", .5, .5)
	})
}

// Slow regions, leaders that come and go, players who walk to and fro over borders: in the end everybody sees everybody
// where they are, once, and nobody else.
func TestOverlayAndRegionsAgree(t *testing.T) {
	for _, kind := range []string{p2p.PSense, p2p.Areacast} {
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
							if distance := math.Hypot(dx, dz); distance > .5 {
								at[i].X, at[i].Z = at[i].X+dx/distance*.4, at[i].Z+dz/distance*.4
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

// The place of a player when a round begins is shown by another gateway at once: it waits for that round and for
// nothing else. The moves come at all phases of a round, the last ones when machines have chosen recipients already.
func TestOverlaySendsWithTheRound(t *testing.T) {
	for _, kind := range []string{p2p.PSense, p2p.Areacast} {
		t.Run(kind, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				v := newOverlayCluster(t, kind, 3, 6)
				pass(3 * time.Second)
				for i := range 25 {
					pass(untilRound() + time.Duration(i)*round/25 + round/100)
					x := .5 + float64(i*i%7) // no prediction leads there
					v.people[0].goTo(x, 25, .5)
					pass(untilRound() + round/50)
					v.wantSeen(fmt.Sprint("move ", i), "p0", x, .5)
				}
			})
		})
	}
}

// A round whose packets are late is shown when they have arrived, however soon after the previous frame that is.
func TestLateRoundsAreShownAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := newOverlayCluster(t, p2p.PSense, 2, 2)
		pass(3 * time.Second)
		stream, _ := v.neighbour(1)
		send := func(x float64) {
			if _, err := stream.Write(packetOf("p0", "p1", x, 1)); err != nil {
				t.Fatal(err)
			}
		}
		for i, late := range []time.Duration{12, 14, 16, 18, 19} {
			pass(untilRound() + time.Millisecond)
			send(.5 + float64(i)/2) // so the next round waits for this gateway
			pass(untilRound() + late*time.Millisecond)
			x := 1 + float64(i)/2
			send(x)
			pass(time.Millisecond)
			v.wantSeen(fmt.Sprintf("late by %d ms", late), "p0", x, .5)
			pass(time.Second)
		}
	})
}
