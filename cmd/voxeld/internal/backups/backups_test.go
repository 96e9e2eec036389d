package backups

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/voxelpopuli/voxeld/backup"
	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/region"
	"github.com/voxelpopuli/voxeld/world"
)

// Backups are made on a schedule, tried again soon when one fails, and the oldest deleted; a restart does not make one too early.
func TestSchedule(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var fail error
		made := 0
		o := Options{
			Backup: func(_ context.Context, w io.Writer, o region.BackupOptions) (bool, error) {
				if fail != nil {
					return false, fail
				}
				made++
				out, err := backup.NewWriter(w, o.Header)
				if err != nil {
					return false, err
				}
				rows := backup.NewRowsWriter(out.Write)
				return true, errors.Join(out.Write(backup.Record{Group: &backup.Group{ID: world.CatalogID}}), rows.Close(), out.Close())
			},
			Header: func() backup.Header {
				return backup.Header{Genesis: world.Genesis{Name: "w", Sections: 1, Terrain: 1, Placement: grid.PlacementWalkad}.Encode(), Begun: time.Now().UnixMilli()}
			},
			Every: time.Hour, Keep: 3, Dir: filepath.Join(t.TempDir(), "backups"), World: "My [World]",
			Logger: slog.New(slog.DiscardHandler),
		}
		run := func(d time.Duration) {
			o.Registerer = prometheus.NewRegistry()
			ctx, cancel := context.WithTimeout(t.Context(), d)
			defer cancel()
			if err := New(o).Run(ctx); err != nil {
				t.Error(err)
			}
		}
		run(5*time.Hour + 10*time.Minute)
		if files, err := os.ReadDir(o.Dir); made != 6 || len(files) != 3 || err != nil {
			t.Errorf("made %d, kept %v, %v", made, files, err)
		}
		fail = errors.New("no catalog")
		run(2 * time.Hour)
		if files, _ := os.ReadDir(o.Dir); len(files) != 3 {
			t.Errorf("after failures %d are left", len(files))
		}
	})
}
