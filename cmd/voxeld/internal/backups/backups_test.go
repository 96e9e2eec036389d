package backups

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/voxelpopuli/voxeld/cmd/voxeld/internal/admin"
	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/internal/backup"
	"github.com/voxelpopuli/voxeld/region"
	testmetrics "github.com/voxelpopuli/voxeld/test/testkit/metrics"
	"github.com/voxelpopuli/voxeld/trust"
	"github.com/voxelpopuli/voxeld/world"
)

func genesis(name string, seed int64) world.Genesis {
	return world.Genesis{Name: name, Seed: seed, Sections: 1, Terrain: 1, Placement: grid.PlacementWalkad}
}

// options returns those of a node that makes a backup of an empty world every hour.
func options(g world.Genesis, dir string) Options {
	return Options{
		Backup: func(_ context.Context, w io.Writer, o region.BackupOptions) (bool, error) {
			return true, write(w, o.Header, "")
		},
		Header: func() backup.Header {
			return backup.Header{Genesis: g.Encode(), Begun: time.Now().UnixMilli()}
		},
		Every: time.Hour, Keep: 3, Dir: dir, World: g,
		Logger: slog.New(slog.DiscardHandler), Registerer: prometheus.NewRegistry(),
	}
}

// write writes a backup of an empty world. As in a large one, its header can be read when what follows is damaged.
func write(w io.Writer, h backup.Header, problem string) error {
	out, err := backup.NewWriter(w, h)
	if err != nil {
		return err
	}
	rows := backup.NewRowsWriter(out.Write)
	g := backup.Group{ID: world.CatalogID, Problem: problem}
	return errors.Join(out.Flush(), out.Write(backup.Record{Group: &g}), rows.Close(), out.Close())
}

// Backups are made on a schedule, tried again soon when one fails, and the oldest deleted; a restart does not make one
// too early.
func TestSchedule(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var fail error
		var problem string
		made := 0
		o := options(genesis("My [World]", 1), filepath.Join(t.TempDir(), "backups"))
		o.Backup = func(_ context.Context, w io.Writer, o region.BackupOptions) (bool, error) {
			if fail != nil {
				return false, fail
			}
			made++
			return problem == "", write(w, o.Header, problem)
		}
		fresh := func() *Backups {
			o.Registerer = prometheus.NewRegistry()
			return New(o)
		}
		var last admin.Backups // of the run
		run := func(d time.Duration) {
			ctx, cancel := context.WithTimeout(t.Context(), d)
			defer cancel()
			b := fresh()
			if err := b.Run(ctx); err != nil {
				t.Error(err)
			}
			last = b.Status()
		}
		if s := fresh().Status(); !strings.Contains(s.String(), "none has succeeded yet") {
			t.Errorf("before the first backup: %v", s)
		}
		run(5*time.Hour + 10*time.Minute)
		if files, err := os.ReadDir(o.Dir); made != 6 || len(files) != 3 || err != nil {
			t.Errorf("made %d, kept %v, %v", made, files, err)
		}
		if last.Error != "" || last.Last.IsZero() {
			t.Errorf("after good backups: %v", last)
		}
		good := last.Last
		complete, err := fresh().files(backup.Good, time.Now())
		if err != nil {
			t.Fatal(err)
		}
		abandoned := filepath.Join(o.Dir, "."+strings.TrimSuffix(filepath.Base(complete[0]), backup.Extension)+"-unsigned.voxback.123")
		if err := os.WriteFile(abandoned, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(abandoned, time.Time{}, time.Now()); err != nil {
			t.Fatal(err)
		}
		problem = "no majority"
		run(9*time.Hour + 10*time.Minute)
		if !strings.Contains(last.Error, "not complete: ") || !last.Last.Equal(good.Truncate(time.Second)) {
			t.Errorf("after backups that are not complete: %v", last)
		}
		if after, err := fresh().files(backup.Good, time.Now()); !slices.Equal(after, complete) || err != nil {
			t.Errorf("backups that are not complete replaced %v, of which %v is left: %v", complete, after, err)
		}
		if files, err := fresh().files(backup.Incomplete, time.Now()); len(files) != 3 || err != nil {
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
		if !strings.Contains(last.Error, "no catalog") {
			t.Errorf("after a failure: %v", last)
		}
		if files, _ := os.ReadDir(o.Dir); len(files) != 6 {
			t.Errorf("after failures %d are left", len(files))
		}
	})
}

