package world

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// Barrier is a log entry that changes nothing. Its position in the log is a moment that is the same on all members. At a
// barrier the members take digests of their land (docs/adr/0010), or it is the moment of a backup (docs/adr/0043).
type Barrier struct {
	Nonce uint64 // identifies the barrier to the member that proposed it
	// Backup means that nothing is compared: members store the land as of the barrier, so that they can sign the same.
	Backup bool
}

// barrierVersion is the first byte of a barrier; a batch has its own version there. A node without support for barriers refuses
// them, which changes nothing either.
const barrierVersion = 2

var errBarrier = errors.New("malformed barrier")

// Encode returns the bytes of the barrier: version, nonce u64 big-endian, 1 for a backup, else 0, and 0.
func (m Barrier) Encode() []byte {
	b := binary.BigEndian.AppendUint64([]byte{barrierVersion}, m.Nonce)
	if m.Backup {
		return append(b, 1, 0)
	}
	return append(b, 0, 0)
}

// IsBarrier reports whether a log entry is a barrier rather than a batch.
func IsBarrier(entry []byte) bool { return len(entry) > 0 && entry[0] == barrierVersion }

// DecodeBarrier decodes what Encode wrote.
func DecodeBarrier(data []byte) (Barrier, error) {
	if !IsBarrier(data) || len(data) != 11 || data[9] > 1 || data[10] != 0 {
		return Barrier{}, fmt.Errorf("%w of %d bytes", errBarrier, len(data))
	}
	return Barrier{Nonce: binary.BigEndian.Uint64(data[1:]), Backup: data[9] == 1}, nil
}
