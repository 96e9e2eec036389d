// Package backups makes backups in a running node: on request, for voxeld backup, and on a schedule. Those on a
// schedule are copied off the machine, to a Target.
//
// Run has a goroutine of its own; any goroutine may call the handlers.
package backups

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/voxelpopuli/voxeld/cmd/voxeld/internal/admin"
	"github.com/voxelpopuli/voxeld/internal/backup"
	"github.com/voxelpopuli/voxeld/region"
	"github.com/voxelpopuli/voxeld/wire"
	"github.com/voxelpopuli/voxeld/world"
)

// Options of the backups of a node.
type Options struct {
	Backup func(ctx context.Context, w io.Writer, o region.BackupOptions) (complete bool, err error)
	Header func() backup.Header // of a full backup that begins now
	Every  time.Duration        // between two scheduled backups; 0: there are none
	Keep   int                  // how many full scheduled backups are kept, with those based on them
	Dir    string               // where they are
	Target Target               // where they are copied to; nil: nowhere

	// Incremental is how many incremental backups come after each full one.
	Incremental int

	World world.Genesis    // its name and id are part of their names
	Now   func() time.Time // the time of the world; nil: that of the machine

	Logger     *slog.Logger
	Registerer prometheus.Registerer
}

// Target is a place off this machine. Run is the only one that uses it.
type Target interface {
	// Send copies a full backup and the incremental ones that follow it, unless they are there. It returns nil once all
	// of them are.
	Send(ctx context.Context, files []string) (sent int64, err error)
	// Prune deletes chains of the world there that are too old, now that the newest has been sent.
	Prune(ctx context.Context, newest backup.Name, keep int) error
	String() string // for people
}

// Backups makes backups.
type Backups struct {
	Options

	metrics *metrics
	busy    chan struct{}                     // holds a token while a backup is made
	orders  chan chan<- admin.ScheduledBackup // of scheduled backups that are to be made now

	mu struct {
		sync.Mutex
		last   time.Time // when the last scheduled backup was begun that is good, and at the target; zero: there is none
		err    error     // why the last attempt at one was no good one; nil if it was
		unsent error     // why the newest good one is not at the target; nil if it is
	}
}

// Status returns how the scheduled backups do.
func (b *Backups) Status() admin.Backups {
	b.mu.Lock()
	last := b.mu.last
	b.mu.Unlock()
	s := admin.Backups{Every: b.Every, Last: last}
	if b.Target != nil {
		s.Target = b.Target.String()
	}
	if err := b.failure(); err != nil {
		s.Error = oneLine(err)
	}
	return s
}

// ended records the end of an attempt at a scheduled backup. With a target, it has not succeeded before it is there.
func (b *Backups) ended(begun time.Time, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.mu.err = err; err == nil && b.Target == nil {
		b.mu.last = begun
	}
}

// failure returns why the scheduled backups do not succeed; nil if they do.
func (b *Backups) failure() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	return errors.Join(b.mu.err, b.mu.unsent)
}

// delivered records the end of an attempt to copy the scheduled backup that was begun at a time.
func (b *Backups) delivered(begun time.Time, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.mu.unsent = err; err == nil {
		b.mu.last = begun
	}
}

// New returns the backups of a node.
func New(o Options) *Backups {
	if o.Now == nil {
		o.Now = time.Now
	}
	return &Backups{Options: o, metrics: newMetrics(o.Registerer, o.Every), busy: make(chan struct{}, 1), orders: make(chan chan<- admin.ScheduledBackup)}
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
	err := b.sameWorld(q)
	if err == nil {
		err = b.make(r.Context(), flusher{w, http.NewResponseController(w)}, q)
	}
	if err != nil {
		w.Header().Set(admin.BackupError, oneLine(err))
	}
}

// sameWorld returns an error if the base of the backup is of another world. A fork has regions with the same ids, but
// other edits.
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
func (b *Backups) make(ctx context.Context, w io.Writer, q admin.BackupRequest) error {
	select {
	case b.busy <- struct{}{}:
	default:
		return errBusy
	}
	defer func() { <-b.busy }()
	o := region.BackupOptions{Header: b.Header(), Base: q.Have}
	o.Header.Base, o.Header.Area = q.Base, q.Area
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

// ServeScheduled makes the next scheduled backup at once, and answers when it is at the target.
func (b *Backups) ServeScheduled(w http.ResponseWriter, r *http.Request) {
	ended := make(chan admin.ScheduledBackup, 1)
	select {
	case b.orders <- ended:
	case <-r.Context().Done():
		return
	}
	select {
	case answer := <-ended:
		w.Header().Set("Content-Type", "application/json")
		json.NewEncoder(w).Encode(answer) //nolint:errcheck,errchkjson // the client left
	case <-r.Context().Done():
	}
}
