package grid

import (
	"cmp"
	"encoding/json"
	"fmt"
)

const (
	// ChunkSize is the width of a chunk in blocks, along X and along Z.
	ChunkSize = 32
	// DomainSize is the width of a domain in chunks, along X and along Z.
	DomainSize = 64
	// Limit bounds chunk coordinates: each lies in [-Limit, Limit).
	Limit = 1 << 26

	chunkShift  = 5 // log2 ChunkSize
	domainShift = 6 // log2 DomainSize
	domainLimit = Limit / DomainSize
)

// Pos is the position of a block in the world, in blocks. In JSON and CBOR it is the array [X,Y,Z].
type Pos struct {
	_       struct{} `cbor:",toarray"`
	X, Y, Z int32
}

// Chunk returns the chunk that holds the block. It is valid for every Pos.
func (p Pos) Chunk() ChunkPos { return ChunkPos{X: p.X >> chunkShift, Z: p.Z >> chunkShift} }

// String returns "x,y,z".
func (p Pos) String() string { return fmt.Sprintf("%d,%d,%d", p.X, p.Y, p.Z) }

// MarshalJSON writes [X,Y,Z].
func (p Pos) MarshalJSON() ([]byte, error) { return fmt.Appendf(nil, "[%d,%d,%d]", p.X, p.Y, p.Z), nil }

// UnmarshalJSON reads an array of exactly three int32 integers.
func (p *Pos) UnmarshalJSON(text []byte) error {
	v, err := integers(text, 3)
	if err != nil {
		return fmt.Errorf("read position: %w", err)
	}
	*p = Pos{X: v[0], Y: v[1], Z: v[2]}
	return nil
}

// ChunkPos is the position of a chunk in the world, in chunks. In JSON and CBOR it is the array [X,Z]. JSON with a
// chunk outside the limit is rejected; after decoding CBOR, callers check Valid.
type ChunkPos struct {
	_    struct{} `cbor:",toarray"`
	X, Z int32
}

// Domain returns the domain that holds the chunk.
func (c ChunkPos) Domain() Domain { return Domain{X: c.X >> domainShift, Z: c.Z >> domainShift} }

// Valid reports whether the chunk lies in the world: both coordinates in [-Limit, Limit).
func (c ChunkPos) Valid() bool {
	return c.X >= -Limit && c.X < Limit && c.Z >= -Limit && c.Z < Limit
}

// Origin returns the chunk's block with the lowest coordinates. The chunk must be valid.
func (c ChunkPos) Origin() Pos { return Pos{X: c.X << chunkShift, Z: c.Z << chunkShift} }

// Compare orders chunks by X, then by Z: negative if c comes before d, positive if after, else 0.
func (c ChunkPos) Compare(d ChunkPos) int {
	return cmp.Or(cmp.Compare(c.X, d.X), cmp.Compare(c.Z, d.Z))
}

// Distance returns the distance of two chunks along the longer axis, in chunks.
func (c ChunkPos) Distance(d ChunkPos) int64 {
	dx, dz := int64(c.X)-int64(d.X), int64(c.Z)-int64(d.Z)
	return max(dx, -dx, dz, -dz)
}

// String returns "x,z".
func (c ChunkPos) String() string { return fmt.Sprintf("%d,%d", c.X, c.Z) }

// MarshalJSON writes [X,Z].
func (c ChunkPos) MarshalJSON() ([]byte, error) { return fmt.Appendf(nil, "[%d,%d]", c.X, c.Z), nil }

// UnmarshalJSON reads an array of exactly two integers in [-Limit, Limit).
func (c *ChunkPos) UnmarshalJSON(text []byte) error {
	v, err := integers(text, 2)
	if err != nil {
		return fmt.Errorf("read chunk position: %w", err)
	}
	read := ChunkPos{X: v[0], Z: v[1]}
	if !read.Valid() {
		return fmt.Errorf("read chunk position: %v is out of the world", read)
	}
	*c = read
	return nil
}

// Domain is the position of a domain in the world, in domains. In CBOR it is the array [X,Z].
type Domain struct {
	_    struct{} `cbor:",toarray"`
	X, Z int32
}

// Valid reports whether the domain lies in the world.
func (d Domain) Valid() bool {
	return d.X >= -domainLimit && d.X < domainLimit && d.Z >= -domainLimit && d.Z < domainLimit
}

// String returns "dx,dz". Its SHA-256 determines the XOR of the domain's keys (see Placement).
func (d Domain) String() string { return fmt.Sprintf("%d,%d", d.X, d.Z) }

// integers parses a JSON array of exactly n int32 integers. Nulls, fractions and exponents are rejected.
func integers(text []byte, n int) ([]int32, error) {
	var read []*int32 // pointers, because encoding/json reads null into an int32 without complaint
	if err := json.Unmarshal(text, &read); err != nil {
		return nil, err
	}
	if len(read) != n {
		return nil, fmt.Errorf("want an array of %d integers, got %d", n, len(read))
	}
	values := make([]int32, n)
	for i, v := range read {
		if v == nil {
			return nil, fmt.Errorf("element %d is null", i)
		}
		values[i] = *v
	}
	return values, nil
}
