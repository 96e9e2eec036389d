package world

import (
	"encoding/binary"
	"errors"

	"github.com/voxelpopuli/voxeld/internal/kv"
)

var errRows = errors.New("malformed rows")

// EncodeRows returns the bytes of rows: a version byte, then for each row the length of the prefix that its key shares
// with the previous key, the rest of the key, and the value (uvarint lengths). Table names are not included.
func EncodeRows(rows []kv.Write) []byte {
	var e RowEncoder
	for _, row := range rows {
		e.Add(row.Key, row.Value)
	}
	return e.Bytes()
}

// RowEncoder encodes rows one after the other, as EncodeRows does. The zero value is ready for use.
type RowEncoder struct {
	data, last []byte
	rows       int
}

// Add appends a row. It does not keep the slices.
func (e *RowEncoder) Add(key, value []byte) {
	if e.data == nil {
		e.data = []byte{1}
	}
	same := 0
	for same < len(e.last) && same < len(key) && e.last[same] == key[same] {
		same++
	}
	e.data = binary.AppendUvarint(e.data, uint64(same))
	e.data = binary.AppendUvarint(e.data, uint64(len(key)-same))
	e.data = append(e.data, key[same:]...)
	e.data = binary.AppendUvarint(e.data, uint64(len(value)))
	e.data = append(e.data, value...)
	e.last = append(e.last[:0], key...)
	e.rows++
}

// Len returns the number of bytes so far.
func (e *RowEncoder) Len() int { return len(e.data) }

// Rows returns the number of rows so far.
func (e *RowEncoder) Rows() int { return e.rows }

// Bytes returns the encoded rows.
func (e *RowEncoder) Bytes() []byte {
	if e.data == nil {
		return []byte{1}
	}
	return e.data
}

// maxRowKey bounds a key, in bytes: those of the land table are shorter.
const maxRowKey = 64

// DecodeRows decodes what EncodeRows wrote. Values are never nil. It does not check the meaning of the rows;
// Land.Replace does.
func DecodeRows(data []byte) ([]kv.Write, error) {
	if len(data) == 0 || data[0] != 1 {
		return nil, errRows
	}
	r := reader{data: data[1:]}
	var rows []kv.Write
	var last []byte
	for len(r.data) > 0 {
		same := r.uvarint()
		rest := r.count(1)
		if same > uint64(len(last)) || int(same)+rest > maxRowKey {
			return nil, errRows
		}
		key := append(append(make([]byte, 0, int(same)+rest), last[:same]...), r.bytes(rest)...)
		size := r.count(1)
		rows = append(rows, kv.Write{Table: LandTable, Key: key, Value: append([]byte{}, r.bytes(size)...)})
		if r.bad {
			return nil, errRows
		}
		last = key
	}
	return rows, nil
}
