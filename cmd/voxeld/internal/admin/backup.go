package admin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"

	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/internal/backup"
	"github.com/voxelpopuli/voxeld/region"
)

// BackupRequest asks for a backup. The answer is the backup; if it could not be completed, the trailer has the reason.
type BackupRequest struct {
	Area []grid.Cell `json:"area,omitempty"`
	Base *backup.ID  `json:"base,omitempty"`
	// World is the id of the base's world.
	World string                       `json:"world,omitempty"`
	Have  map[uint64]region.KnownGroup `json:"have,omitempty"` // the groups of the base
}

// Since makes the request one for an incremental backup.
func (q *BackupRequest) Since(base backup.Contents) {
	q.Base, q.World, q.Have = &base.ID, base.Genesis.ID(), make(map[uint64]region.KnownGroup)
	for _, g := range base.Groups {
		if sum, there := base.Sums[g.ID]; there && g.Problem == "" {
			q.Have[g.ID] = region.KnownGroup{Position: g.Position, Sum: sum}
		}
	}
}

// BackupPath is the path of the handler that answers a BackupRequest, and BackupError its trailer. ScheduledBackupPath
// is that of the handler that makes the next scheduled backup at once.
const (
	BackupPath          = "/backup"
	BackupError         = "Voxeld-Error"
	ScheduledBackupPath = "/backup/scheduled"
)

// ScheduledBackup is the answer once a scheduled backup was made at once.
type ScheduledBackup struct {
	File   string `json:"file,omitempty"`   // the backup, if it is good
	Target string `json:"target,omitempty"` // where it was copied to; empty: nowhere
	Error  string `json:"error,omitempty"`
}

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

// ReplacePath is the path of the handlers that plan and carry out the replacement of a lost region. The query has the
// cell; with land the id of the world that it is of, and as body the region's records of a backup.
const ReplacePath = "/replace"

// MaxLand bounds the records of a region, in bytes.
const MaxLand = 256 << 20

// ReplacePlan is what is known of a region that is to be replaced.
type ReplacePlan struct {
	Members []string `json:"members"`
	Refused string   `json:"refused,omitempty"`
	Error   string   `json:"error,omitempty"`
}

// Replace asks the node to found a region again. Records are those of the region in a backup; without any it becomes
// terrain.
func Replace(ctx context.Context, socket, cell, worldID string, records []byte) error {
	response, err := Send(ctx, socket, ReplacePath+"?"+url.Values{"region": {cell}, "world": {worldID}}.Encode(), records)
	if err != nil {
		return err
	}
	defer response.Body.Close() //nolint:errcheck // read to its end
	var done Done
	if err := json.NewDecoder(response.Body).Decode(&done); err != nil {
		return fmt.Errorf("query the node: %w", err)
	}
	if done.Error != "" {
		return errors.New(done.Error)
	}
	return nil
}
