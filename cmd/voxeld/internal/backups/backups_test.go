package backups

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
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
		var problem string
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
				g := backup.Group{ID: world.CatalogID, Problem: problem}
				return problem == "", errors.Join(out.Write(backup.Record{Group: &g}), rows.Close(), out.Close())
			},
			Header: func() backup.Header {
				return backup.Header{Genesis: world.Genesis{Name: "w", Sections: 1, Terrain: 1, Placement: grid.PlacementWalkad}.Encode(), Begun: time.Now().UnixMilli()}
			},
			Every: time.Hour, Keep: 3, Dir: filepath.Join(t.TempDir(), "backups"), World: "My [World]",
			Logger: slog.New(slog.DiscardHandler),
		}
		fresh := func() *Backups {
			o.Registerer = prometheus.NewRegistry()
			return New(o)
		}
		run := func(d time.Duration) {
			ctx, cancel := context.WithTimeout(t.Context(), d)
			defer cancel()
			if err := fresh().Run(ctx); err != nil {
				t.Error(err)
			}
		}
		run(5*time.Hour + 10*time.Minute)
		if files, err := os.ReadDir(o.Dir); made != 6 || len(files) != 3 || err != nil {
			t.Errorf("made %d, kept %v, %v", made, files, err)
		}
		complete, err := fresh().files(suffix)
		if err != nil {
			t.Fatal(err)
		}
		abandoned := filepath.Join(o.Dir, "."+filepath.Base(complete[0])+".123")
		if err := os.WriteFile(abandoned, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(abandoned, time.Time{}, time.Now()); err != nil {
			t.Fatal(err)
		}
		problem = "no majority"
		run(9*time.Hour + 10*time.Minute)
		if after, err := fresh().files(suffix); !slices.Equal(after, complete) || err != nil {
			t.Errorf("backups that are not complete replaced %v, of which %v is left: %v", complete, after, err)
		}
		if files, err := fresh().files(incompleteSuffix); len(files) != 3 || err != nil {
			t.Errorf("%v is left of backups that are not complete: %v", files, err)
		}
		if due := fresh().untilDue(time.Now()); due != firstDelay {
			t.Errorf("after backups that are not complete, one is due in %v", due)
		}
		if _, err := os.Stat(abandoned); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("what a killed node has left: %v", err)
		}
		fail = errors.New("no catalog")
		run(2 * time.Hour)
		if files, _ := os.ReadDir(o.Dir); len(files) != 6 {
			t.Errorf("after failures %d are left", len(files))
		}
	})
}