// Backups of a closed world that most members have not signed, as one that a single member has forged, replace none
// that they have.
func TestUnsignedBackups(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := genesis("Commons", 1)
		g.Roots = []trust.Key{{1}}
		o := options(g, t.TempDir())
		o.Keep = 1
		b := New(o)
		made := time.Now()
		good := filepath.Join(o.Dir, b.name()+"-"+made.UTC().Format(backup.TimeLayout)+backup.Extension)
		if _, err := backup.Create(good, good, func(w io.Writer) error { return write(w, o.Header(), "") }, nil); err != nil {
			t.Fatal(err)
		}
		for range 3 {
			time.Sleep(time.Hour)
			if _, err := b.scheduled(t.Context()); err != nil {
				t.Fatal(err)
			}
			if at := metricsOf(t, o).Value("voxeld_backup_last_success_timestamp_seconds"); at != 0 {
				t.Errorf("a backup that is not signed counts as the last good one, at %v", at)
			}
			forged := filepath.Join(o.Dir, b.name()+"-"+time.Now().UTC().Format(backup.TimeLayout)+"-unsigned.voxback")
			if left, err := filepath.Glob(filepath.Join(o.Dir, "*")); !slices.Equal(left, []string{forged, good}) && !slices.Equal(left, []string{good, forged}) || err != nil {
				t.Errorf("%v is left, want %s and %s: %v", left, good, forged, err)
			}
		}
		if due := b.untilDue(time.Now()); due != time.Hour {
			t.Errorf("after a backup that is not signed, one is due in %v", due)
		}
		if at := metricsOf(t, o).Value("voxeld_backup_last_success_timestamp_seconds"); at != float64(made.Unix()) {
			t.Errorf("after a restart the last good backup is of %v, want %v", at, made.Unix())
		}
	})
}

// Two worlds of the same name share a directory: neither counts or deletes backups of the other.
func TestSharedDirectory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		make := func(b *Backups) {
			t.Helper()
			if made, err := b.scheduled(t.Context()); made == "" || err != nil {
				t.Fatal(made, err)
			}
			time.Sleep(time.Minute)
		}
		other := New(options(genesis("Commons", 2), dir))
		make(other)
		unreadable := filepath.Join(dir, "Commons-20200101T000000Z"+backup.Extension)
		if err := os.WriteFile(unreadable, []byte("?"), 0o600); err != nil {
			t.Fatal(err)
		}
		o := options(genesis("Commons", 1), dir)
		o.Keep = 1
		b := New(o)
		make(b)
		make(other)
		if due := b.untilDue(time.Now()); due != 58*time.Minute {
			t.Errorf("two minutes after the world's own backup the next one is due in %v", due)
		}
		foreign, err := other.files(backup.Good, time.Now())
		if err != nil || len(foreign) != 2 {
			t.Fatalf("the other world has the backups %v, %v", foreign, err)
		}
		make(b)
		for _, file := range append(foreign, unreadable) {
			if _, err := os.Stat(file); err != nil {
				t.Errorf("a backup that is not of this world: %v", err)
			}
		}
		if left, err := b.files(backup.Good, time.Now()); len(left) != 1 || err != nil {
			t.Errorf("of the world's own backups %v is left, %v", left, err)
		}
	})
}

// A backup that is not complete never has the name of a complete one, not even when the node is killed before it has
// the other name.
func TestIncompleteName(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := options(genesis("Commons", 1), t.TempDir())
		b := New(o)
		taken := filepath.Join(o.Dir, b.name()+"-"+time.Now().UTC().Format(backup.TimeLayout)+"-incomplete.voxback")
		b.Backup = func(_ context.Context, w io.Writer, q region.BackupOptions) (bool, error) {
			return false, errors.Join(write(w, q.Header, "no majority"), os.Mkdir(taken, 0o700)) // so it cannot be renamed
		}
		if _, err := b.scheduled(t.Context()); err == nil {
			t.Error("a backup that cannot have its name: no error")
		}
		if left, err := filepath.Glob(filepath.Join(o.Dir, "*")); !slices.Equal(left, []string{taken}) || err != nil {
			t.Errorf("%v is left, %v", left, err)
		}
	})
}

