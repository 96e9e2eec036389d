package world

import (
	"crypto/ed25519"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/voxelpopuli/voxeld/chunk"
	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/player"
	"github.com/voxelpopuli/voxeld/wire"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
)

// Pin fixes the terrain under a chunk's edits: the hash of the chunk as it was generated when it was first edited. A
// replica that generates a different chunk must fetch the pinned one (docs/adr/0003).
type Pin struct {
	Chunk grid.ChunkPos
	Base  [32]byte
}

// Batch is one log entry of a region; one is in flight at a time. Pins take effect before edits.
type Batch struct {
	// Time is when the leader proposed the entry, by its clock, in milliseconds since 1970; more than 0.
	Time  int64
	Pins  []Pin
	Edits []nodemsg.Intent
}

// Kinds of authors in a batch, with what follows the kind.
const (
	authorWorld = 0 // nothing: the edit is the world's own
	authorGuest = 1 // the length of the guest's name as uvarint, the name
	authorKey   = 2 // the player's public key, 32 bytes
)

var errBatch = errors.New("malformed log entry")

// author is what the edits of one author in a batch have in common.
type author struct {
	player player.ID
	name   string
	key    [ed25519.PublicKeySize]byte
}

func authorOf(e *nodemsg.Intent) author { return author{e.Player, e.Name, e.Key} }

func (a *author) kind() byte {
	switch {
	case a.name != "":
		return authorGuest
	case a.key != [len(a.key)]byte{}:
		return authorKey
	default:
		return authorWorld
	}
}

// Encode returns the bytes of the batch: tag, time (uvarint), pins (count; X, Z as varints, 32 bytes), authors
// (count; player 16 bytes, kind, proof), edits (count; author's index uvarint, sequence uvarint, X, Y, Z as varints,
// block uvarint, and 64 bytes of signature if the author has a key), and if there are texts, with tagBatchSigns: count; the
// edit's number as uvarint, the text's length as uvarint, the text. With tagBatchBulk the runs of bulk edits follow the
// texts, in the same form.
func (b Batch) Encode() []byte {
	texts := b.numbers(func(e *nodemsg.Intent) bool { return e.Text != "" })
	bulks := b.numbers(func(e *nodemsg.Intent) bool { return e.Bulk != "" })
	out := make([]byte, 0, 16+len(b.Pins)*40+len(b.Edits)*96)
	switch {
	case len(bulks) > 0:
		out = append(out, tagBatchBulk)
	case len(texts) > 0:
		out = append(out, tagBatchSigns)
	default:
		out = append(out, tagBatch)
	}
	out = appendPins(binary.AppendUvarint(out, uint64(b.Time)), b.Pins)
	out, numbers := b.appendAuthors(out)
	out = binary.AppendUvarint(out, uint64(len(b.Edits)))
	for i := range b.Edits {
		e := &b.Edits[i]
		out = binary.AppendUvarint(out, numbers[i])
		out = binary.AppendUvarint(out, e.Seq)
		out = binary.AppendVarint(out, int64(e.Pos.X))
		out = binary.AppendVarint(out, int64(e.Pos.Y))
		out = binary.AppendVarint(out, int64(e.Pos.Z))
		out = binary.AppendUvarint(out, uint64(e.Block))
		if a := authorOf(e); a.kind() == authorKey {
			out = append(out, e.Signature[:]...)
		}
	}
	if out[0] != tagBatch {
		out = binary.AppendUvarint(out, uint64(len(texts)))
		for _, i := range texts {
			out = appendText(binary.AppendUvarint(out, uint64(i)), b.Edits[i].Text)
		}
	}
	if out[0] == tagBatchBulk {
		out = binary.AppendUvarint(out, uint64(len(bulks)))
		for _, i := range bulks {
			out = appendText(binary.AppendUvarint(out, uint64(i)), string(b.Edits[i].Bulk))
		}
	}
	return out
}

func appendPins(out []byte, pins []Pin) []byte {
	out = binary.AppendUvarint(out, uint64(len(pins)))
	for _, p := range pins {
		out = binary.AppendVarint(out, int64(p.Chunk.X))
		out = binary.AppendVarint(out, int64(p.Chunk.Z))
		out = append(out, p.Base[:]...)
	}
	return out
}

func (r *reader) pins() (pins []Pin) {
	for range r.count(34) {
		p := Pin{Chunk: grid.ChunkPos{X: r.int32(), Z: r.int32()}}
		copy(p.Base[:], r.bytes(len(p.Base)))
		pins = append(pins, p)
	}
	return pins
}

// numbers returns the numbers of the edits that are so.
func (b Batch) numbers(are func(*nodemsg.Intent) bool) (numbers []int) {
	for i := range b.Edits {
		if are(&b.Edits[i]) {
			numbers = append(numbers, i)
		}
	}
	return numbers
}

