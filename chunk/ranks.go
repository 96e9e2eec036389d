package chunk

// ranks numbers blocks in the order in which they are first asked for, from 0.
type ranks struct {
	order []Block
	small [256]uint16 // rank + 1 of ids below 256; 0 if not seen. Most worlds use no others
	large map[Block]uint16
}

func (r *ranks) rank(b Block) uint16 {
	if int(b) < len(r.small) {
		if r.small[b] == 0 {
			r.order = append(r.order, b)
			r.small[b] = uint16(len(r.order))
		}
		return r.small[b] - 1
	}
	rank, seen := r.large[b]
	if !seen {
		if r.large == nil {
			r.large = make(map[Block]uint16)
		}
		rank = uint16(len(r.order)) // at most SectionBlocks - 1
		r.order = append(r.order, b)
		r.large[b] = rank
	}
	return rank
}
