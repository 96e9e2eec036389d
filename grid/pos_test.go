package grid

import (
	"encoding/json"
	"math"
	"testing"

	"github.com/fxamacker/cbor/v2"
	"pgregory.net/rapid"
)

func TestPosChunk(t *testing.T) {
	for _, test := range []struct {
		pos   Pos
		chunk ChunkPos
	}{
		{Pos{X: 0, Z: 0}, ChunkPos{X: 0, Z: 0}},
		{Pos{X: 31, Y: 90, Z: 32}, ChunkPos{X: 0, Z: 1}},
		{Pos{X: -1, Y: -5, Z: -32}, ChunkPos{X: -1, Z: -1}},
		{Pos{X: -33, Z: 64}, ChunkPos{X: -2, Z: 2}},
		{Pos{X: math.MinInt32, Z: math.MaxInt32}, ChunkPos{X: -Limit, Z: Limit - 1}},
	} {
		if got := test.pos.Chunk(); got != test.chunk {
			t.Errorf("%v lies in chunk %v, want %v", test.pos, got, test.chunk)
		}
	}
}

func TestOriginIsTheChunksLowestBlock(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := drawChunk(t)
		o := c.Origin()
		if o.Chunk() != c || o.X%ChunkSize != 0 || o.Z%ChunkSize != 0 || o.Y != 0 {
			t.Fatalf("origin of %v is %v", c, o)
		}
		last := Pos{X: o.X + ChunkSize - 1, Z: o.Z + ChunkSize - 1}
		if last.Chunk() != c {
			t.Fatalf("last block of %v lies in %v", c, last.Chunk())
		}
	})
}

func TestDomain(t *testing.T) {
	for _, test := range []struct {
		chunk  ChunkPos
		domain Domain
	}{
		{ChunkPos{X: 63, Z: 64}, Domain{X: 0, Z: 1}},
		{ChunkPos{X: -1, Z: -64}, Domain{X: -1, Z: -1}},
		{ChunkPos{X: -65, Z: 0}, Domain{X: -2, Z: 0}},
		{ChunkPos{X: -Limit, Z: Limit - 1}, Domain{X: -domainLimit, Z: domainLimit - 1}},
	} {
		if got := test.chunk.Domain(); got != test.domain || !got.Valid() {
			t.Errorf("chunk %v lies in domain %v, want %v", test.chunk, got, test.domain)
		}
	}
	for _, d := range []Domain{{X: domainLimit}, {X: -domainLimit - 1}, {Z: domainLimit}, {Z: -domainLimit - 1}} {
		if d.Valid() {
			t.Errorf("domain %v is valid", d)
		}
	}
}

func TestChunkPosValid(t *testing.T) {
	for _, test := range []struct {
		chunk ChunkPos
		want  bool
	}{
		{ChunkPos{}, true},
		{ChunkPos{X: -Limit, Z: Limit - 1}, true},
		{ChunkPos{X: Limit}, false},
		{ChunkPos{X: -Limit - 1}, false},
		{ChunkPos{Z: Limit}, false},
		{ChunkPos{Z: -Limit - 1}, false},
	} {
		if got := test.chunk.Valid(); got != test.want {
			t.Errorf("%v valid: %v, want %v", test.chunk, got, test.want)
		}
	}
}

func TestChunkPosCompare(t *testing.T) {
	inOrder := []ChunkPos{{X: -2, Z: 9}, {X: 0, Z: -1}, {X: 0, Z: 0}, {X: 0, Z: 5}, {X: 1, Z: -9}}
	for i, a := range inOrder {
		for j, b := range inOrder {
			if got := a.Compare(b); (got < 0) != (i < j) || (got > 0) != (i > j) {
				t.Errorf("%v compared with %v: %d", a, b, got)
			}
		}
	}
}

