package backupcmd

import (
	"errors"
	"io"
	"path"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/voxelpopuli/voxeld/internal/backup"
)

// The newest data is taken, and not the chain that was begun last; one of the future was begun while a clock was wrong.
func TestChoose(t *testing.T) {
	at := func(day, hour int) time.Time { return time.Date(2026, 3, day, hour, 0, 0, 0, time.UTC) }
	times := make(map[string]time.Time) // when each file was begun
	chain := func(dir string, begun time.Time, files int) (all []string) {
		for i := range files {
			file := path.Join(dir, backup.Name{World: "Commons-1", Begun: begun.Format(backup.TimeLayout), Number: i}.String())
			times[file] = begun.AddDate(0, 0, i)
			all = append(all, file)
		}
		return all
	}
	all := slices.Concat(
		chain("a", at(2, 0), 7),  // from Monday to Sunday
		chain("b", at(2, 12), 2), // until Tuesday
		chain("a", at(1, 0), 3),
		chain("b", at(1, 0).AddDate(4, 0, 0), 1), // the clock is set to 2030
	)
	header := func(file string) (backup.Header, error) {
		if strings.HasPrefix(file, "c/") {
			return backup.Header{}, errors.New("damaged")
		}
		return backup.Header{Begun: times[file].UnixMilli()}, nil
	}
	want := "a/Commons-1-20260302T000000Z-006.voxback"
	for _, some := range [][]backup.FileChain{
		chainsUntil(io.Discard, at(9, 0), all), newestOfDirectories(chainsUntil(io.Discard, at(9, 0), all)),
		chainsUntil(io.Discard, at(9, 0), append(chain("c", at(8, 0), 1), all...)),
	} {
		var out strings.Builder
		files, err := choose(&out, some, header)
		if err != nil || len(files) != 7 || files[6] != want {
			t.Errorf("%v: %v", files, err)
		}
		for _, line := range []string{want + ", of 2026-03-08T00:00:00Z, is taken", "b/Commons-1-20260302T120000Z-001.voxback of 2026-03-03T12:00:00Z"} {
			if !strings.Contains(out.String(), line+"\n") {
				t.Errorf("no %q in\n%s", line, &out)
			}
		}
	}
	if n := len(newestOfDirectories(chainsUntil(io.Discard, at(9, 0), all))); n != 2 {
		t.Errorf("%d newest chains in two directories", n)
	}
	var out strings.Builder
	if files, err := choose(io.Discard, chainsUntil(&out, at(1, 0).AddDate(-1, 0, 0), all), header); err == nil {
		t.Errorf("before all of them %v is taken", files)
	}
	if named := strings.Count(out.String(), "left out"); named != 4 || !strings.Contains(out.String(), "which is 20250301T000000Z here") {
		t.Errorf("of four chains that are left out are named:\n%s", &out)
	}
	if files, err := chainUpTo(all, all[2]); !slices.Equal(files, all[:3]) || err != nil {
		t.Errorf("up to %s: %v, %v", all[2], files, err)
	}
	if files, err := chainUpTo(all, "none.voxback"); err == nil {
		t.Errorf("of a file that is not there: %v", files)
	}
}
