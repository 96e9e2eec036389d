package world

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/voxelpopuli/voxeld/grid"
)

// Mark is a log entry that changes nothing. Its position in the log is a moment that is the same on all members. At a
// mark the members take digests of their land (docs/adr/0010), and the members that it lists repair parts of their
// copies.
type Mark struct {
	Nonce uint64 // identifies the mark to the member that proposed it
	Mends []Mend
	// Need is how many members must report the same digest of a part before it counts as correct. Not used without
	// Mends.
	Need int
}

// Mend states that the Damaged members (peer ids) have a wrong part, and that the Sources have the right one.
type Mend struct {
	Part    Part
	Damaged []string
	Sources []string
}

// MaxMends bounds the parts that one mark repairs, and MaxMarkPeers the members that each of them lists.
const (
	MaxMends     = 512
	MaxMarkPeers = 16
	maxMarkPeer  = 256 // bytes of a peer id
)

// markVersion is the first byte of a mark; a batch has its own version there. A node without support for marks refuses
// them, which changes nothing either.
const markVersion = 2

var errMark = errors.New("malformed mark")

// Kinds of parts in a mark.
const (
	partChunk     = 0
	partSequences = 1
)

// Encode returns the bytes of the mark: version, nonce u64 big-endian, need uvarint, mends (count; kind, X and Z as
// varints, damaged and sources: count and texts).
func (m Mark) Encode() []byte {
	b := binary.BigEndian.AppendUint64([]byte{markVersion}, m.Nonce)
	b = binary.AppendUvarint(b, uint64(m.Need))
	b = binary.AppendUvarint(b, uint64(len(m.Mends)))
	for _, mend := range m.Mends {
		kind := byte(partChunk)
		if mend.Part.Sequences {
			kind = partSequences
		}
		b = append(b, kind)
		b = binary.AppendVarint(b, int64(mend.Part.Chunk.X))
		b = binary.AppendVarint(b, int64(mend.Part.Chunk.Z))
		for _, peers := range [][]string{mend.Damaged, mend.Sources} {
			b = binary.AppendUvarint(b, uint64(len(peers)))
			for _, peer := range peers {
				b = appendText(b, peer)
			}
		}
	}
	return b
}

// IsMark reports whether a log entry is a mark rather than a batch.
func IsMark(entry []byte) bool { return len(entry) > 0 && entry[0] == markVersion }

// DecodeMark decodes what Encode wrote.
func DecodeMark(data []byte) (Mark, error) {
	if !IsMark(data) || len(data) < 9 {
		return Mark{}, errMark
	}
	m := Mark{Nonce: binary.BigEndian.Uint64(data[1:])}
	r := reader{data: data[9:]}
	if need := r.uvarint(); need <= MaxMarkPeers {
		m.Need = int(need)
	} else {
		r.fail()
	}
	n := r.count(5)
	if n > MaxMends {
		r.fail()
	}
	for range n {
		if r.bad {
			break
		}
		mend := Mend{}
		switch r.bytes(1)[0] {
		case partChunk:
		case partSequences:
			mend.Part.Sequences = true
		default:
			r.fail()
		}
		mend.Part.Chunk = grid.ChunkPos{X: r.int32(), Z: r.int32()}
		if mend.Part.Sequences && mend.Part.Chunk != (grid.ChunkPos{}) {
			r.fail()
		}
		mend.Damaged, mend.Sources = r.peers(), r.peers()
		m.Mends = append(m.Mends, mend)
	}
	if r.bad || len(r.data) != 0 {
		return Mark{}, fmt.Errorf("%w of %d bytes", errMark, len(data))
	}
	return m, nil
}

func (r *reader) peers() []string {
	n := r.count(1)
	if n > MaxMarkPeers {
		r.fail()
		return nil
	}
	var peers []string
	for range n {
		peers = append(peers, r.text(maxMarkPeer))
	}
	return peers
}
