package overlay

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
)

// A gossip on the wire:
//
//	byte     KindGossip
//	uvarint  number of updates, 1 to MaxUpdates
//	then for each update, the sender's own first:
//	uint32   origin
//	byte     bits 0–3 the age; bit 4: a velocity follows the place; bit 5: a body follows
//	varint   round of the origin, less the first update's; the first one has all of it as a uint32 instead
//	varint   X, varint Z, in grains, less the first update's; the first one's are whole
//	varint   velocity X, varint Z, in grains a round, if bit 4 is set
//	uint64   body, if bit 5 is set
//
// Numbers of fixed length are little-endian. A forwarded update from within 200 blocks takes 12 bytes.
const (
	grain = 1. / 8 // blocks

	gossipOverhead = 2  // kind and number
	typicalUpdate  = 12 // bytes

	ageMask      = 0x0f
	hasVelocity  = 0x10
	hasBody      = 0x20
	knownBits    = ageMask | hasVelocity | hasBody
	leastUpdate  = 4 + 1 + 3 // origin, plus one byte each of bits, round, X and Z
	mostGrains   = int64(MaxCoordinate / grain)
	firstRoundIs = 4 // bytes
)

// TypicalGossip returns the size of a gossip of n forwarded updates from within 200 blocks, in bytes.
func TypicalGossip(n int) int { return gossipOverhead + n*typicalUpdate }

// grains returns a coordinate in grains.
func grains(v float64) int64 { return int64(math.Round(v / grain)) }

// Grained returns the update as it arrives after encoding and decoding.
func (u Update) Grained() Update {
	round := func(p Point) Point { return Point{float64(grains(p.X)) * grain, float64(grains(p.Z)) * grain} }
	u.At, u.Velocity = round(u.At), round(u.Velocity)
	return u
}

// Append appends the gossip's encoding, which starts with its kind. Updates must be valid.
func (g *Gossip) Append(b []byte) []byte {
	b = append(b, byte(KindGossip))
	b = binary.AppendUvarint(b, uint64(len(g.Updates)))
	for i := range g.Updates {
		u, first := &g.Updates[i], &g.Updates[0]
		b = binary.LittleEndian.AppendUint32(b, uint32(u.Origin))
		b = append(b, u.bits())
		x, z := grains(u.At.X), grains(u.At.Z)
		if i == 0 {
			b = binary.LittleEndian.AppendUint32(b, u.Round)
		} else {
			b = binary.AppendVarint(b, int64(int32(u.Round-first.Round)))
			x, z = x-grains(first.At.X), z-grains(first.At.Z)
		}
		b = binary.AppendVarint(binary.AppendVarint(b, x), z)
		if u.bits()&hasVelocity != 0 {
			b = binary.AppendVarint(binary.AppendVarint(b, grains(u.Velocity.X)), grains(u.Velocity.Z))
		}
		if u.GameData != 0 {
			b = binary.LittleEndian.AppendUint64(b, u.GameData)
		}
	}
	return b
}

func (u *AgedUpdate) bits() byte {
	bits := u.Age & ageMask
	if grains(u.Velocity.X) != 0 || grains(u.Velocity.Z) != 0 {
		bits |= hasVelocity
	}
	if u.GameData != 0 {
		bits |= hasBody
	}
	return bits
}

// Size returns the length of the encoding that Append appends.
func (g *Gossip) Size() int {
	var count [binary.MaxVarintLen64]byte
	size := 1 + binary.PutUvarint(count[:], uint64(len(g.Updates)))
	for i := range g.Updates {
		u, first := &g.Updates[i], &g.Updates[0]
		x, z := grains(u.At.X), grains(u.At.Z)
		size += 4 + 1
		if i == 0 {
			size += firstRoundIs
		} else {
			size += varintSize(int64(int32(u.Round - first.Round)))
			x, z = x-grains(first.At.X), z-grains(first.At.Z)
		}
		size += varintSize(x) + varintSize(z)
		if vx, vz := grains(u.Velocity.X), grains(u.Velocity.Z); vx != 0 || vz != 0 {
			size += varintSize(vx) + varintSize(vz)
		}
		if u.GameData != 0 {
			size += 8
		}
	}
	return size
}

func varintSize(v int64) int {
	size := 1
	for z := uint64(v<<1) ^ uint64(v>>63); z >= 0x80; z >>= 7 {
		size++
	}
	return size
}

// DecodeGossip decodes what Append wrote, with positions rounded to an eighth of a block. It returns an error for
// anything else.
func DecodeGossip(b []byte) (*Gossip, error) {
	r := gossipReader{rest: b}
	if r.byte() != byte(KindGossip) {
		return nil, errors.New("decode gossip: not a gossip")
	}
	n := r.uvarint()
	if r.short || n < 1 || n > MaxUpdates || n*leastUpdate > uint64(len(r.rest)) {
		return nil, fmt.Errorf("decode gossip: %d updates in %d bytes", n, len(b))
	}
	g := &Gossip{Updates: make([]AgedUpdate, n)}
	for i := range g.Updates {
		if !r.update(&g.Updates[i], &g.Updates[0], i == 0) {
			return nil, fmt.Errorf("decode gossip: update %d is truncated or outside of the world", i)
		}
	}
	if len(r.rest) > 0 {
		return nil, fmt.Errorf("decode gossip: %d bytes too many", len(r.rest))
	}
	return g, nil
}

// gossipReader reads numbers from a slice. Once short is set it returns only zeros.
type gossipReader struct {
	rest  []byte
	short bool
}

func (r *gossipReader) next(n int) []byte {
	if n <= 0 || n > len(r.rest) {
		r.short, r.rest = true, nil
		return make([]byte, 8)
	}
	b := r.rest[:n]
	r.rest = r.rest[n:]
	return b
}

func (r *gossipReader) byte() byte     { return r.next(1)[0] }
func (r *gossipReader) uint32() uint32 { return binary.LittleEndian.Uint32(r.next(4)) }
func (r *gossipReader) uint64() uint64 { return binary.LittleEndian.Uint64(r.next(8)) }

func (r *gossipReader) uvarint() uint64 {
	v, n := binary.Uvarint(r.rest)
	r.next(n)
	return v
}

func (r *gossipReader) varint() int64 {
	v, n := binary.Varint(r.rest)
	r.next(n)
	return v
}

// place reads X and Z in grains, relative to those of from.
func (r *gossipReader) place(from Point) (Point, bool) {
	x, z := r.varint(), r.varint()
	for _, v := range [2]int64{x, z} {
		if v < -2*mostGrains || v > 2*mostGrains {
			return Point{}, false
		}
	}
	p := Point{float64(grains(from.X)+x) * grain, float64(grains(from.Z)+z) * grain}
	return p, p.Valid()
}

func (r *gossipReader) update(u, first *AgedUpdate, isFirst bool) bool {
	u.Origin = ID(r.uint32())
	bits := r.byte()
	u.Age = bits & ageMask
	from := Point{}
	if isFirst {
		u.Round = r.uint32()
	} else {
		after := r.varint()
		if after != int64(int32(after)) {
			return false
		}
		u.Round = first.Round + uint32(after)
		from = first.At
	}
	var ok bool
	if u.At, ok = r.place(from); !ok || bits&^knownBits != 0 {
		return false
	}
	if bits&hasVelocity != 0 {
		if u.Velocity, ok = r.place(Point{}); !ok {
			return false
		}
	}
	if bits&hasBody != 0 {
		u.GameData = r.uint64()
	}
	return !r.short
}
