package world

import (
	"crypto/sha256"
	"encoding/binary"
	"math/bits"
)

// Digest is the sum, modulo 2^128, of the first 16 bytes of the SHA-256 of every row of a part: key length as u32
// big-endian, key, value. It does not depend on the order of the rows, and can be updated for one row without reading
// the others. The digest of an empty part is zero. It detects accidents, not forgeries: only a member could forge rows,
// and a member could lie about the digest as well.
type Digest [16]byte

// Add adds a row.
func (d *Digest) Add(key, value []byte) {
	h := rowHash(key, value)
	lo, carry := bits.Add64(d.low(), h.low(), 0)
	hi, _ := bits.Add64(d.high(), h.high(), carry)
	d.set(hi, lo)
}

// Drop removes a row that was added.
func (d *Digest) Drop(key, value []byte) {
	h := rowHash(key, value)
	lo, borrow := bits.Sub64(d.low(), h.low(), 0)
	hi, _ := bits.Sub64(d.high(), h.high(), borrow)
	d.set(hi, lo)
}

func (d *Digest) high() uint64 { return binary.BigEndian.Uint64(d[:8]) }
func (d *Digest) low() uint64  { return binary.BigEndian.Uint64(d[8:]) }

func (d *Digest) set(hi, lo uint64) {
	binary.BigEndian.PutUint64(d[:8], hi)
	binary.BigEndian.PutUint64(d[8:], lo)
}

func rowHash(key, value []byte) Digest {
	var stack [64]byte
	b := binary.BigEndian.AppendUint32(stack[:0], uint32(len(key)))
	b = append(append(b, key...), value...)
	sum := sha256.Sum256(b)
	return Digest(sum[:16])
}
