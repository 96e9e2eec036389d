package grid

import (
	"math/bits"
	"strings"
	"testing"
	"unsafe"

	"pgregory.net/rapid"
)

func TestGrayCodeOfFigure1(t *testing.T) { // Walkad, figure 1
	want := []uint16{0b000, 0b001, 0b011, 0b010, 0b110, 0b111, 0b101, 0b100}
	for v, code := range want {
		if got := Gray(uint16(v)); got != code {
			t.Errorf("Gray(%d) = %03b, want %03b", v, got, code)
		}
	}
}

// ungray is the inverse of Gray.
func ungray(code uint16) uint16 {
	code ^= code >> 8
	code ^= code >> 4
	code ^= code >> 2
	code ^= code >> 1
	return code
}

func TestGrayCanBeInverted(t *testing.T) {
	for v := range 1 << 16 {
		if got := ungray(Gray(uint16(v))); got != uint16(v) {
			t.Fatalf("ungray(Gray(%d)) = %d", v, got)
		}
	}
}

func TestLabelSteps(t *testing.T) {
	var l Label
	if l.Len() != 0 || l.String() != "" {
		t.Fatalf("the zero label is %q", l)
	}
	for i, bit := range []int{0, 1, 1, 0} {
		l = l.Child(bit)
		if l.Bit(i) != bit || l.Len() != i+1 {
			t.Fatalf("after bit %d: %q", i, l)
		}
	}
	if l.String() != "0110" || l.Parent().String() != "011" || l.Parent() != (Label{}).Child(0).Child(1).Child(1) {
		t.Errorf("label %q, parent %q", l, l.Parent())
	}
	if size := unsafe.Sizeof(l); size > 4 {
		t.Errorf("a label takes %d bytes", size)
	}
}

func TestLabelPanicsOnBrokenInvariants(t *testing.T) {
	full := CellAt(ChunkPos{}, MaxLabel).Label
	for name, step := range map[string]func(){
		"child of a full label": func() { full.Child(0) },
		"child 2":               func() { Label{}.Child(2) },
		"child -1":              func() { Label{}.Child(-1) },
		"parent of the root":    func() { Label{}.Parent() },
		"bit beyond the end":    func() { Label{}.Bit(0) },
		"bit -1":                func() { full.Bit(-1) },
		"cell of length 13":     func() { CellAt(ChunkPos{}, 13) },
		"cell of length -1":     func() { CellAt(ChunkPos{}, -1) },
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s: no panic", name)
				}
			}()
			step()
		}()
	}
}

func TestParseLabelRefuses(t *testing.T) {
	for _, text := range []string{"2", "01 ", "0x1", "0000000000000", "０"} {
		if l, err := ParseLabel(text); err == nil {
			t.Errorf("%q read as %q", text, l)
		}
	}
}

// The cell-IDs of figure 2: along one axis they are the Gray code, and a child's begins with its parent's.
func TestLabelGray(t *testing.T) {
	for _, test := range []struct{ label, code string }{
		{"", ""},
		{"0", "0"},
		{"1", "1"},
		// Along X only (Z's bits are 0): 00, 01, 11, 10 as in the bottom part of figure 2.
		{"000", "000"},
		{"001", "001"},
		{"100", "101"},
		{"101", "100"},
		// Along Z only.
		{"0000", "0000"},
		{"0001", "0001"},
		{"0100", "0101"},
		{"0101", "0100"},
		{"111111111111", "110000000000"},
	} {
		l, err := ParseLabel(test.label)
		if err != nil {
			t.Fatal(err)
		}
		padded, err := ParseLabel(test.code + strings.Repeat("0", MaxLabel-len(test.code)))
		if err != nil {
			t.Fatal(err)
		}
		if got := l.Gray(); got != padded.bits {
			t.Errorf("Gray of %q = %012b, want %s…", test.label, got, test.code)
		}
	}
}

func TestGrayOfChildBeginsWithParents(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := drawCell(t)
		if c.Label.Len() == MaxLabel {
			c = c.Parent()
		}
		lower, upper := c.Children()
		last := uint16(1) << (MaxLabel - lower.Label.Len())
		if lower.Label.Gray()&^last != c.Label.Gray() || upper.Label.Gray()&^last != c.Label.Gray() {
			t.Fatalf("%q: %012b, children %012b and %012b", c.Label, c.Label.Gray(), lower.Label.Gray(), upper.Label.Gray())
		}
		if lower.Label.Gray()^upper.Label.Gray() != last {
			t.Fatalf("children of %q do not differ in their last bit alone", c.Label)
		}
	})
}

// At every level the cell-IDs of a domain are all different, and differ in one bit across each side.
func TestNeighboursDifferInOneBit(t *testing.T) {
	for length := range MaxLabel + 1 {
		width, depth := span(length)
		seen := make(map[uint16]Label)
		for x := int32(0); x < DomainSize; x += width {
			for z := int32(0); z < DomainSize; z += depth {
				c := CellAt(ChunkPos{X: x, Z: z}, length)
				if other, double := seen[c.Label.Gray()]; double {
					t.Fatalf("%q and %q have one code", c.Label, other)
				}
				seen[c.Label.Gray()] = c.Label
				for _, p := range []ChunkPos{{X: x + width, Z: z}, {X: x, Z: z + depth}} {
					if p.X >= DomainSize || p.Z >= DomainSize {
						continue
					}
					n := CellAt(p, length)
					if d := bits.OnesCount16(c.Label.Gray() ^ n.Label.Gray()); d != 1 {
						t.Fatalf("%q and %q differ in %d bits", c.Label, n.Label, d)
					}
				}
			}
		}
		if len(seen) != 1<<length {
			t.Errorf("%d cells at length %d", len(seen), length)
		}
	}
}

// Symmetric cells, mirrored at the line of an earlier split, are neighbours too (Walkad §IV-A).
func TestMirroredCellsDifferInOneBit(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		x := rapid.Uint16Range(0, DomainSize-1).Draw(t, "x")
		size := uint16(2) << rapid.IntRange(0, axisBits-1).Draw(t, "split") // width of the cell that was split
		mirrored := x&^(size-1) | (size - 1 - x&(size-1))
		if d := bits.OnesCount16(labelAt(x, 0, MaxLabel).Gray() ^ labelAt(mirrored, 0, MaxLabel).Gray()); d != 1 {
			t.Fatalf("%d and %d differ in %d bits", x, mirrored, d)
		}
	})
}

func FuzzParseLabel(f *testing.F) {
	f.Add("")
	f.Add("0110")
	f.Add("0110011001100")
	f.Fuzz(func(t *testing.T, text string) {
		l, err := ParseLabel(text)
		if err != nil {
			return
		}
		if l.String() != text || l.Len() != len(text) {
			t.Fatalf("%q read as %q", text, l)
		}
		var again Label
		if err := again.UnmarshalText([]byte(text)); err != nil || again != l {
			t.Fatalf("%q read again as %q, %v", text, again, err)
		}
	})
}
