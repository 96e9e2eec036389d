package store

import (
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"go.etcd.io/bbolt"

	"github.com/voxelpopuli/voxeld/internal/kv"
)

const (
	// A checkpoint moves the journal's contents into the tables once it holds checkpointBytes of records, or after
	// checkpointAfter. So a restart has little to read back, and a row that is written repeatedly enters the tables
	// once.
	checkpointBytes = 8 << 20
	checkpointAfter = 5 * time.Second
	// spareBytes must be free on the disk, beside four times the data that waits for the tables, for commits to go to
	// the journal: acknowledged data must find room in the tables. On a fuller disk commits go into the tables at once,
	// and fail there.
	spareBytes = 32 << 20
	// refusedLately is for how long no commit may be refused before the log says that the disk has space again.
	refusedLately = time.Minute
)

// journalKey is the row of the meta table with the mark: what the tables have of the journal.
var journalKey = []byte("journal")

// writer makes commits durable. It belongs to the goroutine that has locked it: DB.Run, or a caller of DB.Commit that
// finds no other one; before that, Open.
type writer struct {
	tables  *tables
	overlay *overlay
	metrics *metrics
	log     *slog.Logger
	maxSize int64 // bound of the file in bytes; 0: none

	sync.Mutex
	recovered       bool      // the journal was read back; until then its records may be nowhere else
	writing         bool      // Run runs, and nothing has ended the writing
	failure         error     // why writing has ended, if not by the end of Run
	refused         time.Time // when a transaction last found no space; zero while the log does not say that the disk is full
	journal         journal
	bytes           int64         // of records in the current file
	flushingBytes   int64         // of records in the other one, while a checkpoint moves them into the tables
	number          uint64        // of the last record in the tables, or on its way into them
	checkpoint      chan error    // delivers the result of the checkpoint in progress; nil if there is none
	checkpointDone  chan struct{} // 1 pending signal: a checkpoint has ended
	checkpointTimer *time.Timer   // runs while the journal is not empty
	stuck           bool          // the last checkpoint failed for lack of space; its layer is still the flushing one
}

// recover moves what a crash left in the journal into the tables, and gives both files new generations.
func (w *writer) recover() error {
	w.journal.paths = journalPaths(w.tables.path)
	row, err := w.tables.get(metaTable, journalKey)
	if err != nil {
		return err
	}
	m, err := decodeMark(row)
	if err != nil {
		return w.tables.explain(err)
	}
	w.number, w.journal.last, w.journal.salts = m.number, m.number, m.salts
	if left, err := findJournal(w.tables.path); err != nil || left == "" && m.salts[0] != 0 {
		return err
	}
	records, err := readJournal(w.journal.paths, m)
	if err != nil {
		return w.tables.explain(err)
	}
	if len(records) == 0 && w.tables.stale {
		return w.tables.explain(damaged("one of its two meta pages is invalid, and the journal lacks what it had"))
	}
	w.journal.last += uint64(len(records))
	w.number, w.journal.salts = w.journal.last, newSalts()
	flushing := make(layer)
	for _, r := range records {
		flushing.put(r.writes)
		for _, row := range r.writes {
			w.flushingBytes += int64(len(row.Key) + len(row.Value))
		}
	}
	w.overlay.flushing = flushing
	err = w.write(flushing, w.mark())
	if errors.Is(err, ErrFull) {
		w.log.Error("the store is full: the journal waits for space in the tables", "path", w.tables.path, "error", err)
		w.stuck = true
		return nil
	}
	if err != nil {
		return err
	}
	w.dropFlushed()
	return nil
}

// commit performs the requests in order, in as few records or transactions as the bounds allow, and answers each. If a
// failure leaves the file in doubt, all remaining requests get it as their answer, and commit returns it.
func (w *writer) commit(queue []*request) error {
	alone := 0 // number of requests at the head of the queue that get a transaction each
	for len(queue) > 0 {
		n := 1
		if alone > 0 {
			alone--
		} else {
			n = batchLen(queue)
		}
		err := w.makeDurable(queue[:n], alone)
		full := errors.Is(err, ErrFull)
		if full && n > 1 {
			// One of them is too large. The others may fit, or free the missing space.
			alone = n
			continue
		}
		w.logFull(full, err)
		if err != nil && !full {
			err = fmt.Errorf("%w; nothing more is written until a restart", err)
		}
		answer(queue[:n], err)
		queue = queue[n:]
		if err != nil && !full {
			answer(queue, err)
			return err
		}
	}
	return nil
}