// A backup that was made while the clock was wrong, and so has a later time in its name, delays no other, is not the
// last success, and neither pushes out the backups that are made now nor is deleted by them.
func TestWrongClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := options(genesis("Commons", 1), t.TempDir())
		o.Keep = 1
		b := New(o)
		later := filepath.Join(o.Dir, b.name()+"-"+time.Now().AddDate(1, 0, 0).UTC().Format(backup.TimeLayout)+backup.Extension)
		if _, err := backup.Create(later, later, func(w io.Writer) error { return write(w, o.Header(), "") }, nil); err != nil {
			t.Fatal(err)
		}
		if due := b.untilDue(time.Now()); due != firstDelay {
			t.Errorf("beside a backup of next year, one is due in %v", due)
		}
		if success := metricsOf(t, o).Value("voxeld_backup_last_success_timestamp_seconds"); success != 0 {
			t.Errorf("the last success is that of next year: %v", success)
		}
		for range 2 {
			time.Sleep(time.Hour)
			if _, err := b.scheduled(t.Context()); err != nil {
				t.Fatal(err)
			}
			own := filepath.Join(o.Dir, b.name()+"-"+time.Now().UTC().Format(backup.TimeLayout)+backup.Extension)
			if left, err := filepath.Glob(filepath.Join(o.Dir, "*")); !slices.Equal(left, []string{own, later}) || err != nil {
				t.Errorf("after a backup %v is left, want %s and %s: %v", left, own, later, err)
			}
		}
	})
}

func metricsOf(t *testing.T, o Options) testmetrics.Metrics {
	t.Helper()
	answer := httptest.NewRecorder()
	promhttp.HandlerFor(o.Registerer.(*prometheus.Registry), promhttp.HandlerOpts{}).ServeHTTP(answer, httptest.NewRequest("GET", "/metrics", nil))
	m, err := testmetrics.Read(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// A backup succeeded once it is complete and on disk, not when its last byte was produced.
func TestSuccess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := options(genesis("Commons", 1), t.TempDir())
		lost := true
		o.Backup = func(_ context.Context, w io.Writer, q region.BackupOptions) (bool, error) {
			err := write(w, q.Header, "")
			if files, _ := filepath.Glob(filepath.Join(o.Dir, ".*")); lost && len(files) == 1 {
				err = errors.Join(err, os.Remove(files[0])) // so it cannot be renamed
			}
			return true, err
		}
		b := New(o)
		run := func(d time.Duration) {
			ctx, cancel := context.WithTimeout(t.Context(), d)
			defer cancel()
			if err := b.Run(ctx); err != nil {
				t.Error(err)
			}
		}
		check := func(what string, success time.Time, failures float64) {
			t.Helper()
			want := 0.0
			if !success.IsZero() {
				want = float64(success.Unix())
			}
			m := metricsOf(t, o)
			if s, f := m.Value("voxeld_backup_last_success_timestamp_seconds"), m.Value("voxeld_backup_failures_total"); s != want || f != failures {
				t.Errorf("%s: last success %v, want %v; %v failures, want %v", what, s, want, f, failures)
			}
		}
		run(time.Minute)
		check("a backup that could not be renamed", time.Time{}, 1)

		lost = false
		answer := httptest.NewRecorder()
		b.ServeHTTP(answer, httptest.NewRequest("POST", admin.BackupPath, strings.NewReader("{}")))
		if problem := answer.Result().Trailer.Get(admin.BackupError); problem != "" || answer.Body.Len() == 0 {
			t.Fatalf("a backup on request: %d bytes, %s", answer.Body.Len(), problem)
		}
		check("a backup that somebody else was to save", time.Time{}, 1)

		begun := time.Now().Add(firstDelay)
		run(time.Minute)
		check("a backup on disk", begun, 1)
	})
}
