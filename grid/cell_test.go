package grid

import (
	"encoding/json"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

func TestCellAt(t *testing.T) {
	for _, test := range []struct {
		chunk  ChunkPos
		length int
		cell   string
		area   Area
	}{
		{ChunkPos{X: 5, Z: 5}, 0, "0,0/", Area{0, 0, 64, 64}},
		{ChunkPos{X: 31, Z: 63}, 1, "0,0/0", Area{0, 0, 32, 64}}, // the first bit halves X
		{ChunkPos{X: 32, Z: 63}, 1, "0,0/1", Area{32, 0, 64, 64}},
		{ChunkPos{X: 32, Z: 63}, 2, "0,0/11", Area{32, 32, 64, 64}}, // the second halves Z
		{ChunkPos{X: 32, Z: 0}, 2, "0,0/10", Area{32, 0, 64, 32}},
		{ChunkPos{X: 0, Z: 0}, 4, "0,0/0000", Area{0, 0, 16, 16}},
		{ChunkPos{X: -1, Z: 17}, 4, "-1,0/1011", Area{-16, 16, 0, 32}},
		{ChunkPos{X: -64, Z: -1}, 12, "-1,-1/010101010101", Area{-64, -1, -63, 0}},
		{ChunkPos{X: Limit - 1, Z: -Limit}, 4, "1048575,-1048576/1010", Area{Limit - 16, -Limit, Limit, -Limit + 16}},
	} {
		got := CellAt(test.chunk, test.length)
		if got.String() != test.cell || got.Area() != test.area {
			t.Errorf("%v at length %d: %v %v, want %s %v", test.chunk, test.length, got, got.Area(), test.cell, test.area)
		}
	}
}

func TestCellContainsItsArea(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c, p := drawCell(t), drawChunk(t)
		area := c.Area()
		if rapid.Bool().Draw(t, "near") {
			p = ChunkPos{
				X: rapid.Int32Range(max(area.MinX-1, -Limit), min(area.MaxX, Limit-1)).Draw(t, "x"),
				Z: rapid.Int32Range(max(area.MinZ-1, -Limit), min(area.MaxZ, Limit-1)).Draw(t, "z"),
			}
		}
		if c.Contains(p) != area.Contains(p) {
			t.Fatalf("%v contains %v: %v; its area %v says otherwise", c, p, c.Contains(p), area)
		}
	})
}

func TestChildrenHalveTheCell(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := drawCell(t)
		if c.Label.Len() == MaxLabel {
			c = c.Parent()
		}
		lower, upper := c.Children()
		a, l, u := c.Area(), lower.Area(), upper.Area()
		if lower.Parent() != c || upper.Parent() != c {
			t.Fatalf("parents of the children of %v: %v, %v", c, lower.Parent(), upper.Parent())
		}
		if l.MinX != a.MinX || l.MinZ != a.MinZ || u.MaxX != a.MaxX || u.MaxZ != a.MaxZ || l.Overlaps(u) {
			t.Fatalf("%v is halved into %v and %v", a, l, u)
		}
		alongX := l.MaxX == u.MinX && l.MaxZ == a.MaxZ && u.MinZ == a.MinZ
		alongZ := l.MaxZ == u.MinZ && l.MaxX == a.MaxX && u.MinX == a.MinX
		if even := c.Label.Len()%2 == 0; alongX != even || alongZ == even {
			t.Fatalf("%v is halved into %v and %v", a, l, u)
		}
	})
}

func TestAdjacent(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := drawCell(t)
		a := c.Area()
		grown := Area{a.MinX - 1, a.MinZ - 1, a.MaxX + 1, a.MaxZ + 1}
		around := c.Adjacent()
		for i, n := range around {
			if n == c || n.Label.Len() != c.Label.Len() || !n.Area().Overlaps(grown) || slices.Index(around, n) != i {
				t.Fatalf("around %v: %v", c, around)
			}
			if !slices.Contains(n.Adjacent(), c) {
				t.Fatalf("%v lies around %v, but not the reverse", n, c)
			}
		}
		atEdge := grown.MinX < -Limit || grown.MinZ < -Limit || grown.MaxX > Limit || grown.MaxZ > Limit
		if (len(around) == 8) == atEdge {
			t.Fatalf("%d cells around %v", len(around), c)
		}
	})
}

func TestAdjacentAcrossDomainsInOrder(t *testing.T) {
	var got []string
	for _, c := range CellAt(ChunkPos{X: 0, Z: 0}, 4).Adjacent() {
		got = append(got, c.String())
	}
	want := []string{"-1,-1/1111", "0,-1/0101", "0,-1/0111", "-1,0/1010", "0,0/0010", "-1,0/1011", "0,0/0001", "0,0/0011"}
	if !slices.Equal(got, want) {
		t.Errorf("around 0,0/0000:\n%v, want\n%v", got, want)
	}
	if corner := CellAt(ChunkPos{X: -Limit, Z: Limit - 1}, 4).Adjacent(); len(corner) != 3 {
		t.Errorf("around the world's corner: %v", corner)
	}
}

func TestCellInJSON(t *testing.T) {
	want := map[string]Cell{"cell": CellAt(ChunkPos{X: -1, Z: 17}, 4)}
	text, err := json.Marshal(want)
	if err != nil || string(text) != `{"cell":"-1,0/1011"}` {
		t.Fatalf("wrote %s, %v", text, err)
	}
	var got map[string]Cell
	if err := json.Unmarshal(text, &got); err != nil || got["cell"] != want["cell"] {
		t.Errorf("read %v, %v", got, err)
	}
}

func TestParseCellRefuses(t *testing.T) {
	for _, text := range []string{
		"", "/", "0,0", "0/01", "0,0,0/01", "+1,0/0", "-0,0/0", "00,0/0", "0, 0/0", "0,0/2", "0,0/0/", "0,0/0000000000000",
		"1048576,0/", "0,-1048577/", "99999999999,0/", "1e1,0/",
	} {
		if c, err := ParseCell(text); err == nil {
			t.Errorf("%q read as %v", text, c)
		}
	}
}

func FuzzParseCell(f *testing.F) {
	f.Add("0,0/")
	f.Add("-1,0/0110")
	f.Add("1048575,-1048576/111111111111")
	f.Fuzz(func(t *testing.T, text string) {
		c, err := ParseCell(text)
		if err != nil {
			return
		}
		if c.String() != text || !c.Domain.Valid() {
			t.Fatalf("%q read as %q", text, c)
		}
		a := c.Area()
		if CellAt(ChunkPos{X: a.MaxX - 1, Z: a.MaxZ - 1}, c.Label.Len()) != c {
			t.Fatalf("%v does not hold its own last chunk", c)
		}
	})
}

func FuzzChunkPosJSON(f *testing.F) {
	f.Add([]byte(`[1,-2]`))
	f.Add([]byte(`[null,1e9]`))
	f.Fuzz(func(t *testing.T, text []byte) {
		var c ChunkPos
		if err := c.UnmarshalJSON(text); err != nil {
			return
		}
		if !c.Valid() {
			t.Fatalf("%q read as %v", text, c)
		}
		written, err := c.MarshalJSON()
		var again ChunkPos
		if err != nil || again.UnmarshalJSON(written) != nil || again != c {
			t.Fatalf("%v written as %s", c, written)
		}
	})
}