func TestPositionsInJSON(t *testing.T) {
	type both struct {
		Chunk ChunkPos `json:"chunk"`
		Pos   Pos      `json:"pos"`
	}
	want := both{ChunkPos{X: -3, Z: 4}, Pos{X: 1, Y: -2, Z: 3}}
	text, err := json.Marshal(want)
	if err != nil {
		t.Fatal(err)
	}
	if string(text) != `{"chunk":[-3,4],"pos":[1,-2,3]}` {
		t.Errorf("wrote %s", text)
	}
	var got both
	if err := json.Unmarshal([]byte(` {"pos":[ 1,-2 , 3],"chunk":[-3,4 ]}`), &got); err != nil || got != want {
		t.Errorf("read %v, %v", got, err)
	}
}

func TestPositionsRefuseOtherJSON(t *testing.T) {
	for _, text := range []string{
		``, `null`, `1`, `"1,2"`, `{}`, `[]`, `[1]`, `[1,2,3]`, `[1,2,3,4]`, `[1,null]`, `[null,1]`, `[1.5,2]`,
		`[1.0,2]`, `[1e1,2]`, `["1",2]`, `[[1],2]`, `[true,2]`, `[2147483648,0]`, `[0,-2147483649]`,
		`[67108864,0]`, `[0,-67108865]`, `[1,2`, `[1,2]x`, `[NaN,0]`,
	} {
		c := ChunkPos{X: 7, Z: 7}
		if err := c.UnmarshalJSON([]byte(text)); err == nil || c != (ChunkPos{X: 7, Z: 7}) {
			t.Errorf("chunk %s read as %v, error %v", text, c, err)
		}
	}
	for _, text := range []string{`null`, `[1,2]`, `[1,2,3,4]`, `[1,2,null]`, `[1,2,0.5]`, `[1,2,2147483648]`} {
		var p Pos
		if err := p.UnmarshalJSON([]byte(text)); err == nil {
			t.Errorf("position %s read as %v", text, p)
		}
	}
}

func TestPositionsInCBOR(t *testing.T) {
	type all struct {
		Chunks []ChunkPos `cbor:"1,keyasint"`
		Pos    Pos        `cbor:"2,keyasint"`
		Cell   Cell       `cbor:"3,keyasint"`
		Label  Label      `cbor:"4,keyasint"`
		Domain Domain     `cbor:"5,keyasint"`
	}
	want := all{
		Chunks: []ChunkPos{{X: -1, Z: 2}},
		Pos:    Pos{X: 1, Y: 2, Z: 3},
		Cell:   CellAt(ChunkPos{X: -1, Z: 2}, 5),
		Label:  CellAt(ChunkPos{X: -1, Z: 2}, 3).Label,
		Domain: Domain{X: -9, Z: 9},
	}
	b, err := cbor.Marshal(want)
	if err != nil {
		t.Fatal(err)
	}
	diagnosis, err := cbor.Diagnose(b)
	if err != nil {
		t.Fatal(err)
	}
	if want := `{1: [[-1, 2]], 2: [1, 2, 3], 3: h'2d312c302f3130313031', 4: h'313031', 5: [-9, 9]}`; diagnosis != want {
		t.Errorf("wrote %s,\nwant  %s", diagnosis, want)
	}
	var got all
	if err := cbor.Unmarshal(b, &got); err != nil {
		t.Fatal(err)
	}
	if got.Chunks[0] != want.Chunks[0] || got.Pos != want.Pos || got.Cell != want.Cell || got.Label != want.Label || got.Domain != want.Domain {
		t.Errorf("read %v, want %v", got, want)
	}
	for _, bad := range []any{[]int{1}, []int{1, 2, 3}, []int64{1, 1 << 31}, []float64{1, 1.5}, "1,2", map[string]int{"X": 1, "Z": 2}} {
		b, err := cbor.Marshal(bad)
		if err != nil {
			t.Fatal(err)
		}
		var c ChunkPos
		if err := cbor.Unmarshal(b, &c); err == nil {
			t.Errorf("CBOR %v read as chunk %v", bad, c)
		}
	}
}
