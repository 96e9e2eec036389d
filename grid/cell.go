package grid

import (
	"fmt"
	"strconv"
	"strings"
)

// Cell is a node of a domain's trie. Cells are comparable with ==.
// Its text, JSON and CBOR form is the result of String.
type Cell struct {
	Domain Domain
	Label  Label
}

// CellAt returns the cell with a label of the given length that holds the chunk.
// It panics unless 0 ≤ length ≤ MaxLabel.
func CellAt(c ChunkPos, length int) Cell {
	if length < 0 || length > MaxLabel {
		panic(fmt.Sprintf("grid: label length %d", length))
	}
	width, depth := span(length)
	x, z := uint16(c.X&(DomainSize-1)), uint16(c.Z&(DomainSize-1))
	return Cell{Domain: c.Domain(), Label: labelAt(x/uint16(width), z/uint16(depth), length)}
}

// span returns the size, in chunks along X and along Z, of cells whose labels have the given length.
func span(length int) (width, depth int32) {
	return DomainSize >> ((length + 1) / 2), DomainSize >> (length / 2)
}

// Area returns the chunks that the cell covers.
func (c Cell) Area() Area {
	width, depth := span(c.Label.Len())
	// The label's bits, padded to MaxLabel, are the place of the cell's lowest chunk in its domain.
	x, z := deinterleave(c.Label.bits)
	minX, minZ := c.Domain.X<<domainShift+int32(x), c.Domain.Z<<domainShift+int32(z)
	return Area{MinX: minX, MinZ: minZ, MaxX: minX + width, MaxZ: minZ + depth}
}

// Contains reports whether the chunk lies in the cell.
func (c Cell) Contains(p ChunkPos) bool { return CellAt(p, c.Label.Len()) == c }

// Covers reports whether all of the other cell's chunks lie in the cell.
func (c Cell) Covers(other Cell) bool {
	area := other.Area()
	return c.Label.Len() <= other.Label.Len() && c.Contains(ChunkPos{X: area.MinX, Z: area.MinZ})
}

// Children returns the cell's lower and upper half. It panics if the label is full.
func (c Cell) Children() (lower, upper Cell) {
	return Cell{c.Domain, c.Label.Child(0)}, Cell{c.Domain, c.Label.Child(1)}
}

// Parent returns the cell that this one is half of. It panics for a domain's root.
func (c Cell) Parent() Cell { return Cell{c.Domain, c.Label.Parent()} }

// Adjacent returns the cells of the same label length around this one, by Z and then by X. There are eight, also across
// the borders of domains, but fewer at the edge of the world.
func (c Cell) Adjacent() []Cell {
	area := c.Area()
	width, depth := span(c.Label.Len())
	around := make([]Cell, 0, 8)
	for dz := int32(-1); dz <= 1; dz++ {
		for dx := int32(-1); dx <= 1; dx++ {
			p := ChunkPos{X: area.MinX + dx*width, Z: area.MinZ + dz*depth}
			if (dx != 0 || dz != 0) && p.Valid() {
				around = append(around, CellAt(p, c.Label.Len()))
			}
		}
	}
	return around
}

// String returns "dx,dz/label", for example "-1,0/0110"; a domain's root is "-1,0/".
func (c Cell) String() string { return c.Domain.String() + "/" + c.Label.String() }

// ParseCell parses exactly what String returns, and rejects domains outside the world.
func ParseCell(text string) (Cell, error) {
	domain, label, found := strings.Cut(text, "/")
	if !found {
		return Cell{}, fmt.Errorf("parse cell %q: want dx,dz/label", clip(text))
	}
	d, err := parseDomain(domain)
	if err != nil {
		return Cell{}, fmt.Errorf("parse cell: %w", err)
	}
	l, err := ParseLabel(label)
	if err != nil {
		return Cell{}, fmt.Errorf("parse cell: %w", err)
	}
	return Cell{d, l}, nil
}

func parseDomain(text string) (Domain, error) {
	x, z, found := strings.Cut(text, ",")
	dx, errX := strconv.ParseInt(x, 10, 32)
	dz, errZ := strconv.ParseInt(z, 10, 32)
	d := Domain{X: int32(dx), Z: int32(dz)}
	// One cell has one text: no "+1", "-0" or "007".
	if !found || errX != nil || errZ != nil || d.String() != text {
		return Domain{}, fmt.Errorf("parse domain %q: want dx,dz", clip(text))
	}
	if !d.Valid() {
		return Domain{}, fmt.Errorf("parse domain %q: out of the world", text)
	}
	return d, nil
}

// clip bounds how much of its input, in bytes, an error message repeats.
func clip(text string) string { return text[:min(len(text), 64)] }

// MarshalText writes what String does.
func (c Cell) MarshalText() ([]byte, error) { return []byte(c.String()), nil }

// UnmarshalText reads what ParseCell does.
func (c *Cell) UnmarshalText(text []byte) error {
	read, err := ParseCell(string(text))
	if err != nil {
		return err
	}
	*c = read
	return nil
}

// MarshalBinary returns the same bytes as MarshalText. CBOR encoders call it by default; without it they would encode
// the fields, and Label has no exported ones.
func (c Cell) MarshalBinary() ([]byte, error) { return c.MarshalText() }

// UnmarshalBinary reads what MarshalBinary writes.
func (c *Cell) UnmarshalBinary(text []byte) error { return c.UnmarshalText(text) }
