package backupcmd

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/voxelpopuli/voxeld/cmd/voxeld/internal/cli"
)

// A backup does not replace a file, unless told to: it may be the last good one.
func TestBackupReplacesNothingUnasked(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "world.voxback")
	run := func(args ...string) error {
		c := newBackup()
		c.SilenceErrors, c.SilenceUsage = true, true
		c.SetArgs(append(args, file, "--data-dir", dir))
		return c.ExecuteContext(t.Context())
	}
	const noNode = "no node runs"
	if err := os.WriteFile(file, nil, 0o600); err != nil { // as of mktemp
		t.Fatal(err)
	}
	if err := run(); err == nil || !strings.Contains(err.Error(), noNode) {
		t.Errorf("in the place of an empty file: %v", err)
	}
	if err := os.WriteFile(file, []byte("voxeld backup\x00\x00\x01"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := run(); !errors.As(err, new(cli.UsageError)) || !strings.Contains(err.Error(), "--force") {
		t.Errorf("in the place of a backup: %v", err)
	}
	if err := run("--force"); err == nil || !strings.Contains(err.Error(), noNode) {
		t.Errorf("with --force: %v", err)
	}
}
