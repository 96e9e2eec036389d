package overlay

import (
	"math"
	"reflect"
	"testing"

	"pgregory.net/rapid"
)

// aged draws an update anywhere in the world.
func aged(t *rapid.T) AgedUpdate {
	most := float64(MaxCoordinate)
	place := rapid.Custom(func(t *rapid.T) Point {
		reach := rapid.SampledFrom([]float64{200, 5000, most}).Draw(t, "reach")
		return Point{rapid.Float64Range(-reach, reach).Draw(t, "x"), rapid.Float64Range(-reach, reach).Draw(t, "z")}
	})
	return AgedUpdate{
		Update: Update{
			Origin: ID(rapid.Uint32().Draw(t, "origin")), Round: rapid.Uint32().Draw(t, "round"), At: place.Draw(t, "at"),
			Velocity: rapid.OneOf(rapid.Just(Point{}), place).Draw(t, "velocity"),
			GameData: rapid.OneOf(rapid.Just(uint64(0)), rapid.Uint64()).Draw(t, "body"),
		},
		Age: rapid.Uint8Range(0, MaxHops).Draw(t, "age"),
	}
}

func TestGossipReadsAsWritten(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g := &Gossip{Updates: rapid.SliceOfN(rapid.Custom(aged), 1, 20).Draw(t, "updates")}
		b := g.Append(nil)
		if len(b) != g.Size() {
			t.Fatalf("%d bytes, Size says %d", len(b), g.Size())
		}
		got, err := DecodeGossip(b)
		if err != nil {
			t.Fatal(err)
		}
		for i, u := range got.Updates {
			want := g.Updates[i]
			if u.Update != want.Grained() || u.Age != want.Age {
				t.Fatalf("update %d is %+v, want %+v", i, u, want)
			}
			if d := u.At.Dist(want.At); d > grain*math.Sqrt2/2*1.001 {
				t.Fatalf("update %d moved by %v blocks", i, d)
			}
			if u.Grained() != u.Update {
				t.Fatalf("update %d moves again when it is sent on", i)
			}
		}
	})
}

func TestForwardedUpdateIsSmall(t *testing.T) {
	near := Update{Origin: 7, Round: 1000, At: Point{140, -130}, Velocity: Point{4, 3}}
	g := &Gossip{Updates: []AgedUpdate{{Update: Update{Origin: 1, Round: 1001, At: Point{0, 0}}}, {Update: near, Age: 1}}}
	alone := &Gossip{Updates: g.Updates[:1]}
	if got := g.Size() - alone.Size(); got != typicalUpdate {
		t.Errorf("a forwarded update takes %d bytes, want %d", got, typicalUpdate)
	}
}

func FuzzDecodeGossip(f *testing.F) {
	f.Add((&Gossip{Updates: []AgedUpdate{{Update: Update{Origin: 1, Round: 2, At: Point{3, 4}, Velocity: Point{1, 1}, GameData: 5}}, {Age: 2}}}).Append(nil))
	f.Add([]byte{byte(KindGossip), 0xff, 0xff, 0xff, 0xff, 0x0f})
	f.Fuzz(func(t *testing.T, b []byte) {
		g, err := DecodeGossip(b)
		if err != nil {
			return
		}
		for i := range g.Updates {
			if !g.Updates[i].Valid() {
				t.Fatalf("update %d is out of the world: %+v", i, g.Updates[i])
			}
		}
		again, err := DecodeGossip(g.Append(nil))
		if err != nil || !reflect.DeepEqual(again, g) {
			t.Fatalf("read again: %v\n%+v\n%+v", err, again, g)
		}
	})
}
