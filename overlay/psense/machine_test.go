package psense

import (
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/voxelpopuli/voxeld/overlay"
)

func step(m overlay.Machine, round uint32, at overlay.Point, inbox ...overlay.Message) *overlay.Output {
	var out overlay.Output
	m.Step(&overlay.Input{Round: round, At: at, Inbox: inbox}, &out)
	return &out
}

func plainMachine(id overlay.ID, at overlay.Point, round uint32, known ...overlay.Update) *Machine {
	m := New(Paper(200), id, rand.New(rand.NewPCG(1, uint64(id))))
	m.round = round
	m.Introduce(known)
	step(m, round, at)
	return m
}

func positionsTo(out *overlay.Output, origin overlay.ID) (to []overlay.ID, lists [][]overlay.ID) {
	for _, m := range out.Messages {
		if p, ok := m.Payload.(*overlay.Position); ok && p.Update.Origin == origin {
			to = append(to, m.To)
			lists = append(lists, p.Receivers)
		}
	}
	return to, lists
}

// §3.5, figure 2(a): q knows p, and sees that the local node's update did not go there: "Thus, it forwards the position
// update to p".
func TestNearNodeIntroduces(t *testing.T) {
	local, p := overlay.Update{Origin: 1, Round: 10, At: overlay.Point{X: 0, Z: 0}}, overlay.Update{Origin: 2, Round: 10, At: overlay.Point{X: 150, Z: 0}}
	q := plainMachine(3, overlay.Point{X: 100, Z: 0}, 10, local, p)
	local.Round = 11
	got := &overlay.Position{Update: local, Hops: 1, Listed: true, Receivers: []overlay.ID{3}}
	out := step(q, 12, overlay.Point{X: 100, Z: 0}, overlay.Message{From: 1, To: 3, Payload: got})
	to, lists := positionsTo(out, 1)
	if !slices.Equal(to, []overlay.ID{2}) || !slices.Equal(lists[0], []overlay.ID{2, 3}) {
		t.Errorf("q forwards to %v with %v", to, lists)
	}
	// Not to nodes in the list, and not an update at the end of its lifetime.
	for _, not := range []*overlay.Position{
		{Update: overlay.Update{Origin: 1, Round: 12}, Hops: 1, Listed: true, Receivers: []overlay.ID{2, 3}},
		{Update: overlay.Update{Origin: 1, Round: 13}, Hops: DefaultLifetime, Listed: true, Receivers: []overlay.ID{3}},
		{Update: overlay.Update{Origin: 1, Round: 13}, Hops: 1, Listed: true, Receivers: []overlay.ID{3}}, // a duplicate
	} {
		out := step(q, not.Update.Round+1, overlay.Point{X: 100, Z: 0}, overlay.Message{From: 1, To: 3, Payload: not})
		if to, _ := positionsTo(out, 1); len(to) > 0 {
			t.Errorf("q forwards %+v to %v", not, to)
		}
	}
}

// §3.5, figure 2(b): no sensor or near node of the local node knows p, but node q is closer: "When s1 receives the
// position update of the local node, it forwards it to q".
func TestSensorPassesOnToTheClosest(t *testing.T) {
	local := overlay.Update{Origin: 1, Round: 10, At: overlay.Point{X: 0, Z: 0}}
	s1 := plainMachine(2, overlay.Point{X: 500, Z: 0}, 10, overlay.Update{Origin: 3, Round: 10, At: overlay.Point{X: 350, Z: 0}}, overlay.Update{Origin: 4, Round: 10, At: overlay.Point{X: 600, Z: 0}})
	out := step(s1, 11, overlay.Point{X: 500, Z: 0}, overlay.Message{From: 1, To: 2, Payload: &overlay.Position{Update: local, Hops: 1, Listed: true, Receivers: []overlay.ID{}}})
	if to, _ := positionsTo(out, 1); !slices.Equal(to, []overlay.ID{3}) {
		t.Errorf("s1 forwards to %v, want the node that is closest to the origin", to)
	}
}

// §3.3: for each sector the closest node outside of the vision range is the sensor node, and §3.5, figure 2(c): asked,
// a sensor node names a better one.
func TestSensorNodes(t *testing.T) {
	m := plainMachine(1, overlay.Point{X: 0, Z: 0}, 10,
		overlay.Update{Origin: 2, Round: 10, At: overlay.Point{X: 250, Z: 10}}, overlay.Update{Origin: 3, Round: 10, At: overlay.Point{X: 300, Z: 10}},
		overlay.Update{Origin: 4, Round: 10, At: overlay.Point{X: -400, Z: 10}}, overlay.Update{Origin: 5, Round: 10, At: overlay.Point{X: 100, Z: 0}})
	ids := m.sensorIDs(nil)
	slices.Sort(ids)
	if near := m.nearIDs(nil); !slices.Equal(ids, []overlay.ID{2, 4}) || !slices.Equal(near, []overlay.ID{5}) {
		t.Errorf("sensor nodes are %v, near nodes %v", ids, near)
	}
	s := plainMachine(6, overlay.Point{X: 500, Z: 10}, 10, overlay.Update{Origin: 7, Round: 10, At: overlay.Point{X: 400, Z: 10}})
	ask := &overlay.SensorRequest{Self: overlay.Update{Origin: 1, Round: 10}, Sector: uint8(sectorOf(overlay.Point{}, overlay.Point{X: 500, Z: 10}, DefaultSectors))}
	out := step(s, 11, overlay.Point{X: 500, Z: 10}, overlay.Message{From: 1, To: 6, Payload: ask})
	for _, msg := range out.Messages {
		if p, ok := msg.Payload.(*overlay.SensorSuggestion); ok {
			if p.Node.Origin != 7 || msg.To != 1 {
				t.Errorf("asked, it suggests %+v to %d", p, msg.To)
			}
			return
		}
	}
	t.Error("no answer to a question")
}

