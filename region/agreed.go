package region

import (
	"encoding/binary"
	"fmt"

	"github.com/voxelpopuli/voxeld/kv"
)

// agreedTable has one row: the version that all nodes understood at some time.
const agreedTable = "agreed"

var agreedKey = []byte("version")

// rememberAgreed has the detector begin with what it knew when the node ran last.
func (h *Host) rememberAgreed() error {
	stored, err := h.Storage.Get(agreedTable, agreedKey)
	if err != nil {
		return fmt.Errorf("read the agreed version: %w", err)
	}
	if version, n := binary.Uvarint(stored); n > 0 {
		h.detector.Restore(int(version))
	}
	h.detector.Remember = func(version int) {
		row := kv.Write{Table: agreedTable, Key: agreedKey, Value: binary.AppendUvarint(nil, uint64(version))}
		if err := h.Storage.Commit([]kv.Write{row}); err != nil {
			h.Logger.Warn("agreed version not stored", "error", err)
		}
	}
	return nil
}
