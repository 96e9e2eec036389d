package player

import (
	"strconv"

	"github.com/voxelpopuli/voxeld/grid"
)

// ProofText returns the text that a player signs to prove ownership of a key: the lines "voxeld session 1", the world's
// id and the server's nonce (Login.Nonce), with a line feed between them and none at the end. It includes the world so that a node
// of another world cannot relay the challenge.
func ProofText(nonce, worldID string) []byte {
	return []byte("voxeld session 1\n" + worldID + "\n" + nonce)
}

// EditText returns the text that a player signs to change a block: the lines "voxeld edit 1", the world's id, the sequence number, x, y, z
// and the block's id, the numbers in decimal, with a line feed between them and none at the end.
func EditText(world string, seq uint64, pos grid.Pos, block uint16) []byte {
	b := make([]byte, 0, len("voxeld edit 1\n")+len(world)+64)
	b = append(append(b, "voxeld edit 1\n"...), world...)
	b = strconv.AppendUint(append(b, '\n'), seq, 10)
	for _, n := range [...]int32{pos.X, pos.Y, pos.Z} {
		b = strconv.AppendInt(append(b, '\n'), int64(n), 10)
	}
	return strconv.AppendUint(append(b, '\n'), uint64(block), 10)
}
