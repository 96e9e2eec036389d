package chunk

import "encoding/binary"

// patch is how many blocks are packed at once: their indices fill whole words, whatever their width.
const patch = 64

// pack returns the canonical section of SectionBlocks blocks. Land is similar from one height to the next, so a patch
// that equals the one below is not processed again.
func pack(blocks []Block) section {
	if alike(blocks) {
		return uniform(blocks[0])
	}
	var kinds ranks
	var again [SectionBlocks / patch]bool // the patch equals the one below
	var indices [SectionBlocks]byte       // not of patches that repeat
	for p := range again {
		own := (*[patch]Block)(blocks[p*patch:])
		if p >= layer/patch && *own == *(*[patch]Block)(blocks[p*patch-layer:]) {
			again[p] = true
			continue
		}
		to := (*[patch]byte)(indices[p*patch:])
		for i, b := range own {
			to[i] = byte(kinds.rank(b)) // no shortcut for equal neighbours: a mispredicted branch costs more
		}
	}
	shift := shiftFor(len(kinds.order))
	if shift == 4 {
		return packIDs(blocks)
	}
	s := section{shift: shift, palette: kinds.order, words: newWords(shift)}
	n := 1 << shift // words of a patch
	for p, skip := range again {
		to := s.words[p*n : (p+1)*n]
		if skip {
			copy(to, s.words[p*n-layer/patch*n:])
		} else {
			squeeze(to, (*[patch]byte)(indices[p*patch:]), shift)
		}
	}
	return s
}

// alike reports whether all blocks of a section are of one kind.
func alike(blocks []Block) bool {
	lowest := (*[layer]Block)(blocks)
	for _, b := range lowest {
		if b != lowest[0] {
			return false
		}
	}
	for i := layer; i < SectionBlocks; i += layer {
		if *(*[layer]Block)(blocks[i:]) != *lowest {
			return false
		}
	}
	return true
}

// packIDs packs a section with too many kinds of blocks for a palette.
func packIDs(blocks []Block) section {
	s := section{shift: 4, words: newWords(4)}
	for i, b := range blocks {
		s.words[i/4] |= uint64(b) << (i % 4 * 16)
	}
	return s
}

// squeeze packs a patch's indices into words, with 1<<shift bits each, at most 8. It moves the indices of 8 blocks
// together in three steps: pairs, fours, all.
func squeeze(words []uint64, indices *[patch]byte, shift uint8) {
	bits := uint(1) << shift
	pairs := (1<<(2*bits) - 1) * uint64(0x0001_0001_0001_0001)
	fours := (1<<(4*bits) - 1) * uint64(0x0000_0001_0000_0001)
	all := ^uint64(0) >> (64 - 8*bits)
	var loose, tight uint64 // the last eight indices, before and after
	for i := range words {
		var word uint64
		for at := uint(0); at < 64; at += 8 * bits {
			if v := binary.LittleEndian.Uint64(indices[(uint(i)*64+at)>>shift:]); v != loose {
				loose = v
				v = (v | v>>(8-bits)) & pairs
				v = (v | v>>(16-2*bits)) & fours
				tight = (v | v>>(32-4*bits)) & all
			}
			word |= tight << at
		}
		words[i] = word
	}
}
