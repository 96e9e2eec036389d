package trust

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"time"
	"unicode"
	"unicode/utf8"
)

// Bounds of a charter.
const (
	MaxRoots   = maxKeys
	MaxIssuers = 32
	maxText    = 64 // bytes of a name or a reason
)

// ClosingCharter is the number of the first charter of a world that was open. It says that what operators ordered
// before counts on.
const ClosingCharter = 1

// World is a world id.
type World [32]byte

// Charter names a world's root keys and issuers. Charter 0 follows from the genesis. Each later one is signed by a
// majority of the root keys of the one before, so that keys and issuers can be replaced, and a world outlives its
// founder. Numbers may be left out: whoever restores a world from a backup does not know the newest.
type Charter struct {
	World   World    `cbor:"1,keyasint"`
	Number  uint64   `cbor:"2,keyasint"`
	Roots   []Key    `cbor:"3,keyasint"` // 1 to MaxRoots, distinct
	Issuers []Issuer `cbor:"4,keyasint"` // at most MaxIssuers, distinct
}

// Issuer is a node that signs certificates.
type Issuer struct {
	Key  Key    `cbor:"1,keyasint"` // of the node
	Name string `cbor:"2,keyasint"` // for people
}

// Next returns a copy with a number for the charter that follows: the time, in Unix seconds, where clocks allow. So the
// holders of the root keys hardly ever give one number twice, and whoever restores a world from a backup goes on above
// the numbers given since.
func (c Charter) Next(now time.Time) Charter {
	c.Number = max(c.Number+1, uint64(max(now.Unix(), 0)))
	c.Roots, c.Issuers = slices.Clone(c.Roots), slices.Clone(c.Issuers)
	return c
}

// FirstCharter returns charter 0 of a world with the root keys that its genesis names. It has no issuers.
func FirstCharter(world World, roots []Key) Charter { return Charter{World: world, Roots: roots} }

// Equal reports whether two charters say the same.
func (c Charter) Equal(other Charter) bool { return bytes.Equal(c.hash(), other.hash()) }

// hash identifies the charter, whoever signed it.
func (c Charter) hash() []byte {
	sum := sha256.Sum256(must(encoding.Marshal(c)))
	return sum[:]
}

// Validate returns an error that names what is wrong with the charter.
func (c Charter) Validate() error {
	if len(c.Roots) == 0 || len(c.Roots) > MaxRoots {
		return fmt.Errorf("charter: %d root keys, want 1 to %d", len(c.Roots), MaxRoots)
	}
	if len(c.Issuers) > MaxIssuers {
		return fmt.Errorf("charter: %d issuers, want at most %d", len(c.Issuers), MaxIssuers)
	}
	for i, k := range c.Roots {
		if slices.Contains(c.Roots[:i], k) {
			return fmt.Errorf("charter: root key %v is there twice", k)
		}
	}
	for i, issuer := range c.Issuers {
		if slices.ContainsFunc(c.Issuers[:i], func(o Issuer) bool { return o.Key == issuer.Key }) {
			return fmt.Errorf("charter: issuer %v is there twice", issuer.Key)
		}
		if err := checkText(issuer.Name); err != nil {
			return fmt.Errorf("charter: name of an issuer: %w", err)
		}
	}
	return nil
}

// Issues reports whether the key is that of an issuer.
func (c Charter) Issues(k Key) bool {
	return slices.ContainsFunc(c.Issuers, func(i Issuer) bool { return i.Key == k })
}

// Seal signs the charter.
func (c Charter) Seal(signers ...Signer) ([]byte, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	return seal(charterPurpose, c, signers...)
}

// ReadCharter returns the charter in raw, and whose signatures it has.
func ReadCharter(raw []byte) (Charter, []Key, error) {
	var c Charter
	keys, err := open(charterPurpose, raw, &c)
	if err != nil {
		return Charter{}, nil, fmt.Errorf("charter: %w", err)
	}
	return c, keys, c.Validate()
}

// Succeed returns the charter in raw, if it follows this one.
func (c Charter) Succeed(raw []byte) (Charter, error) {
	next, keys, err := ReadCharter(raw)
	switch {
	case err != nil:
		return Charter{}, err
	case next.World != c.World:
		return Charter{}, errors.New("charter: it is of another world")
	case next.Number <= c.Number:
		return Charter{}, fmt.Errorf("charter: it has number %d, and %d is known", next.Number, c.Number)
	case !c.signedBy(keys):
		return Charter{}, fmt.Errorf("charter: number %d is not signed by a majority of the root keys of number %d", next.Number, c.Number)
	}
	return next, nil
}

// signedBy reports whether a majority of the root keys is among the keys.
func (c Charter) signedBy(keys []Key) bool {
	n := 0
	for _, k := range keys {
		if slices.Contains(c.Roots, k) {
			n++
		}
	}
	return n > len(c.Roots)/2
}

func checkText(s string) error {
	if s == "" || len(s) > maxText || !utf8.ValidString(s) ||
		slices.ContainsFunc([]rune(s), func(r rune) bool { return !unicode.IsPrint(r) }) {
		return fmt.Errorf("%.64q: want 1 to %d bytes of printable text", s, maxText)
	}
	return nil
}
