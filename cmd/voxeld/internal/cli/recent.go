package cli

import (
	"bytes"
	"slices"
	"sync"
)

// RecentSize is how many bytes of the log a Recent keeps.
const RecentSize = 1 << 20

// Recent keeps the last lines that are written to it, for voxeld debug bundle: the journal, or the log of a container,
// is not always at hand. The zero value is ready. Any goroutine may use it.
type Recent struct {
	mu   sync.Mutex
	text []byte // whole lines; at most twice RecentSize
}

// Write adds lines.
func (r *Recent) Write(lines []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.text = append(r.text, lines...); len(r.text) > 2*RecentSize {
		r.text = append(r.text[:0], lastLines(r.text)...)
	}
	return len(lines), nil
}

// Lines returns the lines that were written last.
func (r *Recent) Lines() []byte {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(lastLines(r.text))
}

// lastLines returns the lines at the end of a text that begin in its last RecentSize bytes.
func lastLines(text []byte) []byte {
	if len(text) <= RecentSize {
		return text
	}
	text = text[len(text)-RecentSize:]
	return text[bytes.IndexByte(text, '\n')+1:]
}
