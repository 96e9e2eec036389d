package grid

import (
	"crypto/sha256"
	"math/bits"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// prefixBits is KeyPrefix written naively, bit by bit.
func prefixBits(key string) string {
	hash := sha256.Sum256([]byte(key))
	var text strings.Builder
	for i := range MaxLabel {
		text.WriteByte('0' + hash[i/8]>>(7-i%8)&1)
	}
	return text.String()
}

func TestKeyPrefixIsTheFirst12Bits(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		key := rapid.String().Draw(t, "key")
		want, err := strconv.ParseUint(prefixBits(key), 2, 16)
		if err != nil || KeyPrefix(key) != uint16(want) {
			t.Fatalf("prefix of %q: %012b, want %012b", key, KeyPrefix(key), want)
		}
	})
}

// Keys are addresses in the DHT: changing one loses the records stored under it. The nonces were found by a program in
// another language, which builds the Gray code by reflection.
func TestKeyGolden(t *testing.T) {
	for _, test := range []struct {
		cell, walkad string
	}{
		{"0,0/", "/chunk/0,0//128"},
		{"0,0/0000", "/chunk/0,0/0000/477"},
		{"0,0/0110", "/chunk/0,0/0110/5"},
		{"-1,7/1011", "/chunk/-1,7/1011/7574"},
		{"1048575,-1048576/111111111111", "/chunk/1048575,-1048576/111111111111/2647"},
	} {
		c, err := ParseCell(test.cell)
		if err != nil {
			t.Fatal(err)
		}
		if got := PlacementWalkad.Key(c); got != test.walkad {
			t.Errorf("walkad key of %v: %s, want %s", c, got, test.walkad)
		}
		if got, want := PlacementHash.Key(c), "/chunk/"+test.cell+"/0"; got != want {
			t.Errorf("hash key of %v: %s, want %s", c, got, want)
		}
	}
}

// Walkad §IV-A in the real keyspace: the SHA-256 of the keys of cells of a domain that share a side
// differ in exactly one of their first 12 bits.
func TestNeighboursAreNearInTheKeyspace(t *testing.T) {
	for _, domain := range []Domain{{X: 0, Z: 0}, {X: -3, Z: 12}} {
		for length := 1; length <= FoundingLabel+1; length++ {
			width, depth := span(length)
			originX, originZ := domain.X*DomainSize, domain.Z*DomainSize
			keys := NewKeys(PlacementWalkad)
			pairs := 0
			for x := int32(0); x < DomainSize; x += width {
				for z := int32(0); z < DomainSize; z += depth {
					c := CellAt(ChunkPos{X: originX + x, Z: originZ + z}, length)
					for _, p := range []ChunkPos{{X: x + width, Z: z}, {X: x, Z: z + depth}} {
						if p.X >= DomainSize || p.Z >= DomainSize {
							continue
						}
						n := CellAt(ChunkPos{X: originX + p.X, Z: originZ + p.Z}, length)
						a, b := prefixBits(keys.Key(c)), prefixBits(keys.Key(n))
						if d := differing(a, b); d != 1 {
							t.Errorf("%v at %s and %v at %s: distance %d", c, a, n, b, d)
						}
						pairs++
					}
				}
			}
			if across, along := DomainSize/int(width), DomainSize/int(depth); pairs != (across-1)*along+across*(along-1) {
				t.Errorf("%d pairs at length %d", pairs, length)
			}
		}
	}
}

func differing(a, b string) int {
	n := 0
	for i := range a {
		if a[i] != b[i] {
			n++
		}
	}
	return n
}

// The XOR moves a domain's cells together: it keeps their distances, and domains do not pile up on each other.
func TestDomainsAreSpread(t *testing.T) {
	starts := make(map[uint16]int)
	for x := range int32(32) {
		for z := range int32(32) {
			a, b := Cell{Domain: Domain{X: x, Z: z}}, Cell{Domain: Domain{X: x, Z: z}, Label: Label{}.Child(1)}
			starts[a.prefix()>>(MaxLabel-4)]++
			if bits.OnesCount16(a.prefix()^b.prefix()) != 1 {
				t.Fatalf("domain %v is torn apart", a.Domain)
			}
		}
	}
	for sixteenth := range uint16(16) { // 1,024 domains: 64 ± 8 expected in each
		if n := starts[sixteenth]; n < 32 || n > 96 {
			t.Errorf("%d of 1024 domains in sixteenth %d of the keyspace", n, sixteenth)
		}
	}
}

