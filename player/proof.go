package player

import (
	"fmt"
	"strconv"

	"github.com/voxelpopuli/voxeld/grid"
)

// ProofText returns the text that a player signs to prove ownership of a key: the lines "voxeld session 1", the world's
// id and the server's nonce (Login.Nonce), with a line feed between them and none at the end. It includes the world so
// that a node of another world cannot relay the challenge.
func ProofText(nonce, worldID string) []byte {
	return []byte("voxeld session 1\n" + worldID + "\n" + nonce)
}

// EditText returns the text that a player signs to change a block: the lines "voxeld edit 1", the world's id, the
// sequence number, x, y, z and the block's id, the numbers in decimal, with a line feed between them and none at the
// end. For a sign with a text, the first line is "voxeld edit 2", and the lines of the text follow.
func EditText(world string, seq uint64, pos grid.Pos, block uint16, sign string) []byte {
	b := make([]byte, 0, len("voxeld edit 1\n")+len(world)+64+len(sign))
	if sign == "" {
		b = append(b, "voxeld edit 1\n"...)
	} else {
		b = append(b, "voxeld edit 2\n"...)
	}
	b = append(b, world...)
	b = strconv.AppendUint(append(b, '\n'), seq, 10)
	for _, n := range [...]int32{pos.X, pos.Y, pos.Z} {
		b = strconv.AppendInt(append(b, '\n'), int64(n), 10)
	}
	b = strconv.AppendUint(append(b, '\n'), uint64(block), 10)
	if sign != "" {
		b = append(append(b, '\n'), sign...)
	}
	return b
}

// BulkText returns what a player signs to make a bulk edit in a chunk: the lines "voxeld bulk edit 1", the world's id,
// the sequence, the chunk's x and z, and the runs in hex.
func BulkText(world string, seq uint64, at grid.ChunkPos, runs string) []byte {
	return fmt.Appendf(nil, "voxeld bulk edit 1\n%s\n%d\n%d\n%d\n%x", world, seq, at.X, at.Z, runs)
}
