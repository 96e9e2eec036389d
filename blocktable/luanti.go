package blocktable

import "github.com/voxelpopuli/voxeld/chunk"

// Luanti keeps three numbers of nodes for itself.
const (
	luantiFirstKept = 125
	luantiAir       = 126
	luantiKept      = 3
)

// ToLuanti returns the number of the node that is a block in Luanti. Its nodes are defined by the server, one for each
// block, so a block looks like itself there. That of an unknown block is stone.
func ToLuanti(b chunk.Block) uint16 {
	switch {
	case b == chunk.Air:
		return luantiAir
	case !b.Known():
		b = chunk.Stone
	}
	if b >= luantiFirstKept {
		return uint16(b) + luantiKept
	}
	return uint16(b)
}
