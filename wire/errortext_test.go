package wire

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

func TestErrorText(t *testing.T) {
	for _, c := range []struct {
		err  error
		want string
	}{
		{fmt.Errorf("ask the catalog: %w", context.DeadlineExceeded), "ask the catalog: there was no answer in time"},
		{errors.Join(os.ErrDeadlineExceeded, errors.New("a")), "there was no answer in time\na"},
		{errors.New("node b says: context deadline exceeded"), "node b says: there was no answer in time"}, // as older nodes send it
		{fmt.Errorf("read: %w", context.Canceled), "read: it was interrupted"},
		{errors.New("the disk is full"), "the disk is full"},
	} {
		if got := ErrorText(c.err); got != c.want {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
}

// Where errors become texts that people read, ErrorText makes them.
func TestErrorsForPeopleAreTexts(t *testing.T) {
	raw := regexp.MustCompile(`\b[eE]rr\.Error\(\)`)
	for _, dir := range []string{"cmd/voxeld", "cmd/voxeld/internal/*", "gameserver", "gameserver/httpd", "gameserver/games", "gameserver/moderation"} {
		files, err := filepath.Glob(filepath.Join("..", dir, "*.go"))
		if err != nil || len(files) == 0 {
			t.Fatalf("%s: %d files, %v", dir, len(files), err)
		}
		for _, file := range files {
			if strings.HasSuffix(file, "_test.go") {
				continue
			}
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			for i, line := range strings.Split(string(text), "\n") {
				if raw.MatchString(line) {
					t.Errorf("%s:%d: use wire.ErrorText: %s", file, i+1, strings.TrimSpace(line))
				}
			}
		}
	}
}
