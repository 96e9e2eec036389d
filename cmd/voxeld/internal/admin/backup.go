package admin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/voxelpopuli/voxeld/backup"
	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/region"
)

// BackupRequest asks for a backup. The answer is the backup; if it could not be completed, the trailer has the reason.
type BackupRequest struct {
	Area []grid.Cell                  `json:"area,omitempty"`
	Base *backup.ID                   `json:"base,omitempty"`
	Have map[uint64]region.KnownGroup `json:"have,omitempty"` // the groups of the base
}

// BackupPath is the path of the handler that answers a BackupRequest, and BackupError its trailer.
const (
	BackupPath  = "/backup"
	BackupError = "Voxeld-Error"
)

// MaxBackupRequest bounds a BackupRequest, in bytes.
const MaxBackupRequest = 64 << 20

// Backup asks the node for a backup and writes it to w.
func Backup(ctx context.Context, socket string, q BackupRequest, w io.Writer) error {
	body, err := json.Marshal(q)
	if err != nil {
		return err
	}
	response, err := Send(ctx, socket, BackupPath, body)
	if err != nil {
		return err
	}
	defer response.Body.Close() //nolint:errcheck // read to its end
	if _, err := io.Copy(w, response.Body); err != nil {
		return fmt.Errorf("receive the backup: %w", err)
	}
	if why := response.Trailer.Get(BackupError); why != "" {
		return errors.New(why)
	}
	return nil
}
