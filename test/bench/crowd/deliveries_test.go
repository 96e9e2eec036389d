package crowd

import (
	"math"
	"testing"
	"time"

	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/motion"
	"github.com/voxelpopuli/voxeld/wire/legacymsg"
)

// at returns a position on the grid of the original protocol, i steps along X.
func at(i int) motion.Pose {
	return motion.Pose{X: float64(i) * originalGrain, Y: 20, Z: -3.5, Yaw: .25}
}

func TestReceive(t *testing.T) {
	const a, b = 1 << 0, 1 << 3 // samples
	type received struct {
		sample uint64
		pose   motion.Pose
		want   receipt
		sent   int // the move, if it is delivered
	}
	turned := at(2)
	turned.Yaw = 1
	beside := at(2)
	beside.Z += originalGrain / 2
	for _, c := range []struct {
		name  string
		moves []int // positions sent, in order
		in    []received
	}{
		{"nothing sent", nil, []received{{a, at(1), neverSent, 0}}},
		{"each once", []int{1, 2, 3}, []received{{a, at(1), delivered, 0}, {a, at(2), delivered, 1}, {a, at(3), delivered, 2}}},
		{"one left out", []int{1, 2, 3}, []received{{a, at(1), delivered, 0}, {a, at(3), delivered, 2}}},
		{"twice", []int{1, 2}, []received{{a, at(2), delivered, 1}, {a, at(2), repeated, 0}}},
		{"to two samples", []int{1, 2}, []received{{a, at(2), delivered, 1}, {b, at(2), delivered, 1}, {b, at(2), repeated, 0}}},
		{"back again", []int{1, 2, 1}, []received{{a, at(1), delivered, 2}, {a, at(1), delivered, 0}, {a, at(1), repeated, 0}}},
		{"another yaw", []int{1, 2}, []received{{a, turned, delivered, 1}}},
		{"between two places", []int{1, 2}, []received{{a, beside, neverSent, 0}}},
	} {
		began := time.Unix(1000, 0)
		history := newMoveHistory(8)
		for i, m := range c.moves {
			history.add(at(m), began.Add(time.Duration(i)*time.Second))
		}
		for i, in := range c.in {
			r, sent := history.receive(in.pose, in.sample)
			if r != in.want || r == delivered && sent.Sub(began) != time.Duration(in.sent)*time.Second {
				t.Errorf("%s: line %d is %d, sent %v; want %d, move %d", c.name, i, r, sent.Sub(began), in.want, in.sent)
			}
		}
	}
}

// A full history drops its oldest moves first.
func TestReceiveFromFullTrail(t *testing.T) {
	history := newMoveHistory(8)
	for i := range 20 {
		history.add(at(i), time.Unix(int64(i), 0))
	}
	for i := range 20 {
		want := delivered
		if i < 12 {
			want = neverSent
		}
		if r, _ := history.receive(at(i), 1); r != want {
			t.Errorf("move %d is %d, want %d", i, r, want)
		}
	}
}

// lineOf returns a PLAYER_MOVE as a server relays it.
func lineOf(t *testing.T, name string, p motion.Pose) []byte {
	t.Helper()
	line, err := legacymsg.AppendPacket(nil, legacymsg.PlayerMove{Player: name, X: p.X, Y: p.Y, Z: p.Z, Yaw: legacymsg.OriginalYaw(p.Yaw), HasYaw: true})
	if err != nil {
		t.Fatal(err)
	}
	return line
}

// Ada is a sample. Ben sends three moves and Cid two; the test counts what Ada receives of them.
func TestDeliveries(t *testing.T) {
	for _, c := range []struct {
		name                string
		lines               func(line func(name string, p motion.Pose))
		exact, in, inexact  uint64
		delivered, notExact float64
	}{
		{"nothing", func(func(string, motion.Pose)) {}, 0, 0, 0, 0, math.NaN()},
		{"all", func(line func(string, motion.Pose)) {
			for i := range 3 {
				line("ben", at(i))
			}
			line("cid", at(10))
			line("cid", at(11))
		}, 5, 5, 0, 1, 0},
		{"some, one of them twice", func(line func(string, motion.Pose)) {
			line("ben", at(1))
			line("ben", at(1))
			line("cid", at(11))
		}, 2, 3, 0, .4, 0},
		{"a prediction, a position of another player, and an unknown player", func(line func(string, motion.Pose)) {
			line("ben", at(0))
			line("ben", at(5))
			line("cid", at(0))
			line("dee", at(0))
		}, 1, 4, 3, .2, .75},
		{"their own", func(line func(string, motion.Pose)) { line("ada", at(30)) }, 0, 0, 0, 0, math.NaN()},
	} {
		t.Run(c.name, func(t *testing.T) {
			ada := &client{arrival: arrival{player: "ada"}, sampler: newSampler(0, originalCodec{}), history: newMoveHistory(8)}
			ben := &client{arrival: arrival{player: "ben"}, history: newMoveHistory(8)}
			cid := &client{arrival: arrival{player: "cid"}, history: newMoveHistory(8)}
			crowd := New(Options{Original: &grid.ChunkPos{}})
			for _, p := range []*client{ada, ben, cid} {
				crowd.known[p.player] = p
			}
			crowd.mu.Samples = 1
			for p, places := range map[*client][]int{ada: {30, 31}, ben: {0, 1, 2}, cid: {10, 11}} {
				for _, place := range places {
					p.history.add(at(place), time.Now())
					crowd.due(p)
				}
			}
			var sent []byte
			c.lines(func(name string, p motion.Pose) { sent = append(sent, lineOf(t, name, p)...) })
			sent = append(sent, `{"type":6,"args":[1],"player":""}`+"\n"...)
			frames := 0
			for len(sent) > 0 {
				message, rest, err := crowd.codec.split(sent)
				if err != nil || message == nil {
					t.Fatalf("cut %q: %q, %v", sent, message, err)
				}
				sent = rest
				frame, err := crowd.codec.decode(&ada.sampler.scene, message, func(id string, pose motion.Pose) { crowd.recordSighting(ada, id, pose, time.Now()) })
				if err != nil {
					t.Fatal(err)
				}
				if frame {
					frames++
				}
			}
			got := crowd.Counts().Deliveries
			if want := (Deliveries{Due: 5, Exact: c.exact, Received: c.in, Inexact: c.inexact}); got != want || frames != 1 {
				t.Errorf("counted %+v and %d frames, want %+v and 1", got, frames, want)
			}
			same := func(a, b float64) bool { return a == b || math.IsNaN(a) && math.IsNaN(b) }
			if !same(got.Delivered(), c.delivered) || !same(got.NotExact(), c.notExact) {
				t.Errorf("%v delivered, %v not exact; want %v, %v", got.Delivered(), got.NotExact(), c.delivered, c.notExact)
			}
			if rest := got.Since(Deliveries{Due: 1}); rest.Due != 4 || rest.Exact != got.Exact {
				t.Errorf("since one move was due: %+v", rest)
			}
		})
	}
}
