package grid

// Hamming returns the cells of the same label length in the domain whose cell-IDs (Label.Gray) differ from this one's
// in one bit: the paper's neighbour cell-IDs (Walkad §IV-A). Some of them are adjacent; the others mirror the cell at
// the border between two halves.
func (c Cell) Hamming() []Cell {
	n := c.Label.Len()
	cells := make([]Cell, 0, n)
	for bit := range n {
		// In the Gray code of an axis, a bit changes alone if this and all lower bits of the number change.
		bits := c.Label.bits
		for i := bit; i < n; i += 2 {
			bits ^= 1 << (MaxLabel - 1 - i)
		}
		cells = append(cells, Cell{c.Domain, Label{bits: bits, n: c.Label.n}})
	}
	return cells
}
