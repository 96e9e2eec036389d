package grid

import (
	"fmt"
	"strings"
)

const (
	// MaxLabel is the longest label, in bits. Its cells are single chunks.
	MaxLabel = 12
	// FoundingLabel is the length of label at which the catalog founds cells: 16×16 chunks.
	FoundingLabel = 4

	axisBits = MaxLabel / 2 // a label's bits for one axis, at most
)

// Label names a node of a domain's binary trie: the path from the root, one bit a step, at most MaxLabel.
// Bits 0, 2, 4, … halve the area across X, bits 1, 3, 5, … across Z; 0 is the lower half.
// The zero Label is the root. Labels are comparable with ==.
type Label struct {
	bits uint16 // left-aligned in MaxLabel bits: bit 0 of the label is 1<<11; zero beyond n
	n    uint8  // 0 to MaxLabel
}

// ParseLabel parses the result of String: up to MaxLabel characters 0 and 1.
func ParseLabel(text string) (Label, error) {
	if len(text) > MaxLabel {
		return Label{}, fmt.Errorf("parse label: %d bits, more than %d", len(text), MaxLabel)
	}
	var l Label
	for i := range len(text) {
		switch text[i] {
		case '0':
			l = l.Child(0)
		case '1':
			l = l.Child(1)
		default:
			return Label{}, fmt.Errorf("parse label %q: want only 0 and 1", text)
		}
	}
	return l, nil
}

// labelAt returns the label of length n whose cell lies at (x, z), counted in cells from the domain's lowest corner.
func labelAt(x, z uint16, n int) Label {
	xBits, zBits := (n+1)/2, n/2
	return Label{bits: interleave(x<<(axisBits-xBits), z<<(axisBits-zBits)), n: uint8(n)}
}

// Len returns the number of bits.
func (l Label) Len() int { return int(l.n) }

// Bit returns bit i, 0 or 1, counted from the root. It panics unless 0 ≤ i < Len.
func (l Label) Bit(i int) int {
	if i < 0 || i >= l.Len() {
		panic(fmt.Sprintf("grid: bit %d of label %q", i, l))
	}
	return int(l.bits>>(MaxLabel-1-i)) & 1
}

// Child returns the label with one more bit, 0 or 1. It panics if the label is full (MaxLabel bits).
func (l Label) Child(bit int) Label {
	if l.n >= MaxLabel || bit&^1 != 0 {
		panic(fmt.Sprintf("grid: child %d of label %q", bit, l))
	}
	return Label{bits: l.bits | uint16(bit)<<(MaxLabel-1-l.n), n: l.n + 1}
}

// Parent returns the label without its last bit. It panics for the root.
func (l Label) Parent() Label {
	if l.n == 0 {
		panic("grid: parent of the root label")
	}
	n := l.n - 1
	return Label{bits: l.bits &^ (1<<(MaxLabel-n) - 1), n: n}
}

// String returns the bits as characters, "0110"; the root is "".
func (l Label) String() string {
	var text strings.Builder
	for i := range l.Len() {
		text.WriteByte('0' + byte(l.Bit(i)))
	}
	return text.String()
}

// MarshalText writes what String does.
func (l Label) MarshalText() ([]byte, error) { return []byte(l.String()), nil }

// UnmarshalText reads what ParseLabel does.
func (l *Label) UnmarshalText(text []byte) error {
	read, err := ParseLabel(string(text))
	if err != nil {
		return err
	}
	*l = read
	return nil
}

// MarshalBinary returns the same bytes as MarshalText, for the same reason as Cell.MarshalBinary.
func (l Label) MarshalBinary() ([]byte, error) { return l.MarshalText() }

// UnmarshalBinary reads what MarshalBinary writes.
func (l *Label) UnmarshalBinary(text []byte) error { return l.UnmarshalText(text) }

// Gray returns the label's cell-ID: MaxLabel bits, the Gray code of the label padded with zeros at the low end.
//
// Two cells of equal label length that share a side differ in exactly one bit of it (Walkad §IV-A). The paper describes
// one dimension and says of more that "the cell split mechanism is applied independently to each dimension". So the
// bits of each axis are Gray-coded separately and then interleaved again. (Coding the interleaved bits as one number
// would keep only neighbours along a Z-curve together.) A child's code begins with its parent's.
func (l Label) Gray() uint16 {
	x, z := deinterleave(l.bits)
	xBits, zBits := (l.Len()+1)/2, l.Len()/2
	x = Gray(x>>(axisBits-xBits)) << (axisBits - xBits)
	z = Gray(z>>(axisBits-zBits)) << (axisBits - zBits)
	return interleave(x, z)
}

// Gray returns the binary reflected Gray code of v: codes of successive numbers differ in one bit (Walkad §III-B).
func Gray(v uint16) uint16 { return v ^ v>>1 }

// interleave merges two numbers of axisBits bits into one of MaxLabel bits, x's highest bit first.
func interleave(x, z uint16) uint16 {
	var bits uint16
	for i := axisBits - 1; i >= 0; i-- {
		bits = bits<<2 | x>>i&1<<1 | z>>i&1
	}
	return bits
}

// deinterleave is the inverse of interleave.
func deinterleave(bits uint16) (x, z uint16) {
	for i := axisBits - 1; i >= 0; i-- {
		x = x<<1 | bits>>(2*i+1)&1
		z = z<<1 | bits>>(2*i)&1
	}
	return x, z
}
