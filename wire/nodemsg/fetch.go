package nodemsg

import (
	"fmt"

	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/wire"
)

// Messages between nodes that compare and repair copies of land. Each exchange has its own stream: one Fetch, then one
// Fetched, framed like link messages (4-byte length, CBOR).

// Fetch requests one thing; exactly one field is set.
type Fetch struct {
	Digests *LogPosition `cbor:"1,keyasint,omitempty"` // digests of a member's copy at a mark
	Part    *PartAt      `cbor:"2,keyasint,omitempty"` // part of a member's copy, kept at a mark that requested it
	Base    *BaseOf      `cbor:"3,keyasint,omitempty"` // the terrain under a chunk's edits
	Freeze  *Freeze      `cbor:"4,keyasint,omitempty"` // all land of a region that is to be merged into its parent, and frozen for that
	Content *ContentOf   `cbor:"5,keyasint,omitempty"` // what the policy names by its hash
}

// ContentOf names a content by its SHA-256.
type ContentOf struct {
	Hash [32]byte `cbor:"1,keyasint"`
}

// Valid always returns nil.
func (ContentOf) Valid() error { return nil }

// Freeze names a region, which the asked node leads, and the attempt of its parent to merge it.
type Freeze struct {
	Group   uint64 `cbor:"1,keyasint"`
	Attempt uint64 `cbor:"2,keyasint,omitempty"`
}

// maxAttempts bounds the attempts to merge the children of one region. A number near the largest integer would make a
// region one that no later attempt can freeze.
const maxAttempts = 1 << 40

// Valid returns an error if there is no region id, or the attempt is impossible.
func (f Freeze) Valid() error {
	if f.Attempt >= maxAttempts {
		return wire.Refuse(wire.FailBadValue, "there is no attempt %d to merge", f.Attempt)
	}
	return checkRegionID(f.Group)
}

// Export asks a node for its copy of a group, for a backup, or for its rows of the tables that are not of one group. It
// has a stream of its own: one Export, one Fetched without data, and unless that has an error, the records of a backup
// up to an End.
type Export struct {
	Group uint64 `cbor:"1,keyasint,omitempty"` // 0: the tables that are not of one group
	// Cell is the region's, zero for the catalog. The log up to Index must be in the rows.
	Cell  grid.Cell `cbor:"2,keyasint"`
	Index uint64    `cbor:"3,keyasint,omitempty"`
	// Attest asks for the node's signature of the rows. If it leads the region, it makes the rows those of a barrier
	// first, so that other members can sign the same.
	Attest bool `cbor:"4,keyasint,omitempty"`
	// NoRows asks for the signature only.
	NoRows bool `cbor:"5,keyasint,omitempty"`
}

// Valid returns an error if the cell is out of the world.
func (e Export) Valid() error { return checkCell(e.Cell) }

// LogPosition is the position of a mark in a group's log.
type LogPosition struct {
	Group uint64 `cbor:"1,keyasint"`
	Index uint64 `cbor:"2,keyasint"`
}

// PartAt names a part of a region's land: a chunk, or, with Sequences, the recorded edit sequences of its players.
type PartAt struct {
	LogPosition
	Chunk     grid.ChunkPos `cbor:"3,keyasint"`
	Sequences bool          `cbor:"4,keyasint,omitempty"`
}

// BaseOf names a chunk's terrain by its hash.
type BaseOf struct {
	Chunk grid.ChunkPos `cbor:"1,keyasint"`
	Hash  [32]byte      `cbor:"2,keyasint"`
}

// Fetched answers a Fetch. Wait means that the answer is not ready yet: ask again soon. Error is for people.
type Fetched struct {
	Wait    bool         `cbor:"1,keyasint,omitempty"`
	Error   string       `cbor:"2,keyasint,omitempty"`
	Digests []PartDigest `cbor:"3,keyasint,omitempty"`
	// Data is a part's rows in the encoding of package world, a chunk in the chunk codec, or a content; deflated (raw,
	// RFC 1951).
	Data []byte `cbor:"4,keyasint,omitempty"`
}

// PartDigest describes a member's copy of one part. Parts that are empty both in memory and on disk are left out.
type PartDigest struct {
	Chunk     grid.ChunkPos `cbor:"1,keyasint"`
	Sequences bool          `cbor:"2,keyasint,omitempty"`
	Memory    [16]byte      `cbor:"3,keyasint"` // digest of the part in memory
	Disk      DiskState     `cbor:"4,keyasint"`
}

// DiskState is the result of comparing a part on disk with the part in memory.
type DiskState uint8

// The states of a part on disk.
const (
	DiskSame     DiskState = iota // the same as in memory
	DiskDiffers                   // readable, but different
	DiskDamaged                   // checksums are wrong
	diskStateEnd                  // not a state; one more than the last
)

// Limits of a Fetch.
const (
	// MaxParts is the most parts that a region has: each chunk of a whole domain, and the sequences.
	MaxParts = 64*64 + 1
	// MaxPartBytes is the most that Fetched.Data may inflate to, in bytes.
	MaxPartBytes = 24 << 20
	// MaxContent is the longest content, in bytes.
	MaxContent = 3 << 20
)

// PackPart deflates (raw, RFC 1951) a part's rows for Fetched.Data.
func PackPart(rows []byte) ([]byte, error) {
	packed, err := wire.NewDeflater().Deflate(rows)
	if err == nil && (len(rows) > MaxPartBytes || len(packed) > wire.MaxFrame-1<<10) {
		return nil, fmt.Errorf("the piece is too large: %d bytes, %d packed", len(rows), len(packed))
	}
	return packed, err
}

// UnpackPart is the inverse of PackPart. It stops with an error if the result would exceed MaxPartBytes.
func UnpackPart(data []byte) ([]byte, error) { return wire.Inflate("piece", data, MaxPartBytes) }

// Valid returns an error unless exactly one field is set, and is valid.
func (f Fetch) Valid() error {
	return exactlyOne("fetch", alternativeOf(f.Digests), alternativeOf(f.Part), alternativeOf(f.Base), alternativeOf(f.Freeze), alternativeOf(f.Content))
}

// Valid returns an error if there is no region id.
func (p LogPosition) Valid() error { return checkRegionID(p.Group) }

// Valid returns an error if there is no region id, or if the chunk is out of the world.
func (p PartAt) Valid() error { return firstError(p.LogPosition.Valid(), checkChunk(p.Chunk)) }

// Valid returns an error if the chunk is out of the world.
func (b BaseOf) Valid() error { return checkChunk(b.Chunk) }

// Valid returns an error if the answer is invalid.
func (f Fetched) Valid() error {
	return firstError(checkList(f.Digests, MaxParts, PartDigest.Valid), wire.CheckText(f.Error))
}

// Valid returns an error if the digest is invalid.
func (p PartDigest) Valid() error {
	if p.Disk >= diskStateEnd {
		return wire.Refuse(wire.FailBadValue, "unknown disk state %d", p.Disk)
	}
	return checkChunk(p.Chunk)
}
