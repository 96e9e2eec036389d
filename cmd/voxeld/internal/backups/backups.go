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
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/voxelpopuli/voxeld/backup"
	"github.com/voxelpopuli/voxeld/cmd/voxeld/internal/admin"
	"github.com/voxelpopuli/voxeld/dht/admission"
	"github.com/voxelpopuli/voxeld/region"
	"github.com/voxelpopuli/voxeld/wire"
	"github.com/voxelpopuli/voxeld/world"
)

// Options of the backups of a node.
type Options struct {
	Backup func(ctx context.Context, w io.Writer, o region.BackupOptions) (complete bool, err error)
	Header func() backup.Header // of a full backup that begins now
	Every  time.Duration        // between two scheduled backups; 0: there are none
	Keep   int                  // how many scheduled backups are kept
	Dir    string               // where they are
	World  world.Genesis        // its name and id are part of their names
	Now    func() time.Time     // the time of the world; nil: that of the machine

	Logger     *slog.Logger
	Registerer prometheus.Registerer
}

// Backups makes backups.
type Backups struct {
	Options

	metrics *metrics
	busy    chan struct{} // holds a token while a backup is made

	mu struct {
		sync.Mutex
		last time.Time // when the last good scheduled backup was begun; zero: there is none
		err  error     // why the last attempt at one was no good one; nil if it was
	}
}

// Status returns how the scheduled backups do.
func (b *Backups) Status() admin.Backups {
	b.mu.Lock()
	defer b.mu.Unlock()
	s := admin.Backups{Every: b.Every, Last: b.mu.last}
	if b.mu.err != nil {
		s.Error = oneLine(b.mu.err)
	}
	return s
}

// ended records the end of an attempt at a scheduled backup that was begun at a time.
func (b *Backups) ended(begun time.Time, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.mu.err = err; err == nil {
		b.mu.last = begun
	}
}

// New returns the backups of a node.
func New(o Options) *Backups {
	if o.Now == nil {
		o.Now = time.Now
	}
	return &Backups{Options: o, metrics: newMetrics(o.Registerer, o.Every), busy: make(chan struct{}, 1)}
}

// ServeHTTP answers an admin.BackupRequest.
func (b *Backups) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var q admin.BackupRequest
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, admin.MaxBackupRequest)).Decode(&q); err != nil {
		http.Error(w, wire.ErrorText(err), http.StatusBadRequest)
		return
	}
	w.Header().Set("Trailer", admin.BackupError)
	w.Header().Set("Content-Type", "application/octet-stream")
	o := region.BackupOptions{Header: b.Header(), Base: q.Have}
	o.Header.Base, o.Header.Area = q.Base, q.Area
	err := b.sameWorld(q)
	if err == nil {
		err = b.make(r.Context(), flusher{w, http.NewResponseController(w)}, o)
	}
	if err != nil {
		w.Header().Set(admin.BackupError, oneLine(err))
	}
}

// sameWorld returns an error if the base of the backup is of another world. A fork has regions with the same ids, but other edits.
func (b *Backups) sameWorld(q admin.BackupRequest) error {
	if id := b.World.ID(); q.Base != nil && q.World != id {
		return fmt.Errorf("the earlier backup is of another world (%.12s) than this one (%.12s): make a full backup", q.World, id)
	}
	return nil
}

func oneLine(err error) string { return strings.ReplaceAll(wire.ErrorText(err), "\n", "; ") }

// errBusy is returned while another backup is made: two would only slow each other down.
var errBusy = errors.New("this node is making another backup: try again when that is done")

// make writes a backup to w, unless another one is being made. The backup itself says what it lacks.
func (b *Backups) make(ctx context.Context, w io.Writer, o region.BackupOptions) error {
	select {
	case b.busy <- struct{}{}:
	default:
		return errBusy
	}
	defer func() { <-b.busy }()
	_, err := b.Backup(ctx, w, o)
	return err
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
	wait := b.untilDue(b.Now())
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(wait):
		}
		wait = b.Every
		if err := b.scheduled(ctx); err != nil && ctx.Err() == nil {
			if !errors.Is(err, errBusy) {
				b.metrics.failures.Inc()
				b.ended(time.Time{}, err)
			}
			b.Logger.Error("scheduled backup failed", "dir", b.Dir, "error", err)
			wait = min(wait, retryEvery)
		}
	}
}

// firstDelay is how long a node runs before its first backup: it must have found the others.
const firstDelay = 30 * time.Second

// untilDue returns when the next backup is due, by the newest complete one in the directory, signed or not.
func (b *Backups) untilDue(now time.Time) time.Duration {
	soon := min(firstDelay, b.Every)
	var newest time.Time
	for _, kind := range []string{suffix, unsignedSuffix} {
		files, err := b.files(kind, now)
		if err != nil || len(files) == 0 {
			continue
		}
		last := files[len(files)-1]
		begun, err := time.Parse(timeLayout, begunText(last, kind))
		if err == nil && begun.After(newest) {
			newest = begun
		}
		if info, failed := os.Stat(last); err == nil && failed == nil && kind == suffix {
			b.metrics.found(begun, info.Size())
			b.ended(begun, nil)
		}
	}
	return max(newest.Add(b.Every).Sub(now), soon)
}

