package overlay

import (
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

func step(m Machine, round uint32, at Point, inbox ...Message) *Output {
	var out Output
	m.Step(&Input{Round: round, At: at, Inbox: inbox}, &out)
	return &out
}

func plainMachine(id ID, at Point, round uint32, known ...Update) *PSense {
	m := NewPSense(PlainPSense(200), id, rand.New(rand.NewPCG(1, uint64(id))))
	m.round = round
	m.Introduce(known)
	step(m, round, at)
	return m
}

func positionsTo(out *Output, origin ID) (to []ID, lists [][]ID) {
	for _, m := range out.Messages {
		if p, ok := m.Payload.(*Position); ok && p.Update.Origin == origin {
			to = append(to, m.To)
			lists = append(lists, p.Receivers)
		}
	}
	return to, lists
}

// §3.5, figure 2(a): q knows p, and sees that the local node's update did not go there: "Thus, it forwards the position
// update to p".
func TestNearNodeIntroduces(t *testing.T) {
	local, p := Update{Origin: 1, Round: 10, At: Point{0, 0}}, Update{Origin: 2, Round: 10, At: Point{150, 0}}
	q := plainMachine(3, Point{100, 0}, 10, local, p)
	local.Round = 11
	got := &Position{Update: local, Hops: 1, Listed: true, Receivers: []ID{3}}
	out := step(q, 12, Point{100, 0}, Message{From: 1, To: 3, Payload: got})
	to, lists := positionsTo(out, 1)
	if !slices.Equal(to, []ID{2}) || !slices.Equal(lists[0], []ID{2, 3}) {
		t.Errorf("q forwards to %v with %v", to, lists)
	}
	// Not to nodes in the list, and not an update at the end of its lifetime.
	for _, not := range []*Position{
		{Update: Update{Origin: 1, Round: 12}, Hops: 1, Listed: true, Receivers: []ID{2, 3}},
		{Update: Update{Origin: 1, Round: 13}, Hops: DefaultLifetime, Listed: true, Receivers: []ID{3}},
		{Update: Update{Origin: 1, Round: 13}, Hops: 1, Listed: true, Receivers: []ID{3}}, // a duplicate
	} {
		out := step(q, not.Update.Round+1, Point{100, 0}, Message{From: 1, To: 3, Payload: not})
		if to, _ := positionsTo(out, 1); len(to) > 0 {
			t.Errorf("q forwards %+v to %v", not, to)
		}
	}
}

// §3.5, figure 2(b): no sensor or near node of the local node knows p, but node q is closer: "When s1 receives the
// position update of the local node, it forwards it to q".
func TestSensorPassesOnToTheClosest(t *testing.T) {
	local := Update{Origin: 1, Round: 10, At: Point{0, 0}}
	s1 := plainMachine(2, Point{500, 0}, 10, Update{Origin: 3, Round: 10, At: Point{350, 0}}, Update{Origin: 4, Round: 10, At: Point{600, 0}})
	out := step(s1, 11, Point{500, 0}, Message{From: 1, To: 2, Payload: &Position{Update: local, Hops: 1, Listed: true, Receivers: []ID{}}})
	if to, _ := positionsTo(out, 1); !slices.Equal(to, []ID{3}) {
		t.Errorf("s1 forwards to %v, want the node that is closest to the origin", to)
	}
}

// §3.3: for each sector the closest node outside of the vision range is the sensor node, and §3.5, figure 2(c): asked, a
// sensor node names a better one.
func TestSensorNodes(t *testing.T) {
	m := plainMachine(1, Point{0, 0}, 10,
		Update{Origin: 2, Round: 10, At: Point{250, 10}}, Update{Origin: 3, Round: 10, At: Point{300, 10}},
		Update{Origin: 4, Round: 10, At: Point{-400, 10}}, Update{Origin: 5, Round: 10, At: Point{100, 0}})
	ids := m.Sensors(nil)
	slices.Sort(ids)
	if near := m.Near(nil); !slices.Equal(ids, []ID{2, 4}) || !slices.Equal(near, []ID{5}) {
		t.Errorf("sensor nodes are %v, near nodes %v", ids, near)
	}
	s := plainMachine(6, Point{500, 10}, 10, Update{Origin: 7, Round: 10, At: Point{400, 10}})
	ask := &SensorRequest{Self: Update{Origin: 1, Round: 10}, Sector: uint8(sectorOf(Point{}, Point{500, 10}, DefaultSectors))}
	out := step(s, 11, Point{500, 10}, Message{From: 1, To: 6, Payload: ask})
	for _, msg := range out.Messages {
		if p, ok := msg.Payload.(*SensorSuggestion); ok {
			if p.Node.Origin != 7 || msg.To != 1 {
				t.Errorf("asked, it suggests %+v to %d", p, msg.To)
			}
			return
		}
	}
	t.Error("asked, it says nothing")
}

// §2, step c: what is sent fits under the cap, and the receiver lists name only who gets the update. Sensor messages are
// never deleted.
func TestCapHolds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		cfg := PlainPSense(200)
		if rapid.Bool().Draw(t, "improved") {
			cfg = ImprovedPSense(200, FirstServer)
		}
		cfg.OwnFirst = rapid.Bool().Draw(t, "own first")
		cfg.Stalest = rapid.Bool().Draw(t, "stalest")
		cfg.Compact = rapid.Bool().Draw(t, "compact")
		cfg.Forwarders = rapid.IntRange(0, 4).Draw(t, "forwarders")
		cfg.Cap = rapid.IntRange(700, 3000).Draw(t, "cap")
		rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
		m := NewPSense(cfg, 1000, rng)
		players := rapid.IntRange(1, 80).Draw(t, "players")
		for round := uint32(1); round < 6; round++ {
			var inbox []Message
			for i := range players {
				u := Update{Origin: ID(i), Round: round - 1, At: Point{rng.Float64()*500 - 250, rng.Float64()*500 - 250}}
				p := &Position{Update: u, Hops: 1, Listed: true, Receivers: []ID{1000}, Short: cfg.Compact}
				inbox = append(inbox, Message{From: ID(i), To: 1000, Payload: p})
			}
			out := step(m, round, Point{}, inbox...)
			total := 0
			sent := map[ID]map[ID]bool{}
			for _, msg := range out.Messages {
				total += msg.Bytes
				if want := cfg.Header + len(AppendPayload(nil, 1000, msg.Payload)); msg.Bytes != want {
					t.Fatalf("%+v counts %d bytes, and takes %d", msg.Payload, msg.Bytes, want)
				}
				if p, ok := msg.Payload.(*Position); ok {
					if sent[p.Update.Origin] == nil {
						sent[p.Update.Origin] = map[ID]bool{}
					}
					sent[p.Update.Origin][msg.To] = true
				}
			}
			if total > cfg.Cap {
				t.Fatalf("round %d: %d bytes are sent, the cap is %d", round, total, cfg.Cap)
			}
			for _, msg := range out.Messages {
				if p, ok := msg.Payload.(*Position); ok {
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
