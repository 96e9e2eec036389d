package chunk

import "slices"

// maxPalette is the longest palette; sections with more kinds of blocks store ids directly.
const maxPalette = 256

// section is 32³ blocks, stored as packed indices into a palette.
//
// The palette may hold blocks that no index refers to any more (Set leaves them), in any order; canonical brings it
// into the codec's form.
type section struct {
	// shift is log2 of the bits of an index, 0 to 4. Index i stands in words[i<<shift>>6] at bit (i<<shift)&63.
	shift uint8
	// touched means that Set was called; otherwise the section is canonical.
	touched bool
	// palette has 1 to 2^bits blocks without repetition, or is nil: then indices have 16 bits and are the ids.
	palette []Block
	// words is nil when the whole section is palette[0].
	words []uint64
}

func uniform(b Block) section { return section{palette: []Block{b}} }

// newWords allocates words for indices of 1<<shift bits.
func newWords(shift uint8) []uint64 { return make([]uint64, SectionBlocks<<shift/64) }

// shiftFor returns log2 of the bits of an index into n ≥ 2 palette entries.
func shiftFor(n int) uint8 {
	switch {
	case n <= 2:
		return 0
	case n <= 4:
		return 1
	case n <= 16:
		return 2
	case n <= maxPalette:
		return 3
	}
	return 4
}

func (s *section) get(i uint32) Block {
	if s.words == nil {
		return s.palette[0]
	}
	v := s.index(i)
	if s.palette == nil {
		return Block(v)
	}
	return s.palette[v]
}

// index returns the packed index of block i. The section must not be uniform.
func (s *section) index(i uint32) uint64 {
	at := i << s.shift
	return s.words[at>>6] >> (at & 63) & (1<<(1<<s.shift) - 1)
}

func (s *section) setIndex(i uint32, v uint64) {
	at := i << s.shift
	word := &s.words[at>>6]
	*word = *word&^((1<<(1<<s.shift)-1)<<(at&63)) | v<<(at&63)
}

func (s *section) set(i uint32, b Block) {
	s.touched = true
	if s.palette == nil {
		s.setIndex(i, uint64(b))
		return
	}
	v := slices.Index(s.palette, b)
	if v < 0 {
		v = s.add(b)
	}
	if s.words != nil {
		s.setIndex(i, uint64(v))
	}
}

// add appends a block to the palette, widening the indices if they must, and returns the index that names it.
func (s *section) add(b Block) int {
	n := len(s.palette)
	switch shift := shiftFor(n + 1); {
	case s.words == nil:
		s.words = newWords(0)
	case shift == 4:
		s.widen(shift)
		return int(b)
	case shift != s.shift:
		s.widen(shift)
	}
	s.palette = append(s.palette, b)
	return n
}

// widen rewrites the indices with 1<<shift bits; with 16 bits, as ids without a palette.
func (s *section) widen(shift uint8) {
	wide := section{shift: shift, touched: true, palette: s.palette, words: newWords(shift)}
	if shift == 4 {
		wide.palette = nil
	}
	for i := range uint32(SectionBlocks) {
		v := s.index(i)
		if wide.palette == nil {
			v = uint64(s.palette[v])
		}
		wide.setIndex(i, v)
	}
	*s = wide
}

// dense writes all blocks to dst, which has SectionBlocks places.
func (s *section) dense(dst []Block) {
	if s.words == nil {
		for i := range dst {
			dst[i] = s.palette[0]
		}
		return
	}
	perWord, mask := 64>>s.shift, uint64(1)<<(1<<s.shift)-1
	for w, word := range s.words {
		for i := range perWord {
			v := word >> (i << s.shift) & mask
			if s.palette == nil {
				dst[w*perWord+i] = Block(v)
			} else {
				dst[w*perWord+i] = s.palette[v]
			}
		}
	}
}

// canonical returns the section in the codec's form: the palette in order of first appearance, the indices as narrow as
// possible. The result may share memory with s.
func (s *section) canonical() section {
	if !s.touched {
		return *s
	}
	var blocks [SectionBlocks]Block
	s.dense(blocks[:])
	return pack(blocks[:])
}

func (s *section) clone() section {
	return section{shift: s.shift, touched: s.touched, palette: slices.Clone(s.palette), words: slices.Clone(s.words)}
}
