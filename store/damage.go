package store

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"runtime/debug"

	bolterrors "go.etcd.io/bbolt/errors"

	"github.com/voxelpopuli/voxeld/kv"
)

// guard calls into bbolt. bbolt does not check its pages: on a damaged one it panics, or follows a pointer out of its
// memory map. guard converts both to kv.ErrDamaged, only for this goroutine and this call.
func guard(call func() error) (err error) {
	before := debug.SetPanicOnFault(true)
	defer func() {
		debug.SetPanicOnFault(before)
		if reason := recover(); reason != nil {
			err = damaged("%v", reason)
		}
	}()
	return translate(call())
}

// translate converts bbolt's errors to those of this package.
func translate(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, bolterrors.ErrDatabaseNotOpen):
		return ErrClosed
	case errors.Is(err, bolterrors.ErrMaxSizeReached), isDiskFull(err):
		return fmt.Errorf("%w: %w", ErrFull, err)
	case errors.Is(err, bolterrors.ErrInvalid), errors.Is(err, bolterrors.ErrChecksum),
		errors.Is(err, bolterrors.ErrVersionMismatch), errors.Is(err, bolterrors.ErrIncompatibleValue):
		return fmt.Errorf("%w: %w", kv.ErrDamaged, err)
	}
	return err
}

func damaged(format string, args ...any) error {
	return fmt.Errorf("%w: %s", kv.ErrDamaged, fmt.Sprintf(format, args...))
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