// makeDurable makes the requests durable: in the journal if they fit, else in the tables. Requests with a transaction
// of their own bypass the journal, because they were too large for the tables together with others.
func (w *writer) makeDurable(batch []*request, alone int) error {
	if alone == 0 && w.fitsJournal(batch) {
		if err := w.appendJournal(batch); !errors.Is(err, ErrFull) {
			return err
		}
	}
	if err := w.flush(); err != nil {
		return err
	}
	err := w.tables.update(func(tx *bbolt.Tx) error {
		for _, r := range batch {
			if err := r.apply(tx); err != nil {
				return err
			}
		}
		// The number is used up, so that a journal which lacks this commit is known to lack it (docs/adr/0021).
		return putMark(tx, mark{w.journal.last + 1, w.journal.salts})
	})
	if err == nil {
		w.journal.last++
		w.number = w.journal.last
		w.metrics.fsyncs.Add(2)
		w.metrics.batch.Observe(float64(len(batch)))
	}
	return err
}

// logFull logs when the disk becomes full, and when no commit has been refused for a while. On a full disk a commit
// that the tables' free pages can hold still succeeds: that is no space again.
func (w *writer) logFull(full bool, err error) {
	switch {
	case full:
		if w.refused.IsZero() {
			w.log.Error("the store is full: commits that add data are refused until there is space", "path", w.tables.path, "error", err)
		}
		w.refused = time.Now()
	case err == nil && !w.refused.IsZero() && time.Since(w.refused) >= refusedLately:
		w.refused = time.Time{}
		w.log.Info("the store has space again: no commit was refused for a minute", "path", w.tables.path)
	}
}

// fitsJournal reports whether the requests may go to the journal: they fit, and enough space is left for the tables to
// hold them later.
func (w *writer) fitsJournal(batch []*request) bool {
	n := int64(journalHead)
	for _, r := range batch {
		n += int64(r.bytes)
		for _, row := range r.writes {
			n += int64(len(row.Table)) + 9
		}
	}
	return !w.stuck && n <= journalMax && w.spaceLeft() >= spareBytes+4*(w.bytes+w.flushingBytes+n)
}

// spaceLeft returns the number of bytes by which the tables can still grow.
func (w *writer) spaceLeft() int64 {
	free := freeSpace(w.tables.path)
	if w.maxSize > 0 {
		free = min(free, w.maxSize-w.tables.size())
	}
	return free
}

// appendJournal makes the requests durable in the journal, and then visible.
func (w *writer) appendJournal(batch []*request) error {
	encoded, writes := encodeRecord(batch)
	if !w.journal.room(len(encoded)) {
		if err := w.awaitCheckpoint(); err != nil {
			return err
		}
	}
	if w.checkpoint == nil && (w.bytes > checkpointBytes || !w.journal.room(len(encoded))) {
		w.beginCheckpoint()
	}
	if err := w.journal.append(encoded); err != nil {
		return err
	}
	if w.bytes == 0 {
		w.checkpointTimer.Reset(checkpointAfter)
	}
	w.bytes += int64(len(encoded))
	w.overlay.Lock()
	w.overlay.active.put(writes)
	w.overlay.Unlock()
	w.metrics.fsyncs.Inc()
	w.metrics.batch.Observe(float64(len(batch)))
	return nil
}

// beginCheckpoint starts to move the journal's contents into the tables. Commits continue in the other file. No
// checkpoint may be in progress.
func (w *writer) beginCheckpoint() {
	flushing := w.rotate()
	m := w.mark()
	done := make(chan error, 1)
	w.checkpoint = done
	go func() { // awaited by awaitCheckpoint
		done <- w.write(flushing, m)
		select {
		case w.checkpointDone <- struct{}{}:
		default: // a signal is pending already
		}
	}()
}

