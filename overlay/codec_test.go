package overlay

import (
	"bytes"
	"errors"
	"math"
	"reflect"
	"testing"

	"pgregory.net/rapid"
)

func drawUpdate(t *rapid.T, near Reference, compact bool) Update {
	far := 5e8
	if compact {
		far = span/2 - 2
	}
	point := func(name string, far float64) Point {
		return Point{rapid.Float64Range(-far, far).Draw(t, name+" x"), rapid.Float64Range(-far, far).Draw(t, name+" z")}
	}
	u := Update{
		Origin: ID(rapid.Uint32().Draw(t, "origin")), Round: near.Round + uint32(rapid.IntRange(-30000, 30000).Draw(t, "round")),
		At: point("at", far), GameData: rapid.SampledFrom([]uint64{0, 0, 1, math.MaxUint64}).Draw(t, "body"),
	}
	if rapid.Bool().Draw(t, "moves") {
		u.Velocity = point("velocity", 100)
	}
	if compact {
		u.At = u.At.Add(near.At)
		return Quantise(u)
	}
	single := func(p Point) Point { return Point{float64(float32(p.X)), float64(float32(p.Z))} }
	u.At, u.Velocity = single(u.At), single(u.Velocity)
	return u
}

func TestPayloadsReadAsWritten(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		near := Reference{At: Point{rapid.Float64Range(-1e6, 1e6).Draw(t, "x"), 7}, Round: rapid.Uint32().Draw(t, "now")}
		compact := rapid.Bool().Draw(t, "compact")
		u := drawUpdate(t, near, compact)
		from := u.Origin
		if rapid.Bool().Draw(t, "of another") {
			from++
		}
		var p Payload
		switch rapid.IntRange(0, 4).Draw(t, "kind") {
		case 0:
			pos := &Position{Update: u, Hops: uint8(rapid.IntRange(0, MaxPositionHops).Draw(t, "hops")), Compact: compact}
			if pos.Listed = rapid.Bool().Draw(t, "listed"); pos.Listed {
				pos.Short = rapid.Bool().Draw(t, "short")
				pos.Receivers = []ID{}
				for i := range rapid.IntRange(0, 300).Draw(t, "receivers") {
					pos.Receivers = append(pos.Receivers, ID(i*3))
				}
			}
			p = pos
		case 1:
			p = &SensorRequest{Self: u, Sector: uint8(rapid.IntRange(0, MaxSectors-1).Draw(t, "sector")), Compact: compact}
		case 2:
			p = &SensorSuggestion{Node: u, Sector: 3, Compact: compact}
		case 3:
			p = &Report{Update: u, Compact: compact}
		default:
			p = &Introduction{Updates: []Update{u, drawUpdate(t, near, compact)}, Compact: compact}
		}
		data := AppendPayload(nil, from, p)
		if len(data) != PayloadBytes(from, p) {
			t.Fatalf("%+v takes %d bytes, counted are %d", p, len(data), PayloadBytes(from, p))
		}
		got, err := ReadPayload(data, from, near)
		if err != nil || !reflect.DeepEqual(got, p) {
			t.Fatalf("%+v became %+v, %v", p, got, err)
		}
	})
}

func FuzzReadPayload(f *testing.F) {
	near := Reference{At: Point{1000, -5}, Round: 70000}
	u := Quantise(Update{Origin: 7, Round: 70001, At: Point{1100, 3}, Velocity: Point{4, -1}, GameData: 300})
	for _, p := range []Payload{
		&Position{Update: u, Hops: 2, Compact: true, Listed: true, Short: true, Receivers: []ID{1, 9}},
		&Position{Update: u, Hops: 1, Listed: true, Receivers: []ID{1, 70000}},
		&SensorRequest{Self: u, Sector: 3}, &SensorSuggestion{Node: u, Compact: true}, &Report{Update: u, Compact: true},
		&Introduction{Updates: []Update{u, u}, Compact: true},
		&Gossip{Updates: []AgedUpdate{{Update: u, Age: 1}}},
	} {
		f.Add(AppendPayload(nil, 7, p))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		p, err := ReadPayload(data, 7, near)
		if err != nil {
			if !errors.Is(err, ErrPayload) {
				t.Fatal(err)
			}
			return
		}
		// What was decoded can be encoded, and decodes to the same.
		again, err := ReadPayload(AppendPayload(nil, 7, p), 7, near)
		if err != nil {
			t.Fatalf("%+v is written, and not read: %v", p, err)
		}
		if a, b := AppendPayload(nil, 7, p), AppendPayload(nil, 7, again); !bytes.Equal(a, b) {
			t.Fatalf("%+v became %+v", p, again)
		}
		if n := len(AppendPayload(nil, 7, p)); n != PayloadBytes(7, p) {
			t.Fatalf("%+v takes %d bytes, counted are %d", p, n, PayloadBytes(7, p))
		}
	})
}

func TestShortFormsAreNearEnough(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		u := Update{At: Point{rapid.Float64Range(-1e8, 1e8).Draw(t, "x"), 1}, Velocity: Point{rapid.Float64Range(-100, 100).Draw(t, "v"), 0}}
		q := Quantise(u)
		if math.Abs(q.At.X-u.At.X) > .5/fine || math.Abs(q.Velocity.X-u.Velocity.X) > .005+.09*math.Sqrt(math.Abs(u.Velocity.X)) {
			t.Fatalf("%+v became %+v", u, q)
		}
		if Quantise(q) != q {
			t.Fatalf("%+v became %+v when it was made short again", q, Quantise(q))
		}
	})
}
