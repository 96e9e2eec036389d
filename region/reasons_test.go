package region

import (
	"context"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"testing"

	"github.com/voxelpopuli/voxeld/region/copies"
)

// TestMain fails if the tests, all of them, have not reached each row of the table of package copies.
func TestMain(m *testing.M) {
	code := m.Run()
	if missing := reached.missing(); code == 0 && all() && len(missing) > 0 {
		fmt.Printf("FAIL: no test has brought a copy to these rows of copies.Table: %q\n", missing)
		code = 1
	}
	os.Exit(code)
}

// all reports whether all tests were asked for.
func all() bool {
	for _, name := range []string{"test.run", "test.skip", "test.list", "test.fuzz"} {
		if flag.Lookup(name).Value.String() != "" {
			return false
		}
	}
	return !testing.Short()
}

// reached is the rows that the nodes of all tests have logged.
var reached = &rows{}

// rows is a slog.Handler that keeps the reasons that are logged. Any goroutine may use it.
type rows struct{ seen sync.Map }

func (*rows) Enabled(context.Context, slog.Level) bool { return true }
func (r *rows) WithAttrs([]slog.Attr) slog.Handler     { return r }
func (r *rows) WithGroup(string) slog.Handler          { return r }

func (r *rows) Handle(_ context.Context, record slog.Record) error {
	record.Attrs(func(a slog.Attr) bool {
		if a.Key == "reason" {
			r.seen.Store(a.Value.String(), true)
		}
		return true
	})
	return nil
}

func (r *rows) missing() (missing []string) {
	for _, row := range copies.Table {
		if _, seen := r.seen.Load(row.Reason.String()); !seen && row.Reason != copies.InOrder {
			missing = append(missing, row.Reason.String())
		}
	}
	return missing
}
