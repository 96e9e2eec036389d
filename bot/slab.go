package bot

import (
	"fmt"

	"github.com/voxelpopuli/voxeld/chunk"
	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/wire"
)

// nameOf returns the packet's name in the dissertation (table 3.4).
func nameOf(p wire.Packet) string {
	switch p.(type) {
	case wire.PlayerRegister:
		return "PLAYER_REGISTER"
	case wire.PlayerDeregister:
		return "PLAYER_DEREGISTER"
	case wire.PlayerMove:
		return "PLAYER_MOVE"
	case wire.ChunkContents:
		return "CHUNK_DATA"
	case wire.TimeOfDay:
		return "TIME"
	case wire.BlockWrite:
		return "BLOCK_CHANGE"
	default:
		return "unknown"
	}
}

// unpackSlab decodes a line of CHUNK_DATA.
func unpackSlab(line []byte) (*chunk.Chunk, error) {
	packet, err := wire.DecodePacket(line)
	if err != nil {
		return nil, err
	}
	contents, ok := packet.(wire.ChunkContents)
	if !ok {
		return nil, fmt.Errorf("read land: packet is %s", nameOf(packet))
	}
	blocks := make([]chunk.Block, len(contents.Blocks))
	for x := range grid.ChunkSize {
		for y := range wire.SlabHeight {
			for z := range grid.ChunkSize {
				blocks[chunk.IndexOf(x, y, z)] = chunk.Block(contents.Blocks[wire.SlabIndex(x, y, z)])
			}
		}
	}
	return chunk.FromBlocks(blocks)
}