// §2, step c: what is sent fits under the cap, and the receiver lists name only who gets the update. Sensor messages
// are never deleted.
func TestCapHolds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		cfg := Paper(200)
		if rapid.Bool().Draw(t, "improved") {
			cfg = Improved(200, overlay.FirstServer)
		}
		cfg.OwnFirst = rapid.Bool().Draw(t, "own first")
		cfg.Stalest = rapid.Bool().Draw(t, "stalest")
		cfg.Compact = rapid.Bool().Draw(t, "compact")
		cfg.Forwarders = rapid.IntRange(0, 4).Draw(t, "forwarders")
		cfg.Cap = rapid.IntRange(700, 3000).Draw(t, "cap")
		rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
		m := New(cfg, 1000, rng)
		players := rapid.IntRange(1, 80).Draw(t, "players")
		for round := uint32(1); round < 6; round++ {
			var inbox []overlay.Message
			for i := range players {
				u := overlay.Update{Origin: overlay.ID(i), Round: round - 1, At: overlay.Point{X: rng.Float64()*500 - 250, Z: rng.Float64()*500 - 250}}
				p := &overlay.Position{Update: u, Hops: 1, Listed: true, Receivers: []overlay.ID{1000}, Short: cfg.Compact}
				inbox = append(inbox, overlay.Message{From: overlay.ID(i), To: 1000, Payload: p})
			}
			out := step(m, round, overlay.Point{}, inbox...)
			total := 0
			sent := map[overlay.ID]map[overlay.ID]bool{}
			for _, msg := range out.Messages {
				total += msg.Bytes
				if want := cfg.Header + len(overlay.AppendPayload(nil, 1000, msg.Payload)); msg.Bytes != want {
					t.Fatalf("%+v counts %d bytes, and takes %d", msg.Payload, msg.Bytes, want)
				}
				if p, ok := msg.Payload.(*overlay.Position); ok {
					if sent[p.Update.Origin] == nil {
						sent[p.Update.Origin] = map[overlay.ID]bool{}
					}
					sent[p.Update.Origin][msg.To] = true
				}
			}
			if total > cfg.Cap {
				t.Fatalf("round %d: %d bytes are sent, the cap is %d", round, total, cfg.Cap)
			}
			for _, msg := range out.Messages {
				if p, ok := msg.Payload.(*overlay.Position); ok {
					for _, id := range p.Receivers {
						if cfg.Lead > 0 {
							break // nodes that got one recently are listed too
						}
						if id != 1000 && !sent[p.Update.Origin][id] {
							t.Fatalf("round %d: %d stands in the list of %d, and gets nothing", round, id, p.Update.Origin)
						}
					}
				}
			}
		}
	})
}

// A machine's output is the same after it was encoded in a packet and decoded.
func TestPacketHoldsARound(t *testing.T) {
	for _, compact := range []bool{true, false} { // lists of short ids stay in their payloads, others do not
		cfg := Improved(200, overlay.FirstServer)
		cfg.Compact = compact
		testPacket(t, cfg)
	}
}

func testPacket(t *testing.T, cfg Options) {
	m := New(cfg, 5, rand.New(rand.NewPCG(1, 1)))
	m.round = 100
	for i := range 50 {
		m.Introduce([]overlay.Update{{Origin: overlay.ID(10 + i), Round: 100, At: overlay.Point{X: float64(i * 5), Z: 3}}})
	}
	out := step(m, 100, overlay.Point{X: 20, Z: 10})
	data := overlay.AppendPacket(nil, out.Messages)
	plain := 0
	for _, msg := range out.Messages {
		plain += msg.Bytes
	}
	if len(out.Messages) < 40 || len(data) > plain/2 {
		t.Errorf("%d messages of %d bytes take %d in a packet", len(out.Messages), plain, len(data))
	}
	near := func(to overlay.ID) (overlay.Reference, bool) {
		return overlay.Reference{At: overlay.Point{X: 100, Z: 0}, Round: 103}, to != 12
	}
	got, err := overlay.ReadPacket(data, near)
	if err != nil {
		t.Fatal(err)
	}
	byReceiver := map[overlay.ID][]overlay.Payload{}
	for _, msg := range out.Messages {
		if msg.To != 12 {
			byReceiver[msg.To] = append(byReceiver[msg.To], msg.Payload)
		}
	}
	for _, msg := range got {
		want := byReceiver[msg.To]
		if len(want) == 0 || msg.From != 5 {
			t.Fatalf("nobody sent %+v", msg)
		}
		found := false
		for i, p := range want {
			if reflect.DeepEqual(p, msg.Payload) {
				byReceiver[msg.To] = append(want[:i:i], want[i+1:]...)
				found = true
				break
			}
		}
		if !found {
			t.Errorf("%d gets %+v", msg.To, msg.Payload)
		}
	}
	for to, rest := range byReceiver {
		if len(rest) > 0 {
			t.Errorf("%d does not get %+v", to, rest[0])
		}
	}
}