func TestKeyRoundTrip(t *testing.T) {
	for _, p := range []Placement{PlacementWalkad, PlacementHash} {
		rapid.Check(t, func(t *rapid.T) {
			c := drawCell(t)
			key := p.Key(c)
			got, nonce, err := ParseKey(key)
			if err != nil || got != c || !strings.HasSuffix(key, "/"+strconv.FormatUint(nonce, 10)) {
				t.Fatalf("%s read as %v %d, %v", key, got, nonce, err)
			}
			if err := p.Check(key); err != nil {
				t.Fatal(err)
			}
		})
	}
}

func TestCheckRefusesOtherNonces(t *testing.T) {
	c := CellAt(ChunkPos{X: 100, Z: -100}, 4)
	key := PlacementWalkad.Key(c)
	_, nonce, err := ParseKey(key)
	if err != nil {
		t.Fatal(err)
	}
	stem := strings.TrimSuffix(key, strconv.FormatUint(nonce, 10))
	keys := NewKeys(PlacementWalkad)
	refuse := func(bad string) {
		t.Helper()
		if PlacementWalkad.Check(bad) == nil || keys.Check(bad) == nil {
			t.Errorf("%s is accepted", bad)
		}
	}
	refuse(stem + strconv.FormatUint(nonce+1, 10))
	second := nonce + 1 // also hashes to the right place, but is not the smallest
	for KeyPrefix(stem+strconv.FormatUint(second, 10)) != c.prefix() {
		second++
	}
	refuse(stem + strconv.FormatUint(second, 10))
	refuse(CatalogKey)
	refuse("/player/x")
	if PlacementHash.Check(stem+"1") == nil || PlacementHash.Check(stem+"0") != nil {
		t.Error("hash placement wants nonce 0 and nothing else")
	}
	if err := keys.Check(key); err != nil {
		t.Error(err)
	}
}

func TestParsePlacement(t *testing.T) {
	for _, name := range []string{"walkad", "hash"} {
		if p, err := ParsePlacement(name); err != nil || string(p) != name {
			t.Errorf("%q read as %q, %v", name, p, err)
		}
	}
	for _, name := range []string{"", "Walkad", "random"} {
		if p, err := ParsePlacement(name); err == nil {
			t.Errorf("%q read as %q", name, p)
		}
	}
}

func TestKeysAgreesWithPlacementAndStaysBounded(t *testing.T) {
	keys := NewKeys(PlacementHash)
	for i := range int32(maxKeys + 100) {
		c := CellAt(ChunkPos{X: i * DomainSize}, FoundingLabel)
		if got, want := keys.Key(c), PlacementHash.Key(c); got != want {
			t.Fatalf("cell %v: %s, want %s", c, got, want)
		}
	}
	if len(keys.keys) != maxKeys {
		t.Errorf("%d keys are remembered", len(keys.keys))
	}
}

func FuzzParseKey(f *testing.F) {
	f.Add("/chunk/0,0/0110/17")
	f.Add("/chunk/-1,0//0")
	f.Add(CatalogKey)
	f.Fuzz(func(t *testing.T, key string) {
		c, nonce, err := ParseKey(key)
		if err != nil {
			return
		}
		if again := "/chunk/" + c.String() + "/" + strconv.FormatUint(nonce, 10); again != key {
			t.Fatalf("%q read as %q", key, again)
		}
		if PlacementHash.Check(key) == nil != (nonce == 0) {
			t.Fatalf("hash placement on %q", key)
		}
	})
}

func BenchmarkKey(b *testing.B) {
	hashes := uint64(0)
	i := int32(0)
	for b.Loop() {
		_, nonce, err := ParseKey(PlacementWalkad.Key(CellAt(ChunkPos{X: i * 16}, FoundingLabel)))
		if err != nil {
			b.Fatal(err)
		}
		hashes += nonce + 1
		i++
	}
	b.ReportMetric(float64(hashes)/float64(b.N), "hashes/op")
}

func BenchmarkKeysKnown(b *testing.B) {
	keys := NewKeys(PlacementWalkad)
	c := CellAt(ChunkPos{}, FoundingLabel)
	for b.Loop() {
		keys.Key(c)
	}
}
