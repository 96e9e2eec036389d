package backup

import (
	"crypto/ed25519"
	"encoding/hex"
	"errors"
	"fmt"
	"time"

	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/trust"
	"github.com/voxelpopuli/voxeld/wire"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
	"github.com/voxelpopuli/voxeld/world"
)

// magic begins every backup; the last byte is the version of the format. What follows is compressed with zstd.
var magic = []byte("voxeld backup\x00\x00\x01")

// The other tables of a backup: their rows are of the whole world, not of one region.
const (
	PlayersTable = "players" // player id → record
	BasesTable   = "bases"   // hash → terrain that some nodes generate differently
	PolicyTable  = "policy"  // number → act of the world's policy
	// ContentsTable is what the policy names by its hash: hash → content.
	ContentsTable = "contents"
)

const (
	// MaxRecord bounds one record, in bytes.
	MaxRecord = wire.MaxFrame
	// RowsBytes is the size from which rows go into the next record.
	RowsBytes = 256 << 10
	// MaxGroup bounds the rows of one group, in bytes.
	MaxGroup  = 256 << 20
	maxGroups = 1 << 22
	maxNodes  = 4096 // whose addresses a header has
	maxCells  = 4096 // of an area
	maxText   = 4096 // bytes
	maxNumber = 1 << 62
	// An epoch contains both of these (region/actor.EpochOf).
	maxIndex     = 1 << 39
	maxRecovered = 1 << 20
)

// ID identifies a backup: the SHA-256 of its records.
type ID [32]byte

// String returns the beginning of the id, for people.
func (id ID) String() string { return hex.EncodeToString(id[:8]) }

// MarshalText returns the whole id in hex digits.
func (id ID) MarshalText() ([]byte, error) { return []byte(hex.EncodeToString(id[:])), nil }

// UnmarshalText reads what MarshalText writes.
func (id *ID) UnmarshalText(text []byte) error {
	if hex.DecodedLen(len(text)) != len(id) {
		return errors.New("an id of a backup has 64 hex digits")
	}
	_, err := hex.Decode(id[:], text)
	return err
}

// Record is one part of a backup; exactly one field is set. The order is: Header, the catalog, regions, tables,
// Summary. After a Group that has rows come its Rows and its End.
type Record struct {
	Header  *Header  `cbor:"1,keyasint,omitempty"`
	Group   *Group   `cbor:"2,keyasint,omitempty"`
	Rows    []byte   `cbor:"3,keyasint,omitempty"` // of the last Group, as world.EncodeRows encodes them
	End     *End     `cbor:"4,keyasint,omitempty"`
	Table   *Table   `cbor:"5,keyasint,omitempty"`
	Summary *Summary `cbor:"6,keyasint,omitempty"`
}

// Header describes a backup.
type Header struct {
	Genesis []byte `cbor:"1,keyasint"` // world.Genesis.Encode
	Begun   int64  `cbor:"2,keyasint"` // Unix milliseconds: edits acknowledged before are in the backup
	Program string `cbor:"3,keyasint"` // version of voxeld
	Nodes   []Node `cbor:"4,keyasint,omitempty"`
	Base    *ID    `cbor:"5,keyasint,omitempty"` // the backup that this one is based on
	// Area lists the cells that the backup is limited to. Such a backup is no backup of the world.
	Area []grid.Cell `cbor:"6,keyasint,omitempty"`
}

// Node is a node of the world and where it was reached.
type Node struct {
	Peer  string   `cbor:"1,keyasint"`
	Addrs []string `cbor:"2,keyasint,omitempty"` // multiaddrs
}

// Time returns when the backup was begun.
func (h Header) Time() time.Time { return time.UnixMilli(h.Begun) }

// Position is the point of a group's log that its rows are of, and what a group that continues from there needs.
type Position struct {
	Index     uint64 `cbor:"1,keyasint"` // log entries up to this one are in the rows
	Term      uint64 `cbor:"2,keyasint"` // raft term
	Next      uint64 `cbor:"3,keyasint"` // lowest replica id that was not given out
	Recovered uint64 `cbor:"4,keyasint,omitempty"`
}

// Group is a region or the catalog.
type Group struct {
	ID       uint64    `cbor:"1,keyasint"`
	Cell     grid.Cell `cbor:"2,keyasint"` // zero for the catalog
	Position Position  `cbor:"3,keyasint"`
	Members  []string  `cbor:"4,keyasint,omitempty"` // peer ids
	Epoch    uint64    `cbor:"8,keyasint,omitempty"` // of the members
	// Problem is why acknowledged edits may be missing; empty if none are.
	Problem string `cbor:"5,keyasint,omitempty"`
	// Missing means that no copy could be read: there are no rows.
	Missing bool `cbor:"6,keyasint,omitempty"`
	// Same means that the rows are those of the base, which have this checksum.
	Same *ID `cbor:"7,keyasint,omitempty"`
	// Attestations are what members have signed about their copies, each node once.
	Attestations []Attestation `cbor:"9,keyasint,omitempty"`
	// Voucher is what an issuer has signed about the catalog's members; nil of regions, and if none has.
	Voucher *Voucher `cbor:"10,keyasint,omitempty"`
}

