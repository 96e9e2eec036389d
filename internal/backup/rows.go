package backup

import (
	"crypto/sha256"
	"hash"

	"github.com/voxelpopuli/voxeld/world"
)

// RowsWriter cuts the rows of a group into records. Create it with NewRowsWriter.
type RowsWriter struct {
	emit func(Record) error
	sum  hash.Hash
	rows world.RowEncoder
	n    uint64
}

// NewRowsWriter returns a writer that passes its records to emit.
func NewRowsWriter(emit func(Record) error) *RowsWriter {
	return &RowsWriter{emit: emit, sum: sha256.New()}
}

// Add adds a row. Rows come in the order of their keys. It does not keep the slices.
func (w *RowsWriter) Add(key, value []byte) error {
	w.rows.Add(key, value)
	w.n++
	if w.rows.Len() < RowsBytes {
		return nil
	}
	return w.flush()
}

func (w *RowsWriter) flush() error {
	data := w.rows.Bytes()
	w.rows = world.RowEncoder{}
	w.sum.Write(data)
	return w.emit(Record{Rows: data})
}

// Close emits the remaining rows and the end of the group.
func (w *RowsWriter) Close() error {
	if w.rows.Rows() > 0 {
		if err := w.flush(); err != nil {
			return err
		}
	}
	return w.emit(Record{End: &End{Rows: w.n, Sum: ID(w.sum.Sum(nil))}})
}

// TableWriter cuts the rows of a table of the whole world into records.
type TableWriter struct {
	Name string
	Emit func(Record) error
	rows world.RowEncoder
}

// Add adds a row. It does not keep the slices. A row that fits into a record of its own fits into those that it writes.
func (w *TableWriter) Add(key, value []byte) error {
	if w.rows.Len()+len(key)+len(value) > MaxRecord/2 {
		if err := w.Flush(); err != nil {
			return err
		}
	}
	w.rows.Add(key, value)
	if w.rows.Len() < RowsBytes {
		return nil
	}
	return w.Flush()
}

// Flush emits the rows that are left.
func (w *TableWriter) Flush() error {
	if w.rows.Rows() == 0 {
		return nil
	}
	data := w.rows.Bytes()
	w.rows = world.RowEncoder{}
	return w.Emit(Record{Table: &Table{Name: w.Name, Rows: data}})
}
