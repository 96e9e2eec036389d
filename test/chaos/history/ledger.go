// Package history records what writers asked for and were answered, and what observers saw of it, and checks whether
// that is the history of a world that loses nothing. Package chaos makes such histories.
package history

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/voxelpopuli/voxeld/chunk"
	"github.com/voxelpopuli/voxeld/grid"
)

// Outcome is the outcome of an edit, as its writer observed it.
type Outcome string

// The outcomes. An unknown edit was asked for and has no conclusive answer: it may take effect at any later time.
const (
	Acknowledged Outcome = "acknowledged"
	Refused      Outcome = "refused"
	Unknown      Outcome = "unknown"
)

// Edit is one block change that a writer asked for. Times are since the ledger was opened.
type Edit struct {
	Number   int           `json:"n"`
	Player   string        `json:"player"`
	Seq      uint64        `json:"seq"`
	Pos      grid.Pos      `json:"pos"`
	Block    chunk.Block   `json:"block"`
	Invoked  time.Duration `json:"invoked"`        // first sent
	Returned time.Duration `json:"returned"`       // answered; for an Unknown edit, given up
	Outcome  Outcome       `json:"outcome"`        // Unknown until it is answered
	Code     string        `json:"code,omitempty"` // why it was refused
	First    int           `json:"first"`          // node that it was first sent to
	Via      int           `json:"via,omitempty"`  // node that answered
	Tries    int           `json:"tries"`          // number of attempts
	Seen     time.Duration `json:"seen,omitempty"` // first seen by any observer, as far as that is certain; see Check
	open     bool          // may still be answered
}

// Moved reports whether the edit was answered by another node than the one it was first sent to.
func (e *Edit) Moved() bool { return e.Via != e.First }

// Open reports whether the edit may still be answered.
func (e *Edit) Open() bool { return e.open }

// Sight is one block change that an observer received.
type Sight struct {
	At     time.Duration
	Pos    grid.Pos
	Block  chunk.Block
	Stream int // a view of one chunk, from when it was shown whole until it is shown anew or the session ends
}

// Ledger is the driver's own record of what was asked for, answered and seen, outside of all daemons. All methods may
// be called from any goroutine.
type Ledger struct {
	start time.Time

	mu struct {
		sync.Mutex
		edits   []*Edit // in the order in which they were asked for
		at      map[grid.Pos][]*Edit
		sights  []Sight
		joins   []staleJoin
		warned  int             // joins that were told that the land may be old
		faults  []time.Duration // when each began
		streams []time.Duration // when each ended, by number less one; 0: not before the run did
		out     *bufio.Writer
		file    *os.File
		err     error // the first write error
	}
}

// line is one line of the ledger's file: an edit was asked for (its Returned is 0), or answered.
type line struct {
	Event string `json:"event"` // "asked", "answered"
	*Edit
}

// OpenLedger opens a new ledger. Its file has one line of JSON for each event; Sync writes it to disk.
func OpenLedger(path string) (*Ledger, error) {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY|os.O_APPEND, 0o644)
	if err != nil {
		return nil, fmt.Errorf("open ledger: %w", err)
	}
	l := &Ledger{start: time.Now()}
	l.mu.at = make(map[grid.Pos][]*Edit)
	l.mu.file, l.mu.out = file, bufio.NewWriterSize(file, 1<<16)
	return l, nil
}

// Now returns the ledger's time. It never runs backwards.
func (l *Ledger) Now() time.Duration { return time.Since(l.start) }

// At returns the ledger's time at a time of the clock.
func (l *Ledger) At(t time.Time) time.Duration { return t.Sub(l.start) }

// Ask records an edit just before it is first sent.
func (l *Ledger) Ask(e *Edit) {
	l.mu.Lock()
	defer l.mu.Unlock()
	e.Number, e.Invoked, e.Outcome, e.open = len(l.mu.edits), l.Now(), Unknown, true
	l.mu.edits = append(l.mu.edits, e)
	l.mu.at[e.Pos] = append(l.mu.at[e.Pos], e)
	l.write(line{"asked", e})
}

// Sent records an attempt of an edit over a session.
func (l *Ledger) Sent(e *Edit, node int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if e.Tries++; e.Tries == 1 {
		e.First = node
	}
}

// Answer records the outcome of an edit. at is when the answer was read.
func (l *Ledger) Answer(e *Edit, at time.Duration, what Outcome, code string, node int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	e.Returned, e.Outcome, e.Code, e.Via, e.open = at, what, code, node, false
	l.write(line{"answered", e})
}

// BeginStream begins an unbroken view of a chunk.
func (l *Ledger) BeginStream() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.mu.streams = append(l.mu.streams, 0)
	return len(l.mu.streams)
}

// EndStream ends an unbroken view.
func (l *Ledger) EndStream(stream int, at time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.mu.streams[stream-1] = at
}

// NoteFault records that a fault begins.
func (l *Ledger) NoteFault() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.mu.faults = append(l.mu.faults, l.Now())
}

// struck reports whether a fault began at about the time at which an edit was acknowledged.
func (l *Ledger) struck(e *Edit) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.ContainsFunc(l.mu.faults, func(at time.Duration) bool { return (at - e.Returned).Abs() < frameTolerance })
}

// streamEnd returns when an unbroken view ended; far in the future if it did not.
func (l *Ledger) streamEnd(stream int) time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	if at := l.mu.streams[stream-1]; at > 0 {
		return at
	}
	return math.MaxInt64
}

// RecordSight records a block change that an observer received.
func (l *Ledger) RecordSight(s Sight) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.mu.sights = append(l.mu.sights, s)
}

func (l *Ledger) write(event line) {
	b, err := json.Marshal(event)
	if err == nil {
		_, err = l.mu.out.Write(append(b, '\n'))
	}
	l.mu.err = errors.Join(l.mu.err, err)
}

// Sync flushes the file and syncs it to disk.
func (l *Ledger) Sync() error {
	l.mu.Lock()
	l.mu.err = errors.Join(l.mu.err, l.mu.out.Flush())
	err, file := l.mu.err, l.mu.file
	l.mu.Unlock()
	if err = errors.Join(err, file.Sync()); err != nil { // without the lock: writers must not wait for the disk
		return fmt.Errorf("write ledger: %w", err)
	}
	return nil
}

// Close syncs and closes the file. The ledger can still be read.
func (l *Ledger) Close() error { return errors.Join(l.Sync(), l.mu.file.Close()) }

// Count returns the number of edits asked for so far, as a mark for Since.
func (l *Ledger) Count() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.mu.edits)
}

// Since returns copies of the edits that were asked for after the mark.
func (l *Ledger) Since(mark int) []Edit {
	l.mu.Lock()
	defer l.mu.Unlock()
	all := make([]Edit, 0, len(l.mu.edits)-mark)
	for _, e := range l.mu.edits[mark:] {
		all = append(all, *e)
	}
	return all
}

// Sights returns all sights, in the order in which they were recorded.
func (l *Ledger) Sights() []Sight {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.mu.sights[:len(l.mu.sights):len(l.mu.sights)]
}
