package cli

import (
	"context"
	"io"
	"log/slog"
	"slices"
	"sync"
)

// journalHandler writes a text line for each record, behind its priority as sd-daemon(3) has it: journalctl -p err then
// finds errors.
type journalHandler [4]slog.Handler // of debug, info, warn, error

func newJournalHandler(w io.Writer, o *slog.HandlerOptions) (h journalHandler) {
	var lock sync.Mutex
	for i, priority := range [len(h)]string{"<7>", "<6>", "<4>", "<3>"} {
		h[i] = slog.NewTextHandler(&prefixWriter{w: w, lock: &lock, prefix: priority}, o)
	}
	return h
}

// of returns the handler of a level.
func (h journalHandler) of(level slog.Level) slog.Handler {
	levels := []slog.Level{slog.LevelDebug, slog.LevelInfo, slog.LevelWarn, slog.LevelError}
	i, found := slices.BinarySearch(levels, level)
	if !found {
		i = max(i-1, 0)
	}
	return h[i]
}

func (h journalHandler) Enabled(ctx context.Context, level slog.Level) bool {
	return h[0].Enabled(ctx, level)
}

func (h journalHandler) Handle(ctx context.Context, r slog.Record) error {
	return h.of(r.Level).Handle(ctx, r)
}

func (h journalHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	for i := range h {
		h[i] = h[i].WithAttrs(attrs)
	}
	return h
}

func (h journalHandler) WithGroup(name string) slog.Handler {
	for i := range h {
		h[i] = h[i].WithGroup(name)
	}
	return h
}

// prefixWriter writes a prefix before each line, in one write with it. A record of a text handler is one write, and has
// no line feed but its last byte, whatever others have put into its attributes.
type prefixWriter struct {
	w      io.Writer
	lock   *sync.Mutex
	prefix string
}

func (p *prefixWriter) Write(line []byte) (int, error) {
	p.lock.Lock()
	defer p.lock.Unlock()
	if _, err := p.w.Write(append([]byte(p.prefix), line...)); err != nil {
		return 0, err
	}
	return len(line), nil
}
