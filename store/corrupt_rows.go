package store

import (
	"bytes"
	"fmt"
	"io"
)

// CorruptRow is a row whose checksum was wrong when the store was opened. Either its value is damaged, or its key. A
// row with a damaged key appears in a wrong place and is missing in its own, which is near. Keys are therefore the key
// under which it was found, and the keys of the rows before and behind it in its table, if any.
type CorruptRow struct {
	Table string
	Keys  [][]byte // the found one first
}

func (d CorruptRow) String() string { return fmt.Sprintf("table %s, key %x", d.Table, d.Keys[0]) }

// maxCorrupt is the most damaged rows with which a store still opens.
const maxCorrupt = 1000

// rowInspection collects the damaged rows of an inspection.
type rowInspection struct {
	found []CorruptRow

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
		d := CorruptRow{Table: table, Keys: [][]byte{bytes.Clone(key)}}
		if s.rows > 1 {
			d.Keys = append(d.Keys, bytes.Clone(s.last))
		}
		s.found, s.wantNext, s.bad = append(s.found, d), true, s.bad+1
		if len(s.found) > maxCorrupt {
			return damaged("more than %d values have wrong checksums", maxCorrupt)
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

// inspect reads as much of the file's structure as bbolt's safety requires. stale means that one of the two meta pages
// is invalid and the other one was used. It also returns the rows with a wrong checksum.
func inspect(file io.ReaderAt, size int64) (stale bool, rows []CorruptRow, err error) {
	if size == 0 {
		return false, nil, damaged("it is empty")
	}
	newest, stale, err := readMetas(file)
	if err != nil {
		return false, nil, err
	}
	in := inspection{file: file, size: size, meta: newest}
	var s rowInspection
	if int64(newest.end)*newest.pageSize <= wholeUpTo {
		// A damaged value affects only its readers, and is found when it is read. But a damaged key makes a row
		// missing, and only this inspection finds that.
		in.entry = s.entry
	}
	if err := in.run(); err != nil {
		return false, nil, err
	}
	return stale, s.found, s.endTable()
}