// Voucher is an issuer's signature of who the catalog's members are, as of the epoch of its group
// (nodemsg.RegionStatus.VouchedText).
type Voucher struct {
	nodemsg.Voucher
	Members []nodemsg.Replica `cbor:"4,keyasint"`
}

// Attestation is what a member of a group has signed about its copy (trust.Attestation).
type Attestation struct {
	Node      trust.Key `cbor:"1,keyasint"`
	Index     uint64    `cbor:"2,keyasint"`           // of the log, as of which the member's copy has the rows
	Sum       *ID       `cbor:"3,keyasint,omitempty"` // of its rows, if they are not those of the group
	Signature []byte    `cbor:"4,keyasint"`
	// Certificate is the node's, on the way to the node that makes the backup. In a backup the Summary has it.
	Certificate []byte `cbor:"5,keyasint,omitempty"`
}

// HasRows reports whether the group's rows follow.
func (g Group) HasRows() bool { return !g.Missing && g.Same == nil }

// Name returns the name of the group for people: its cell, or "catalog".
func (g Group) Name() string {
	if g.ID == world.CatalogID {
		return "catalog"
	}
	return g.Cell.String()
}

// End ends the rows of a group.
type End struct {
	Rows uint64 `cbor:"1,keyasint"` // number of rows
	Sum  ID     `cbor:"2,keyasint"` // SHA-256 of the group's Rows records, one after the other
}

// Table has rows of a table of the whole world. A key may occur repeatedly: of a player's records the newest counts.
type Table struct {
	Name string `cbor:"1,keyasint"`
	Rows []byte `cbor:"2,keyasint"`
}

// Summary ends a backup.
type Summary struct {
	Groups   uint64   `cbor:"1,keyasint"`
	Rows     uint64   `cbor:"2,keyasint"` // of groups and tables
	Problems []string `cbor:"3,keyasint,omitempty"`
	Sum      ID       `cbor:"4,keyasint"` // SHA-256 of all records before this one, as they are encoded
	// Charters and Certificates tell whose the attestations are.
	Charters     [][]byte `cbor:"5,keyasint,omitempty"` // in order
	Certificates [][]byte `cbor:"6,keyasint,omitempty"`
}

// maxProblems bounds the problems in a summary, beside those of groups.
const maxProblems = 256

// Valid returns an error unless exactly one field is set, and is valid.
func (r Record) Valid() error {
	set, err := 0, error(nil)
	check := func(there bool, valid func() error) {
		if there {
			set++
			err = errors.Join(err, valid())
		}
	}
	check(r.Header != nil, func() error { return r.Header.valid() })
	check(r.Group != nil, func() error { return r.Group.valid() })
	check(r.Rows != nil, func() error { return nil })
	check(r.End != nil, func() error { return nil })
	check(r.Table != nil, func() error { return r.Table.valid() })
	check(r.Summary != nil, func() error { return r.Summary.valid() })
	if err == nil && set != 1 {
		err = fmt.Errorf("a record has one part, not %d", set)
	}
	return err
}

func (h *Header) valid() error {
	if len(h.Genesis) > maxText || len(h.Program) > maxText || len(h.Nodes) > maxNodes || len(h.Area) > maxCells || h.Begun < 0 {
		return errors.New("malformed header")
	}
	for _, n := range h.Nodes {
		if len(n.Peer) > wire.MaxPeerID || len(n.Addrs) > maxNodes {
			return errors.New("malformed header: a node")
		}
	}
	return nil
}

func (g *Group) valid() error {
	p := g.Position
	for _, a := range g.Attestations {
		if a.Index > maxIndex || len(a.Signature) > ed25519.SignatureSize || len(a.Certificate) > trust.MaxDocument {
			return fmt.Errorf("malformed attestation of group %d", g.ID)
		}
	}
	if v := g.Voucher; v != nil && (len(v.Members) > wire.MaxMembers || len(v.Key) != ed25519.PublicKeySize || len(v.Signature) > ed25519.SignatureSize || v.Charter > maxNumber) {
		return fmt.Errorf("malformed signature of the members of group %d", g.ID)
	}
	if g.ID == 0 || len(g.Attestations) > wire.MaxMembers || max(p.Index, p.Next) > maxIndex || p.Recovered > maxRecovered || max(p.Term, g.Epoch) > maxNumber || len(g.Members) > wire.MaxMembers || len(g.Problem) > maxText || g.Missing && g.Same != nil {
		return fmt.Errorf("malformed group %d", g.ID)
	}
	return nil
}

func (t *Table) valid() error {
	if t.Name != PlayersTable && t.Name != BasesTable && t.Name != PolicyTable && t.Name != ContentsTable {
		return fmt.Errorf("unknown table %.20q: upgrade voxeld", t.Name)
	}
	return nil
}

func (s *Summary) valid() error {
	if len(s.Problems) > maxProblems || len(s.Charters) > trust.MaxCharters || len(s.Certificates) > maxNodes {
		return errors.New("malformed summary")
	}
	return nil
}
