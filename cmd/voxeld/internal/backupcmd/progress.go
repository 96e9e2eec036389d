package backupcmd

import (
	"fmt"
	"io"
	"os"
	"time"

	"github.com/dustin/go-humanize/english"

	"github.com/voxelpopuli/voxeld/internal/backup"
)

// progress shows how far a command has come, at a terminal only.
type progress struct {
	out   io.Writer
	shown time.Time
	terminal,
	open bool // a line is shown
}

func newProgress(out io.Writer) *progress {
	p := &progress{out: out}
	if f, ok := out.(*os.File); ok {
		info, err := f.Stat()
		p.terminal = err == nil && info.Mode()&os.ModeCharDevice != 0
	}
	return p
}

// print replaces the line, at most ten times a second.
func (p *progress) print(format string, args ...any) {
	if !p.terminal || time.Since(p.shown) < 100*time.Millisecond {
		return
	}
	p.shown, p.open = time.Now(), true
	fmt.Fprintf(p.out, "\r\x1b[K"+format, args...)
}

// end removes the line.
func (p *progress) end() {
	if p.open {
		fmt.Fprint(p.out, "\r\x1b[K")
	}
}

// bytesText returns a number of bytes for people.
func bytesText(n int64) string {
	switch {
	case n < 1<<20:
		return fmt.Sprintf("%.1f kB", float64(n)/1e3)
	case n < 1<<30:
		return fmt.Sprintf("%.1f MB", float64(n)/1e6)
	}
	return fmt.Sprintf("%.2f GB", float64(n)/1e9)
}

// summary returns what a backup has.
func summary(c backup.Contents) string {
	same := 0
	for _, g := range c.Groups {
		if g.Same != nil {
			same++
		}
	}
	text := english.Plural(len(c.Groups)-1, "region", "")
	if same > 0 {
		text += fmt.Sprintf(" (%d unchanged)", same)
	}
	return text + fmt.Sprintf(", %d edited blocks, %d players", c.Edits, c.Players)
}
