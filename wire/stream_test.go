package wire_test

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/voxelpopuli/voxeld/wire"
	"github.com/voxelpopuli/voxeld/wire/wiretest"
)

func TestReadLine(t *testing.T) {
	// The buffer is smaller than the lines, so that they arrive in parts.
	r := bufio.NewReaderSize(strings.NewReader("\n\r\none\r\n\n"+strings.Repeat("a", 40)+"\nhalf"), 16)
	for _, want := range []string{"one", strings.Repeat("a", 40)} {
		if line, err := wire.ReadLine(r, 40); err != nil || string(line) != want {
			t.Errorf("ReadLine = %q, %v; want %q", line, err, want)
		}
	}
	if line, err := wire.ReadLine(r, 40); err != io.ErrUnexpectedEOF {
		t.Errorf("half a line: %q, %v", line, err)
	}
	if _, err := wire.ReadLine(r, 40); err != io.EOF {
		t.Errorf("at the end: %v", err)
	}
	for _, long := range []string{strings.Repeat("a", 41) + "\n", strings.Repeat("a", 41) + "\r\n", strings.Repeat("a", 1<<20)} {
		if line, err := wire.ReadLine(bufio.NewReaderSize(strings.NewReader(long), 16), 40); wiretest.CodeOf(t, err) != wire.FailTooLong {
			t.Errorf("a line of %d: %q, %v", len(long), line, err)
		}
	}
	if line, err := wire.ReadLine(bufio.NewReader(strings.NewReader(strings.Repeat("a", 40)+"\r\n")), 40); err != nil || len(line) != 40 {
		t.Errorf("the longest line: %q, %v", line, err)
	}
}

// A guard is called with what has not arrived yet, and learns when it has, or the stream has ended. Of a frame that is
// there it hears nothing.
func TestGuardedBody(t *testing.T) {
	var missing []int
	done := 0
	guard := wire.Guard(func(n int) (func(), error) {
		missing = append(missing, n)
		return func() { done++ }, nil
	})
	r := bufio.NewReaderSize(io.MultiReader(strings.NewReader("abcdefghijklmnop"), strings.NewReader("qrstuvwxyz")), 16)
	if _, err := r.Peek(4); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"abcd", "efghijklmnopqrst"} {
		if body, err := guard.ReadBody(r, nil, len(want)); err != nil || string(body) != want {
			t.Errorf("read %q, %v, want %q", body, err, want)
		}
	}
	if _, err := guard.ReadBody(r, nil, 100); err != io.ErrUnexpectedEOF {
		t.Errorf("an incomplete body: %v", err)
	}
	if fmt.Sprint(missing, done) != "[4 94] 2" {
		t.Errorf("missing were %v, and %d frames ended", missing, done)
	}
	full := errors.New("full")
	guard = func(int) (func(), error) { return nil, full }
	if _, err := guard.ReadBody(bufio.NewReader(strings.NewReader("abc")), nil, 3); err != full {
		t.Errorf("a guard that refuses: %v", err)
	}
}
