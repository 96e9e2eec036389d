package grid

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"strconv"
	"strings"
)

// Placement selects how cells are placed in the DHT's keyspace.
//
// A cell's DHT key is /chunk/<dx>,<dz>/<label>/<nonce>. The DHT places it at the SHA-256 of the key, which scatters
// neighbours; the nonce undoes that (docs/adr/0007).
type Placement string

const (
	// PlacementWalkad puts neighbouring cells at neighbouring places: the nonce is the smallest for which
	// KeyPrefix(key) = Label.Gray() XOR the first 12 bits of SHA-256("dx,dz") (Walkad §IV-A; the XOR spreads
	// domains evenly). The paper sets a key's bits directly, and the bits after the prefix to zero. Ours are
	// found by search, about 4,096 hashes, and random after the prefix, because the DHT is left unmodified.
	PlacementWalkad Placement = "walkad"
	// PlacementHash scatters cells evenly, as VoxelPopuli §3.1 does with the hash of the coordinates. The nonce is 0.
	PlacementHash Placement = "hash"
)

// Home returns the cell whose key decides where the region of c lives: its members are the nodes nearest to that key,
// and the nearest of them leads. For PlacementWalkad the home's label is that of c without its third and fourth bit. So
// the four founded cells of a square have one home, and neighbours mostly share a leader, in a world of any size.
// Walkad alone does the opposite: the first bits of a label spread the cells of a domain over all nodes. The bits of
// splits count, because regions are split to be spread: one half of a split region keeps its home. Homes of
// neighbouring cells of equal label length are equal or differ in one bit of their prefixes.
//
// The records of c are stored under its own key.
func (p Placement) Home(c Cell) Cell {
	const kept = FoundingLabel - 2 // bits of the founded cell's label
	if p != PlacementWalkad || c.Label.Len() < FoundingLabel {
		return c
	}
	l := c.Label
	home := Label{bits: l.bits &^ (1<<(MaxLabel-kept) - 1), n: l.n - 2}
	home.bits |= l.bits << 2 & (1<<(MaxLabel-kept) - 1)
	return Cell{c.Domain, home}
}

// CatalogKey is the DHT key of the catalog, the root region.
const CatalogKey = "/chunk/catalog"

const keyPrefix = "/chunk/"

// ParsePlacement parses the name of a placement.
func ParsePlacement(name string) (Placement, error) {
	switch p := Placement(name); p {
	case PlacementWalkad, PlacementHash:
		return p, nil
	}
	return "", fmt.Errorf("parse placement %q: want %q or %q", clip(name), PlacementWalkad, PlacementHash)
}

// Key returns the cell's DHT key. For PlacementWalkad that takes about half a millisecond: see Keys.
// It panics if the placement is not one of the constants.
func (p Placement) Key(c Cell) string {
	switch p {
	case PlacementWalkad:
		return string(c.searchKey())
	case PlacementHash:
		return string(strconv.AppendUint(c.appendKeyStem(nil), 0, 10))
	}
	panic(fmt.Sprintf("grid: placement %q", string(p)))
}

// Check returns nil if the key is the one that this placement assigns to the cell in it, and else an error with the
// reason. A wrong nonce usually costs one hash, a right one as much as Key.
func (p Placement) Check(key string) error { return p.check(key, p.Key) }

func (p Placement) check(key string, keyOf func(Cell) string) error {
	c, nonce, err := ParseKey(key)
	if err != nil {
		return err
	}
	if p == PlacementWalkad && KeyPrefix(key) != c.prefix() {
		return fmt.Errorf("check key of cell %v: nonce %d does not place it", c, nonce)
	}
	if want := keyOf(c); key != want {
		return fmt.Errorf("check key of cell %v: placement %q wants %s", c, string(p), want)
	}
	return nil
}

// ParseKey splits a cell's DHT key into its parts. It accepts exactly the keys that some nonce produces; use Check to
// find out whether it is the right nonce. CatalogKey is not the key of a cell.
func ParseKey(key string) (Cell, uint64, error) {
	rest, isChunk := strings.CutPrefix(key, keyPrefix)
	last := strings.LastIndexByte(rest, '/')
	if !isChunk || last < 0 {
		return Cell{}, 0, fmt.Errorf("parse key %q: want /chunk/<dx>,<dz>/<label>/<nonce>", clip(key))
	}
	c, err := ParseCell(rest[:last])
	if err != nil {
		return Cell{}, 0, fmt.Errorf("parse key: %w", err)
	}
	text := rest[last+1:]
	nonce, err := strconv.ParseUint(text, 10, 64)
	if err != nil || strconv.FormatUint(nonce, 10) != text {
		return Cell{}, 0, fmt.Errorf("parse key: %q is not a nonce", clip(text))
	}
	return c, nonce, nil
}

// KeyPrefix returns the first MaxLabel (12) bits of the key's place in the DHT, which is its SHA-256.
func KeyPrefix(key string) uint16 { return prefixOf([]byte(key)) }

func prefixOf(text []byte) uint16 {
	hash := sha256.Sum256(text)
	return binary.BigEndian.Uint16(hash[:]) >> (16 - MaxLabel)
}

// prefix returns the first 12 bits of the cell's place under PlacementWalkad.
func (c Cell) prefix() uint16 { return c.Label.Gray() ^ KeyPrefix(c.Domain.String()) }

// searchKey returns the key with the smallest nonce that hashes to the cell's prefix.
// The probability that no nonce fits is (1 - 2⁻¹²)^(2⁶⁴), so the loop ends.
func (c Cell) searchKey() []byte {
	want := c.prefix()
	stem := c.appendKeyStem(make([]byte, 0, 64))
	for nonce := uint64(0); ; nonce++ {
		if key := strconv.AppendUint(stem, nonce, 10); prefixOf(key) == want {
			return key
		}
	}
}

// appendKeyStem appends the key up to its nonce.
func (c Cell) appendKeyStem(b []byte) []byte { return fmt.Appendf(b, "%s%v/", keyPrefix, c) }
