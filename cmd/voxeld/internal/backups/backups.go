// Package backups makes backups in a running node: on request, for voxeld backup, and on a schedule.
//
// Run has a goroutine of its own; any goroutine may call ServeHTTP. Only cmd/voxeld imports it.
package backups

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/voxelpopuli/voxeld/backup"
	"github.com/voxelpopuli/voxeld/cmd/voxeld/internal/admin"
	"github.com/voxelpopuli/voxeld/region"
)

// Options of the backups of a node.
type Options struct {
	Backup func(ctx context.Context, w io.Writer, o region.BackupOptions) (complete bool, err error)
	Header func() backup.Header // of a full backup that begins now
	Every  time.Duration        // between two scheduled backups; 0: there are none
	Keep   int                  // how many scheduled backups are kept
	Dir    string               // where they are
	World  string               // name of the world, part of their names

	Logger     *slog.Logger
	Registerer prometheus.Registerer
}

// Backups makes backups.
type Backups struct {
	Options

	metrics *metrics
	busy    chan struct{} // holds a token while a backup is made
}

// New returns the backups of a node.
func New(o Options) *Backups {
	return &Backups{Options: o, metrics: newMetrics(o.Registerer, o.Every), busy: make(chan struct{}, 1)}
}

// ServeHTTP answers an admin.BackupRequest.
func (b *Backups) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var q admin.BackupRequest
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, admin.MaxBackupRequest)).Decode(&q); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	w.Header().Set("Trailer", admin.BackupError)
	w.Header().Set("Content-Type", "application/octet-stream")
	out := &counter{w: flusher{w, http.NewResponseController(w)}}
	o := region.BackupOptions{Header: b.Header(), Base: q.Have}
	o.Header.Base, o.Header.Area = q.Base, q.Area
	if err := b.make(r.Context(), out, o); err != nil {
		w.Header().Set(admin.BackupError, oneLine(err))
	}
}

func oneLine(err error) string { return strings.ReplaceAll(err.Error(), "\n", "; ") }

// errBusy is returned while another backup is made: two would only slow each other down.
var errBusy = errors.New("this node is making another backup: try again when that is done")

// make makes a backup and counts it.
func (b *Backups) make(ctx context.Context, w *counter, o region.BackupOptions) error {
	select {
	case b.busy <- struct{}{}:
	default:
		return errBusy
	}
	defer func() { <-b.busy }()
	begun := time.Now()
	complete, err := b.Backup(ctx, w, o)
	switch {
	case err != nil || !complete:
		b.metrics.failures.Inc()
	case len(o.Header.Area) == 0:
		b.metrics.succeeded(begun, w.n)
	}
	return err
}

// counter counts the bytes of a backup.
type counter struct {
	w io.Writer
	n int64
}

func (c *counter) Write(p []byte) (int, error) {
	n, err := c.w.Write(p)
	c.n += int64(n)
	return n, err
}

// flusher sends every write at once, so that the client can show progress.
type flusher struct {
	w io.Writer
	c *http.ResponseController
}

func (f flusher) Write(p []byte) (int, error) {
	n, err := f.w.Write(p)
	if err == nil {
		err = f.c.Flush()
	}
	return n, err
}

// retryEvery is the pause after a scheduled backup that failed.
const retryEvery = 5 * time.Minute

// Run makes the scheduled backups until ctx ends. A node that starts first makes one when the newest in the directory is too old.
func (b *Backups) Run(ctx context.Context) error {
	if b.Every <= 0 {
		<-ctx.Done()
		return nil
	}
	wait := b.untilDue(time.Now())
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(wait):
		}
		wait = b.Every
		if err := b.scheduled(ctx); err != nil && ctx.Err() == nil {
			b.Logger.Error("scheduled backup failed", "dir", b.Dir, "error", err)
			wait = min(wait, retryEvery)
		}
	}
}

// firstDelay is how long a node runs before its first backup: it must have found the others.
const firstDelay = 30 * time.Second

// untilDue returns when the next backup is due, by the newest file in the directory.
func (b *Backups) untilDue(now time.Time) time.Duration {
	files, err := b.files()
	if err != nil || len(files) == 0 {
		return min(firstDelay, b.Every)
	}
	info, err := os.Stat(files[len(files)-1])
	if err != nil {
		return min(firstDelay, b.Every)
	}
	b.metrics.found(info)
	return max(info.ModTime().Add(b.Every).Sub(now), min(firstDelay, b.Every))
}

// scheduled makes a backup in the directory, and deletes the oldest ones there.
func (b *Backups) scheduled(ctx context.Context) error {
	if err := os.MkdirAll(b.Dir, 0o700); err != nil {
		return fmt.Errorf("create directory of backups: %w", err)
	}
	path := filepath.Join(b.Dir, fmt.Sprintf("%s-%s%s", fileName(b.World), time.Now().UTC().Format("20060102T150405Z"), suffix))
	c, err := backup.Create(path, func(w io.Writer) error {
		return b.make(ctx, &counter{w: w}, region.BackupOptions{Header: b.Header()})
	}, nil)
	if err != nil {
		return err
	}
	for _, problem := range c.Problems() {
		b.Logger.Error("scheduled backup is not complete", "file", path, "problem", problem)
	}
	b.Logger.Info("backup made", "file", path, "regions", len(c.Groups)-1, "edits", c.Edits)
	return b.prune(len(c.Problems()) > 0)
}

// prune deletes the oldest backups. One that is not complete replaces no other.
func (b *Backups) prune(incomplete bool) error {
	files, err := b.files()
	if err != nil || incomplete {
		return err
	}
	for len(files) > max(b.Keep, 1) {
		if err := os.Remove(files[0]); err != nil {
			return fmt.Errorf("delete old backup: %w", err)
		}
		files = files[1:]
	}
	return nil
}

// suffix ends the names of scheduled backups.
const suffix = ".voxback"

// files lists the scheduled backups, oldest first.
func (b *Backups) files() ([]string, error) {
	files, err := filepath.Glob(filepath.Join(escape(b.Dir), escape(fileName(b.World))+"-????????T??????Z"+suffix))
	slices.Sort(files)
	return files, err
}

func escape(text string) string {
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`).Replace(text)
}

// fileName returns the world's name as part of a file's name.
func fileName(world string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '_':
			return r
		}
		return '_'
	}, world)
}
