package world

import (
	"encoding/binary"
	"errors"

	"github.com/voxelpopuli/voxeld/kv"
)

var errRows = errors.New("malformed rows")

// EncodeRows returns the bytes of rows: a version byte, then for each row the length of the prefix that its key shares
// with the previous key, the rest of the key, and the value (uvarint lengths). Table names are not included.
func EncodeRows(rows []kv.Write) []byte {
	b := []byte{1}
	var last []byte
	for _, row := range rows {
		same := 0
		for same < len(last) && same < len(row.Key) && last[same] == row.Key[same] {
			same++
		}
		b = binary.AppendUvarint(b, uint64(same))
		b = binary.AppendUvarint(b, uint64(len(row.Key)-same))
		b = append(b, row.Key[same:]...)
		b = binary.AppendUvarint(b, uint64(len(row.Value)))
		b = append(b, row.Value...)
		last = row.Key
	}
	return b
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
