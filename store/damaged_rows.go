package store

import (
	"bytes"
	"fmt"
	"io"
	"slices"
)

// Damage is a row whose checksum was wrong when the store was opened. Either its value is damaged, or its key. A row with
// a damaged key appears in a wrong place and is missing in its own, which is near. Keys are therefore the key under which
// it was found, and the keys of the rows before and behind it in its table, if any.
type Damage struct {
	Table string
	Keys  [][]byte // the found one first
}

func (d Damage) String() string { return fmt.Sprintf("table %s, key %x", d.Table, d.Keys[0]) }

// Damaged returns the rows that were found damaged when the store was opened. In a file of more than 256 MiB the values
// are not read then; Check does that.
func (db *DB) Damaged() []Damage { return slices.Clone(db.damage) }

// maxDamage is the most damaged rows with which a store still opens.
const maxDamage = 1000

// rowInspection collects the damaged rows of an inspection.
type rowInspection struct {
	found []Damage

	table     string
	rows, bad int
	last      []byte // key of the row before
	wantNext  bool   // the row before was damaged: its successor is recorded next
}

func (s *rowInspection) entry(table string, key, sealed []byte) error {
	if table != s.table {
		if err := s.endTable(); err != nil {
			return err
		}
		*s = rowInspection{found: s.found, table: table}
	}
	s.rows++
	if s.wantNext {
		d := &s.found[len(s.found)-1]
		d.Keys, s.wantNext = append(d.Keys, bytes.Clone(key)), false
	}
	if _, err := unseal(table, key, sealed); err != nil {
		d := Damage{Table: table, Keys: [][]byte{bytes.Clone(key)}}
		if s.rows > 1 {
			d.Keys = append(d.Keys, bytes.Clone(s.last))
		}
		s.found, s.wantNext, s.bad = append(s.found, d), true, s.bad+1
		if len(s.found) > maxDamage {
			return damaged("more than %d values have wrong checksums", maxDamage)
		}
	}
	s.last = append(s.last[:0], key...)
	return nil
}

// endTable ends the inspection of a table. If none of its rows is sound, its name itself is in doubt, and it is unknown
// which rows are missing.
func (s *rowInspection) endTable() error {
	if s.rows > 0 && s.bad == s.rows {
		return damaged("nothing in table %q is sound", s.table)
	}
	return nil
}

// repairMeta looks for a single flipped bit in an invalid meta page, and corrects it in the file. Using the other page
// instead would lose the newest commit, which was acknowledged. (A power cut leaves a meta page either old or new: it is
// smaller than a sector.) It reports whether it corrected a bit.
func repairMeta(file interface {
	io.ReaderAt
	io.WriterAt
	Sync() error
}, at int64,
) (bool, error) {
	if _, ok := readMeta(file, at); ok {
		return false, nil
	}
	page := make([]byte, headerSize+metaSize)
	if _, err := file.ReadAt(page, at); err != nil {
		return false, nil //nolint:nilerr // there is no such page; the inspection will report it
	}
	for bit := headerSize * 8; bit < len(page)*8; bit++ {
		page[bit/8] ^= 1 << (bit % 8)
		if m, ok := readMeta(&offset{page, at}, at); ok && m.pageSize > 0 {
			if _, err := file.WriteAt(page[bit/8:bit/8+1], at+int64(bit/8)); err != nil {
				return false, fmt.Errorf("mend meta page: %w", err)
			}
			return true, file.Sync()
		}
		page[bit/8] ^= 1 << (bit % 8)
	}
	return false, nil
}

// offset is a page in memory that is read as if it were at its place in the file.
type offset struct {
	page []byte
	at   int64
}

func (o *offset) ReadAt(b []byte, at int64) (int, error) {
	if at < o.at || at-o.at > int64(len(o.page)) {
		return 0, io.EOF
	}
	n := copy(b, o.page[at-o.at:])
	if n < len(b) {
		return n, io.EOF
	}
	return n, nil
}

// repairMetas tries both meta pages. The first one determines the place of the second; without it, the place is a guess.
func repairMetas(file interface {
	io.ReaderAt
	io.WriterAt
	Sync() error
},
) (mended bool, err error) {
	if mended, err = repairMeta(file, 0); err != nil {
		return false, err
	}
	first, ok := readMeta(file, 0)
	if !ok {
		return mended, nil
	}
	second, err := repairMeta(file, first.pageSize)
	return mended || second, err
}

// Keys visits the keys of the table that begin with prefix, in order, including those of damaged rows, so that a caller
// can delete them. Otherwise it is like Scan: keys that are only in the journal are visited, too.
func (db *DB) Keys(table string, prefix []byte, visit func(key []byte) error) (err error) {
	db.overlay.RLock()
	newer := db.overlay.rows(table, prefix)
	tx, err := db.begin()
	db.overlay.RUnlock()
	if err != nil {
		return fmt.Errorf("list keys of %s: %w", table, err)
	}
	defer func() { err = end(tx, err) }()
	return db.merge(tx, table, prefix, newer, func(r row) error { return visit(r.key) })
}
