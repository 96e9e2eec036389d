package region

import (
	"encoding/binary"
	"fmt"
	"log/slog"

	"github.com/voxelpopuli/voxeld/kv"
	"github.com/voxelpopuli/voxeld/region/directory"
	"github.com/voxelpopuli/voxeld/region/failuredetector"
)

// agreedTable has one row: the version that all nodes understood at some time.
const agreedTable = "agreed"

var agreedKey = []byte("version")

// rememberAgreed has the detector begin with what it knew when the node ran last.
func rememberAgreed(d *failuredetector.Detector, storage directory.Storage, logger *slog.Logger) error {
	stored, err := storage.Get(agreedTable, agreedKey)
	if err != nil {
		return fmt.Errorf("read the agreed version: %w", err)
	}
	if version, n := binary.Uvarint(stored); n > 0 {
		d.Restore(int(version))
	}
	d.Remember = func(version int) {
		row := kv.Write{Table: agreedTable, Key: agreedKey, Value: binary.AppendUvarint(nil, uint64(version))}
		if err := storage.Commit([]kv.Write{row}); err != nil {
			logger.Warn("agreed version not stored", "error", err)
		}
	}
	return nil
}
