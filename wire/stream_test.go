package wire_test

import (
	"bufio"
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