// checkpointIfDue begins a checkpoint, or repeats one that found no space.
func (w *writer) checkpointIfDue() error {
	switch {
	case w.stuck:
		return w.fatal(w.flush())
	case w.checkpoint == nil && w.bytes > 0:
		w.beginCheckpoint()
	}
	return nil
}

// rotate makes the active layer the flushing one, and switches to the other file.
func (w *writer) rotate() layer {
	w.flushingBytes, w.bytes, w.number = w.bytes, 0, w.journal.last
	w.journal.switchFile()
	w.checkpointTimer.Stop()
	w.overlay.Lock()
	defer w.overlay.Unlock()
	w.overlay.flushing, w.overlay.active = w.overlay.active, make(layer)
	return w.overlay.flushing
}

// awaitCheckpoint waits for the checkpoint in progress, if there is one.
func (w *writer) awaitCheckpoint() error {
	if w.checkpoint == nil {
		return nil
	}
	return w.checkpointEnded(<-w.checkpoint)
}

// pollCheckpoint handles the end of the checkpoint in progress, if it has ended.
func (w *writer) pollCheckpoint() error {
	select {
	case err := <-w.checkpoint:
		return w.checkpointEnded(err)
	default:
		return nil // the writer has already waited for it
	}
}

// checkpointEnded handles the result of the checkpoint in progress. flush repeats one that found no space.
func (w *writer) checkpointEnded(err error) error {
	w.checkpoint = nil
	switch {
	case err == nil:
		w.dropFlushed()
		if w.bytes > 0 { // commits made meanwhile would wait for checkpointBytes
			w.checkpointTimer.Reset(checkpointAfter)
		}
	case errors.Is(err, ErrFull):
		w.stuck = true
		w.checkpointTimer.Reset(checkpointAfter)
	}
	return err
}

// dropFlushed drops the flushing layer, which the tables now contain.
func (w *writer) dropFlushed() {
	w.flushingBytes, w.stuck = 0, false
	w.logFull(false, nil)
	w.overlay.Lock()
	defer w.overlay.Unlock()
	w.overlay.flushing = nil
}

// flush returns when the tables contain every commit.
func (w *writer) flush() error {
	if err := w.awaitCheckpoint(); err != nil && !errors.Is(err, ErrFull) {
		return err
	}
	if w.stuck {
		if err := w.checkpointEnded(w.write(w.overlay.flushing, w.mark())); err != nil {
			return err
		}
	}
	if w.bytes == 0 {
		return nil
	}
	flushing := w.rotate()
	return w.checkpointEnded(w.write(flushing, w.mark()))
}

// mark returns what the tables have of the journal once they have the flushing layer.
func (w *writer) mark() mark { return mark{w.number, w.journal.salts} }

// putMark writes the mark, and the format, which a new file does not have yet.
func putMark(tx *bbolt.Tx, m mark) error {
	format := kv.Write{Table: metaTable, Key: formatKey, Value: binary.BigEndian.AppendUint32(nil, Format)}
	if err := put(tx, format); err != nil {
		return err
	}
	return put(tx, kv.Write{Table: metaTable, Key: journalKey, Value: m.encode()})
}

// write writes a layer into the tables, with the mark that is true then. Any goroutine may call it, one at a time.
func (w *writer) write(l layer, m mark) error {
	err := w.tables.update(func(tx *bbolt.Tx) error {
		for _, row := range l.inOrder() {
			if err := put(tx, row); err != nil {
				return fmt.Errorf("write to table %s: %w", row.Table, err)
			}
		}
		return putMark(tx, m)
	})
	if err == nil {
		w.metrics.fsyncs.Add(2)
		w.metrics.checkpoints.Inc()
	}
	return err
}

// fatal returns the checkpoint errors after which nothing may be written any more. A full disk is not one of them: the
// journal has everything.
func (w *writer) fatal(err error) error {
	if errors.Is(err, ErrFull) {
		w.logFull(true, err)
		return nil
	}
	if err == nil {
		return nil
	}
	return fmt.Errorf("%w; nothing more is written until a restart", err)
}

// close closes the journal. It removes the journal's files if the tables contain all of their records.
func (w *writer) close() error {
	if w.recovered && w.overlay.flushing == nil && len(w.overlay.active) == 0 {
		return w.journal.remove()
	}
	return w.journal.close()
}