// scheduled makes a backup in the directory, and deletes the oldest ones there.
func (b *Backups) scheduled(ctx context.Context) error {
	if err := os.MkdirAll(b.Dir, 0o700); err != nil {
		return fmt.Errorf("create directory of backups: %w", err)
	}
	if err := b.removeUnfinished(b.Now()); err != nil {
		return err
	}
	begun := b.Now()
	name := filepath.Join(b.Dir, b.name()+"-"+begun.UTC().Format(timeLayout))
	c, err := backup.Create(name+unsignedSuffix, name+incompleteSuffix, func(w io.Writer) error {
		return b.make(ctx, w, region.BackupOptions{Header: b.Header()})
	}, nil)
	if err != nil {
		return err
	}
	switch {
	case len(c.Problems()) > 0:
		b.metrics.failures.Inc()
		b.ended(begun, fmt.Errorf("%s is not complete: %s", c.File, c.Problems()[0]))
	case !signed(c):
		b.ended(begun, fmt.Errorf("%s is not signed by most members of each region: see voxeld verify", c.File))
		b.Logger.Warn("scheduled backup is not signed by most members of each region: see voxeld verify", "file", c.File)
	default:
		if err := os.Rename(c.File, name+suffix); err != nil {
			return fmt.Errorf("rename backup: %w", err)
		}
		c.File = name + suffix
		info, err := os.Stat(c.File)
		if err != nil {
			return fmt.Errorf("find backup: %w", err)
		}
		b.metrics.succeeded(begun, info.Size())
		b.ended(begun, nil)
	}
	for _, problem := range c.Problems() {
		b.Logger.Error("scheduled backup is not complete", "file", c.File, "problem", problem)
	}
	b.Logger.Info("backup made", "file", c.File, "regions", len(c.Groups)-1, "edits", c.Edits)
	if err := errors.Join(b.prune(suffix, begun), b.prune(unsignedSuffix, begun), b.prune(incompleteSuffix, begun)); err != nil {
		b.Logger.Error("old backups not deleted", "dir", b.Dir, "error", err)
	}
	return nil
}

// signed reports whether a majority of the members of each region have signed the backup. In an open world nobody signs.
func signed(c backup.Contents) bool {
	proofs, err := c.Proofs(admission.KeyOfNode)
	if errors.Is(err, backup.ErrOpenWorld) {
		return true
	}
	return err == nil && !slices.ContainsFunc(proofs, func(p backup.Proof) bool { return !p.Majority() })
}

// prune deletes the oldest backups with that suffix, and none begun after the newest: one that is not complete, or not signed, replaces none
// that is.
func (b *Backups) prune(suffix string, newest time.Time) error {
	files, err := b.files(suffix, newest)
	if err != nil {
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

// The name of a scheduled backup consists of the world's name, a part of its id, the time when it was begun, and one of the suffixes.
// Earlier development versions left out the id.
const (
	timeLayout       = "20060102T150405Z"
	timePattern      = "-????????T??????Z"
	suffix           = ".voxback"
	unsignedSuffix   = "-unsigned" + suffix
	incompleteSuffix = "-incomplete" + suffix
)

// name returns what the names of the world's backups begin with. Another world may have the same name, and the same directory.
func (b *Backups) name() string { return fileName(b.World.Name) + "-" + b.World.ID()[:12] }

// files lists the scheduled backups of the world with that suffix, oldest first. It leaves out those with a time after now: the clock was
// wrong when they were made, or is wrong now.
func (b *Backups) files(suffix string, now time.Time) ([]string, error) {
	files, err := filepath.Glob(filepath.Join(escape(b.Dir), b.name()+timePattern+suffix))
	if err != nil {
		return nil, err
	}
	older, err := filepath.Glob(filepath.Join(escape(b.Dir), fileName(b.World.Name)+timePattern+suffix))
	for _, file := range older {
		if b.isOwn(file) {
			files = append(files, file)
		}
	}
	latest := now.UTC().Format(timeLayout)
	files = slices.DeleteFunc(files, func(file string) bool { return begunText(file, suffix) > latest })
	slices.SortFunc(files, func(x, y string) int { return strings.Compare(begunText(x, suffix), begunText(y, suffix)) })
	return files, err
}

// begunText returns the part of a backup's name that says when it was begun.
func begunText(file, suffix string) string {
	name := strings.TrimSuffix(file, suffix)
	return name[len(name)-len(timeLayout):]
}

// isOwn reports whether the file is a backup of the world. One that cannot be read is not: nobody knows whose it is.
func (b *Backups) isOwn(file string) bool {
	f, err := os.Open(file)
	if err != nil {
		return false
	}
	defer f.Close() //nolint:errcheck // it was only read
	r, err := backup.NewReader(f)
	if err != nil {
		return false
	}
	defer r.Close()
	g, err := world.DecodeGenesis(r.Header.Genesis)
	return err == nil && g.ID() == b.World.ID()
}

// unfinishedAge is how long nobody has written to a file that is taken for one that a killed node has left. Other nodes may share the directory.
const unfinishedAge = time.Hour

// removeUnfinished deletes what is left of backups that were interrupted by a kill or a power cut.
func (b *Backups) removeUnfinished(now time.Time) error {
	files, err := filepath.Glob(filepath.Join(escape(b.Dir), "."+b.name()+timePattern+"*"+suffix+".*"))
	if older, failed := filepath.Glob(filepath.Join(escape(b.Dir), "."+fileName(b.World.Name)+timePattern+suffix+".*")); failed == nil {
		files = append(files, older...) // of an earlier development version, which nobody writes any more
	}
	for _, file := range files {
		info, failed := os.Stat(file)
		if failed == nil && now.Sub(info.ModTime()) > unfinishedAge {
			failed = os.Remove(file)
		}
		if failed != nil && !errors.Is(failed, os.ErrNotExist) {
			err = errors.Join(err, fmt.Errorf("delete unfinished backup: %w", failed))
		}
	}
	return err
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