// appendAuthors appends the authors, in the order of their first edits, and returns the number of each edit's author.
func (b Batch) appendAuthors(out []byte) ([]byte, []uint64) {
	numbers := make([]uint64, len(b.Edits))
	authors := make([]author, 0, len(b.Edits))
	byAuthor := make(map[author]uint64, len(b.Edits))
	for i := range b.Edits {
		a := authorOf(&b.Edits[i])
		number, found := byAuthor[a]
		if !found {
			number = uint64(len(authors))
			byAuthor[a] = number
			authors = append(authors, a)
		}
		numbers[i] = number
	}
	out = binary.AppendUvarint(out, uint64(len(authors)))
	for _, a := range authors {
		out = append(out, a.player[:]...)
		out = append(out, a.kind())
		switch a.kind() {
		case authorGuest:
			out = appendText(out, a.name)
		case authorKey:
			out = append(out, a.key[:]...)
		}
	}
	return out, numbers
}

// IsBatch reports whether the entry is a batch of edits.
func IsBatch(entry []byte) bool {
	return len(entry) > 0 && (entry[0] == tagBatch || entry[0] == tagBatchSigns || entry[0] == tagBatchBulk)
}

// ErrOldBatch is returned for an entry with edits that a development version wrote before it knew that all nodes
// understood the present ones. It must not be passed over: the edits were acknowledged.
var ErrOldBatch = errors.New("the log has edits that a development version wrote: back up the world with that version, and restore it with this one")

// DecodeBatch decodes what Encode wrote.
func DecodeBatch(data []byte) (Batch, error) {
	if len(data) > 0 && data[0] == tagOldBatch {
		return Batch{}, ErrOldBatch
	}
	if !IsBatch(data) {
		return Batch{}, fmt.Errorf("%w: unknown version; upgrade voxeld", errBatch)
	}
	r := reader{data: data[1:]}
	b := Batch{Time: int64(r.uvarint())}
	if b.Time <= 0 {
		r.fail()
	}
	b.Pins = r.pins()
	var authors []author
	for range r.count(17) {
		authors = append(authors, r.author())
	}
	n := r.count(6)
	b.Edits = slices.Grow(b.Edits, n)
	for range n {
		b.Edits = append(b.Edits, r.edit(authors))
	}
	if data[0] != tagBatch {
		least := 1
		if data[0] == tagBatchBulk {
			least = 0
		}
		r.each(b.Edits, least, func(e *nodemsg.Intent) bool {
			e.Text = r.text(wire.MaxSignText)
			return e.Text != "" && wire.CheckSignSize(e.Text) == nil
		})
	}
	if data[0] == tagBatchBulk {
		r.each(b.Edits, 1, func(e *nodemsg.Intent) bool {
			e.Bulk = nodemsg.Bulk(r.text(nodemsg.MaxBulkBytes))
			return e.Bulk != "" && e.Valid() == nil
		})
	}
	if r.bad || len(r.data) != 0 {
		return Batch{}, errBatch
	}
	return b, nil
}

// each calls read for some edits, at least so many, in the order of the edits; read reports whether they are right.
func (r *reader) each(edits []nodemsg.Intent, least int, read func(*nodemsg.Intent) bool) {
	n, first := r.count(2), uint64(0)
	if n < least {
		r.fail()
	}
	for range n {
		i := r.uvarint()
		if i < first || i >= uint64(len(edits)) || !read(&edits[i]) {
			r.fail()
			return
		}
		first = i + 1
	}
}

func (r *reader) author() (a author) {
	copy(a.player[:], r.bytes(len(a.player)))
	kind := r.bytes(1)[0]
	switch kind {
	case authorGuest:
		a.name = r.text(player.MaxName)
	case authorKey:
		copy(a.key[:], r.bytes(len(a.key)))
	}
	if a.kind() != kind {
		r.fail()
	}
	return a
}

func (r *reader) edit(authors []author) (e nodemsg.Intent) {
	hasKey := false
	if i := r.uvarint(); i < uint64(len(authors)) {
		a := &authors[i]
		e.Player, e.Name, e.Key, hasKey = a.player, a.name, a.key, a.kind() == authorKey
	} else {
		r.fail()
	}
	e.Seq = r.uvarint()
	e.Pos = grid.Pos{X: r.int32(), Y: r.int32(), Z: r.int32()}
	block := r.uvarint()
	if block > math.MaxUint16 {
		r.fail()
	}
	e.Block = chunk.Block(block)
	if hasKey {
		copy(e.Signature[:], r.bytes(len(e.Signature)))
	}
	return e
}
