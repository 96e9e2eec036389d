package chunk

import "fmt"

// Chunk is a column of sections. A section of one kind of block takes some 50 bytes; one of up to 16 kinds, 16 KiB.
type Chunk struct {
	sections []section // 1 to MaxSections, bottom up
}

// FromBlocks packs a column given block by block in the order of Index: whole sections, 1 to MaxSections of them.
func FromBlocks(blocks []Block) (*Chunk, error) {
	n := len(blocks) / SectionBlocks
	if n < 1 || n > MaxSections || len(blocks)%SectionBlocks != 0 {
		return nil, fmt.Errorf("pack column: %d blocks are not 1 to %d sections", len(blocks), MaxSections)
	}
	c := &Chunk{sections: make([]section, n)}
	for i := range c.sections {
		c.sections[i] = pack(blocks[i*SectionBlocks : (i+1)*SectionBlocks])
	}
	return c, nil
}

// Get returns a block. It panics above the column's top.
func (c *Chunk) Get(i Index) Block { return c.sections[i/SectionBlocks].get(uint32(i % SectionBlocks)) }

// Set changes a block. It panics above the column's top. It allocates only if the section's palette has no room for a
// new kind of block.
func (c *Chunk) Set(i Index, b Block) { c.sections[i/SectionBlocks].set(uint32(i%SectionBlocks), b) }

// Sections returns the number of sections.
func (c *Chunk) Sections() int { return len(c.sections) }

// Height returns the height in blocks.
func (c *Chunk) Height() int { return len(c.sections) * SectionBlocks / layer }

// Blocks returns a copy of all blocks in the order of Index.
func (c *Chunk) Blocks() []Block {
	blocks := make([]Block, len(c.sections)*SectionBlocks)
	for i := range c.sections {
		c.sections[i].dense(blocks[i*SectionBlocks : (i+1)*SectionBlocks])
	}
	return blocks
}

// Clone returns a copy that shares no memory with c.
func (c *Chunk) Clone() *Chunk {
	d := &Chunk{sections: make([]section, len(c.sections))}
	for i := range c.sections {
		d.sections[i] = c.sections[i].clone()
	}
	return d
}
