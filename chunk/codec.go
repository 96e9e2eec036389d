package chunk

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
)

const codecVersion = 1

// Hash returns the SHA-256 of the column's encoding. Equal columns have equal hashes.
func (c *Chunk) Hash() [32]byte {
	b, _ := c.AppendBinary(nil) // never fails: the error is encoding.BinaryAppender's
	return HashOf(b)
}

// HashOf returns the Hash of the column that has that encoding.
func HashOf(encoding []byte) [32]byte { return sha256.Sum256(encoding) }

// MarshalBinary returns the column's only encoding (see the package's documentation). The error is always nil.
func (c *Chunk) MarshalBinary() ([]byte, error) { return c.AppendBinary(nil) }

// AppendBinary appends what MarshalBinary returns. The error is always nil.
func (c *Chunk) AppendBinary(b []byte) ([]byte, error) {
	size := 2
	for i := range c.sections {
		size += 3 + 2*len(c.sections[i].palette) + 8*len(c.sections[i].words)
	}
	b = append(slices.Grow(b, size), codecVersion, byte(len(c.sections)))
	for i := range c.sections {
		s := c.sections[i].canonical()
		b = s.append(b)
	}
	return b, nil
}

// append appends a canonical section.
func (s *section) append(b []byte) []byte {
	b = append(b, s.bits())
	if s.palette != nil {
		b = binary.LittleEndian.AppendUint16(b, uint16(len(s.palette)))
		for _, id := range s.palette {
			b = binary.LittleEndian.AppendUint16(b, uint16(id))
		}
	}
	n := len(b)
	b = slices.Grow(b, 8*len(s.words))[:n+8*len(s.words)]
	words := b[n:]
	for i, word := range s.words {
		binary.LittleEndian.PutUint64(words[8*i:], word)
	}
	return b
}

// bits returns the width of an index as the codec counts it: 0 for a uniform section.
func (s *section) bits() byte {
	if s.words == nil {
		return 0
	}
	return 1 << s.shift
}

var errShort = errors.New("ends too early")

// Decode decodes exactly one column; b must be its canonical encoding. Block ids need not be Known. It allocates at
// most 32 KiB per section beyond its input.
func Decode(b []byte) (*Chunk, error) {
	if len(b) < 2 {
		return nil, fmt.Errorf("decode column: %w", errShort)
	}
	if b[0] != codecVersion {
		return nil, fmt.Errorf("decode column: version %d, want %d", b[0], codecVersion)
	}
	n := int(b[1])
	if n < 1 || n > MaxSections {
		return nil, fmt.Errorf("decode column: %d sections, want 1 to %d", n, MaxSections)
	}
	c := &Chunk{sections: make([]section, n)}
	rest := b[2:]
	for i := range c.sections {
		var err error
		if c.sections[i], rest, err = decodeSection(rest); err != nil {
			return nil, fmt.Errorf("decode section %d: %w", i, err)
		}
	}
	if len(rest) > 0 {
		return nil, fmt.Errorf("decode column: %d bytes too many", len(rest))
	}
	return c, nil
}

// decodeSection reads one section and returns the bytes after it.
func decodeSection(b []byte) (section, []byte, error) {
	if len(b) < 1 {
		return section{}, nil, errShort
	}
	bits, b := b[0], b[1:]
	shift := slices.Index([]byte{1, 2, 4, 8, 16}, bits)
	if bits != 0 && shift < 0 {
		return section{}, nil, fmt.Errorf("indices of %d bits", bits)
	}
	var palette []Block
	if bits < 16 {
		var err error
		if palette, b, err = decodePalette(b); err != nil {
			return section{}, nil, err
		}
	}
	if bits == 0 {
		if len(palette) != 1 {
			return section{}, nil, fmt.Errorf("palette of %d for a uniform section", len(palette))
		}
		return uniform(palette[0]), b, nil
	}
	s := section{shift: uint8(shift), palette: palette}
	size := SectionBlocks * int(bits) / 8
	if len(b) < size {
		return section{}, nil, errShort
	}
	s.words = newWords(s.shift)
	for i := range s.words {
		s.words[i] = binary.LittleEndian.Uint64(b[i*8:])
	}
	if err := s.checkCanonical(); err != nil {
		return section{}, nil, err
	}
	return s, b[size:], nil
}

func decodePalette(b []byte) ([]Block, []byte, error) {
	if len(b) < 2 {
		return nil, nil, errShort
	}
	n := int(binary.LittleEndian.Uint16(b))
	b = b[2:]
	if n < 1 || n > maxPalette {
		return nil, nil, fmt.Errorf("palette of %d, want 1 to %d", n, maxPalette)
	}
	if len(b) < 2*n {
		return nil, nil, errShort
	}
	palette := make([]Block, n)
	for i := range palette {
		palette[i] = Block(binary.LittleEndian.Uint16(b[2*i:]))
	}
	return palette, b[2*n:], nil
}

// checkCanonical returns an error if a section that is not uniform differs from the result of pack.
func (s *section) checkCanonical() error {
	var seen ranks
	if s.palette == nil {
		for i := range uint32(SectionBlocks) {
			seen.rank(Block(s.index(i)))
		}
		if len(seen.order) <= maxPalette {
			return fmt.Errorf("%d kinds of blocks without a palette", len(seen.order))
		}
		return nil
	}
	if n := len(s.palette); n < 2 || shiftFor(n) != s.shift {
		return fmt.Errorf("palette of %d for indices of %d bits", n, s.bits())
	}
	for i, b := range s.palette {
		if int(seen.rank(b)) != i {
			return fmt.Errorf("block %d twice in the palette", b)
		}
	}
	next := uint64(0) // the indices that appear must be 0, 1, 2, … in this order
	for i := range uint32(SectionBlocks) {
		switch v := s.index(i); {
		case v == next:
			next++
		case v > next:
			return fmt.Errorf("index %d where at most %d can stand", v, next)
		}
	}
	if int(next) != len(s.palette) {
		return fmt.Errorf("%d different indices into a palette of %d", next, len(s.palette))
	}
	return nil
}
