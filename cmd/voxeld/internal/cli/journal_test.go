package cli

import (
	"bytes"
	"errors"
	"log/slog"
	"strings"
	"testing"
)

// Each line begins with its priority, and nobody can begin one by what they are called.
func TestJournalPriorities(t *testing.T) {
	var out bytes.Buffer
	logger := slog.New(newJournalHandler(&out, &slog.HandlerOptions{Level: slog.LevelDebug})).With("node", "a").WithGroup("g")
	logger.Debug("one")
	logger.Info("two", "name", "eve\n<0>panic")
	logger.Log(t.Context(), slog.LevelInfo+2, "three")
	logger.Warn("four")
	logger.Error("five", "error", errors.New("disk\nfull"))
	lines := strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n")
	want := []string{"<7>", "<6>", "<6>", "<4>", "<3>"}
	if len(lines) != len(want) {
		t.Fatalf("%d lines: %q", len(lines), lines)
	}
	for i, line := range lines {
		if !strings.HasPrefix(line, want[i]+"time=") || !strings.Contains(line, "node=a") {
			t.Errorf("line %d is %q", i, line)
		}
	}
}
