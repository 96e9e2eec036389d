package world

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/voxelpopuli/voxeld/grid"
)

// Barrier is a log entry that changes nothing. Its position in the log is a moment that is the same on all members. At
// a barrier the members take digests of their land (docs/adr/0010), and the members that it lists repair parts of their
// copies; or it is the moment of a backup (docs/adr/0043).
type Barrier struct {
	Nonce   uint64 // identifies the barrier to the member that proposed it
	Repairs []Repair
	// Need is how many members must report the same digest of a part before it counts as correct. Not used without
	// Repairs.
	Need int
	// Backup means that nothing is compared: members store the land as of the barrier, so that they can sign the same.
	// It has no Repairs.
	Backup bool
}

// Repair states that the Damaged members (peer ids) have a wrong part, and that the Sources have the right one.
type Repair struct {
	Part    Part
	Damaged []string
	Sources []string
}

// MaxRepairs bounds the parts that one barrier repairs, and MaxBarrierPeers the members that each of them lists.
const (
	MaxRepairs      = 512
	MaxBarrierPeers = 16
	maxBarrierPeer  = 256 // bytes of a peer id
)

// needBackup is what a barrier for a backup has in the place of Need.
const needBackup = 1

var errBarrier = errors.New("malformed barrier")

// Kinds of parts in a barrier.
const (
	partChunk     = 0
	partSequences = 1
)

// Encode returns the bytes of the barrier: tag, nonce u64 big-endian, need uvarint (1 without repairs: Backup),
// repairs (count; kind, X and Z as varints, damaged and sources: count and texts).
func (m Barrier) Encode() []byte {
	b := binary.BigEndian.AppendUint64([]byte{tagBarrier}, m.Nonce)
	need := m.Need
	if m.Backup {
		need = needBackup
	}
	b = binary.AppendUvarint(b, uint64(need))
	b = binary.AppendUvarint(b, uint64(len(m.Repairs)))
	for _, repair := range m.Repairs {
		kind := byte(partChunk)
		if repair.Part.Sequences {
			kind = partSequences
		}
		b = append(b, kind)
		b = binary.AppendVarint(b, int64(repair.Part.Chunk.X))
		b = binary.AppendVarint(b, int64(repair.Part.Chunk.Z))
		for _, peers := range [][]string{repair.Damaged, repair.Sources} {
			b = binary.AppendUvarint(b, uint64(len(peers)))
			for _, peer := range peers {
				b = appendText(b, peer)
			}
		}
	}
	return b
}

// DecodeBarrier decodes what Encode wrote.
func DecodeBarrier(data []byte) (Barrier, error) {
	if len(data) < 9 || data[0] != tagBarrier {
		return Barrier{}, errBarrier
	}
	m := Barrier{Nonce: binary.BigEndian.Uint64(data[1:])}
	r := reader{data: data[9:]}
	if need := r.uvarint(); need <= MaxBarrierPeers {
		m.Need = int(need)
	} else {
		r.fail()
	}
	n := r.count(5)
	if n > MaxRepairs {
		r.fail()
	}
	for range n {
		if r.bad {
			break
		}
		repair := Repair{}
		switch r.bytes(1)[0] {
		case partChunk:
		case partSequences:
			repair.Part.Sequences = true
		default:
			r.fail()
		}
		repair.Part.Chunk = grid.ChunkPos{X: r.int32(), Z: r.int32()}
		if repair.Part.Sequences && repair.Part.Chunk != (grid.ChunkPos{}) {
			r.fail()
		}
		repair.Damaged, repair.Sources = r.peers(), r.peers()
		m.Repairs = append(m.Repairs, repair)
	}
	if r.bad || len(r.data) != 0 {
		return Barrier{}, fmt.Errorf("%w of %d bytes", errBarrier, len(data))
	}
	if len(m.Repairs) == 0 && m.Need == needBackup {
		m.Need, m.Backup = 0, true
	}
	return m, nil
}

func (r *reader) peers() []string {
	n := r.count(1)
	if n > MaxBarrierPeers {
		r.fail()
		return nil
	}
	var peers []string
	for range n {
		peers = append(peers, r.text(maxBarrierPeer))
	}
	return peers
}
