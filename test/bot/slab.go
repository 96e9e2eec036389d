package bot

import (
	"fmt"

	"github.com/voxelpopuli/voxeld/chunk"
	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/wire/legacymsg"
)

// nameOf returns the packet's name in the dissertation (table 3.4).
func nameOf(p legacymsg.Packet) string {
	switch p.(type) {
	case legacymsg.PlayerRegister:
		return "PLAYER_REGISTER"
	case legacymsg.PlayerDeregister:
		return "PLAYER_DEREGISTER"
	case legacymsg.PlayerMove:
		return "PLAYER_MOVE"
	case legacymsg.ChunkContents:
		return "CHUNK_DATA"
	case legacymsg.TimeOfDay:
		return "TIME"
	case legacymsg.BlockWrite:
		return "BLOCK_CHANGE"
	default:
		return "unknown"
	}
}

// unpackSlab decodes a line of CHUNK_DATA.
func unpackSlab(line []byte) (*chunk.Chunk, error) {
	packet, err := legacymsg.DecodePacket(line)
	if err != nil {
		return nil, err
	}
	contents, ok := packet.(legacymsg.ChunkContents)
	if !ok {
		return nil, fmt.Errorf("read land: packet is %s", nameOf(packet))
	}
	blocks := make([]chunk.Block, len(contents.Blocks))
	for x := range grid.ChunkSize {
		for y := range legacymsg.SlabHeight {
			for z := range grid.ChunkSize {
				blocks[chunk.IndexOf(x, y, z)] = chunk.Block(contents.Blocks[legacymsg.SlabIndex(x, y, z)])
			}
		}
	}
	return chunk.FromBlocks(blocks)
}
