package store

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"slices"

	"go.etcd.io/bbolt"

	"github.com/voxelpopuli/voxeld/internal/kv"
)

// metaTable belongs to the store; callers cannot write to it.
const metaTable = "meta"

// Bounds of one write, in bytes.
const (
	MaxTable = 64
	MaxKey   = bbolt.MaxKeySize // 32,768
	MaxValue = 32 << 20
)

// check returns an error if the write is invalid.
func check(w kv.Write) error {
	switch {
	case w.Table == "":
		return errors.New("empty table name")
	case len(w.Table) > MaxTable:
		return fmt.Errorf("table name of %d bytes: at most %d are allowed", len(w.Table), MaxTable)
	case w.Table == metaTable:
		return fmt.Errorf("table %s belongs to the store", metaTable)
	case len(w.Key) == 0:
		return fmt.Errorf("empty key for table %s", w.Table)
	case len(w.Key) > MaxKey:
		return fmt.Errorf("key of %d bytes for table %s: at most %d are allowed", len(w.Key), w.Table, MaxKey)
	case len(w.Value) > MaxValue:
		return fmt.Errorf("value of %d bytes for table %s: at most %d are allowed", len(w.Value), w.Table, MaxValue)
	}
	return nil
}

// bbolt has no checksums on its data pages. So every value is followed by its own, little-endian: CRC-32C over the
// table's name, a zero byte, the key's length (u32, little-endian), the key and the value. Without it, a flipped bit
// would silently change the world.
const sumSize = 4

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

func checksum(table string, key, value []byte) uint32 {
	var head [MaxTable + 5]byte
	n := copy(head[:MaxTable], table)
	binary.LittleEndian.PutUint32(head[n+1:], uint32(len(key)))
	sum := crc32.Checksum(head[:n+5], castagnoli)
	return crc32.Update(crc32.Update(sum, castagnoli, key), castagnoli, value)
}

// seal returns value followed by its checksum, in new memory.
func seal(table string, key, value []byte) []byte {
	sealed := make([]byte, 0, len(value)+sumSize)
	sealed = append(sealed, value...)
	return binary.LittleEndian.AppendUint32(sealed, checksum(table, key, value))
}

// unseal returns the value within sealed, without copying it.
func unseal(table string, key, sealed []byte) ([]byte, error) {
	n := len(sealed) - sumSize
	if n < 0 || n > MaxValue || len(key) > MaxKey {
		return nil, damaged("an entry with a key of %d and a value of %d bytes", len(key), len(sealed))
	}
	value := sealed[:n:n]
	if binary.LittleEndian.Uint32(sealed[n:]) != checksum(table, key, value) {
		return nil, damaged("wrong checksum of the value at key %x in table %s", key, table)
	}
	return value, nil
}

// put performs a write.
func put(tx *bbolt.Tx, w kv.Write) error {
	bucket := tx.Bucket([]byte(w.Table)) // the transaction caches it
	if w.Value == nil {
		if bucket == nil {
			return nil
		}
		return bucket.Delete(w.Key)
	}
	if bucket == nil {
		var err error
		if bucket, err = tx.CreateBucket([]byte(w.Table)); err != nil {
			return err
		}
	}
	return bucket.Put(w.Key, seal(w.Table, w.Key, w.Value))
}

// getIn returns a copy of the value at key, nil if there is none.
func getIn(tx *bbolt.Tx, table string, key []byte) ([]byte, error) {
	bucket := tx.Bucket([]byte(table))
	if bucket == nil {
		return nil, nil
	}
	sealed := bucket.Get(key)
	if sealed == nil {
		return nil, nil
	}
	value, err := unseal(table, key, sealed)
	if err != nil {
		return nil, err
	}
	return append([]byte{}, value...), nil
}

// row is a row at which a cursor stands.
type row struct {
	key, value []byte // a nil key at the end
	damage     error  // of the value, which must not be read then
}

// cursor walks the rows of a table whose keys begin with a prefix.
type cursor struct {
	tx     *bbolt.Tx
	table  string
	prefix []byte
	from   []byte // keys below it are skipped
	bolt   *bbolt.Cursor
	row
}

// step moves to the next row. It touches every byte of it, so that a fault can only happen here, where it is caught.
func (c *cursor) step() error {
	var sealed []byte
	if c.bolt == nil {
		bucket := c.tx.Bucket([]byte(c.table))
		if bucket == nil {
			c.key = nil
			return nil
		}
		c.bolt = bucket.Cursor()
		c.key, sealed = c.bolt.Seek(slices.MaxFunc([][]byte{c.prefix, c.from}, bytes.Compare))
	} else {
		c.key, sealed = c.bolt.Next()
	}
	if c.key == nil || !bytes.HasPrefix(c.key, c.prefix) {
		c.key = nil
		return nil
	}
	if c.value, c.damage = unseal(c.table, c.key, sealed); c.damage != nil {
		c.key = bytes.Clone(c.key) // nothing has verified the row yet: its length may be damaged
	}
	return nil
}
