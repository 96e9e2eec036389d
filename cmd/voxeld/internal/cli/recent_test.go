package cli

import (
	"bytes"
	"fmt"
	"testing"
)

// The last megabyte of whole lines is kept.
func TestRecent(t *testing.T) {
	var r Recent
	var all bytes.Buffer
	for i := range 100_000 {
		line := fmt.Sprintf("line %d of many that are written to the log\n", i)
		all.WriteString(line)
		if n, err := r.Write([]byte(line)); n != len(line) || err != nil {
			t.Fatal(n, err)
		}
		if i == 1000 && !bytes.Equal(r.Lines(), all.Bytes()) {
			t.Error("not all lines are kept while they are few")
		}
	}
	kept := r.Lines()
	if len(kept) > RecentSize || len(kept) < RecentSize-100 || !bytes.HasPrefix(kept, []byte("line ")) || !bytes.HasSuffix(all.Bytes(), kept) {
		t.Errorf("%d bytes are kept, beginning with %.20q", len(kept), kept)
	}
	if cap(r.text) > 4*RecentSize {
		t.Errorf("they take %d bytes", cap(r.text))
	}
}
