package games

import (
	"sync"
	"time"

	"github.com/voxelpopuli/voxeld/chunk"
	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/wire"
	"github.com/voxelpopuli/voxeld/wire/sessionmsg"
)

const (
	// maxPending is the most edits that may wait for their answers.
	maxPending = 1024
	// sequenceEvery is how often the numbers of edits catch up with the time.
	sequenceEvery = time.Second
)

// Edits are a client's edits: those that its session is to be sent, and those that wait for their answers. The client's
// lock guards them. Only Next needs none.
type Edits struct {
	first, number uint64 // of the session, and of the next edit
	begun         time.Time
	pending       map[uint64]Change

	mu struct {
		sync.Mutex // a leaf
		next       []sessionmsg.FromClient
	}
}

// Begin begins a session, whose first edit has a number. It drops the edits of a session before, whose reader has
// ended.
func (e *Edits) Begin(first uint64, now time.Time) {
	e.first, e.number, e.begun, e.pending = first, first, now, make(map[uint64]Change)
	e.mu.Lock()
	defer e.mu.Unlock()
	e.mu.next = nil
}

// take returns the number of the next edit. They must be numbered near the time (docs/adr/0045), in microseconds,
// however long the client plays: signed ones are too old otherwise, and those of guests beside newer ones of another
// guest of the name.
func (e *Edits) take(now time.Time) (number uint64) {
	played := now.Sub(e.begun).Truncate(sequenceEvery)
	number = max(e.number, e.first+uint64(played.Microseconds())) //nolint:gosec // positive
	e.number = number + 1
	return number
}

// Add adds an edit to those that are to be sent.
func (e *Edits) Add(c Change, now time.Time) (number uint64, err error) {
	if len(e.pending) >= maxPending {
		return 0, wire.Refuse(wire.FailRate, "Too many of your edits wait for an answer.")
	}
	number = e.take(now)
	e.pending[number] = c
	e.mu.Lock()
	defer e.mu.Unlock()
	e.mu.next = append(e.mu.next, sessionmsg.Edit{Seq: number, X: c.Pos.X, Y: c.Pos.Y, Z: c.Pos.Z, Block: uint16(c.To), Text: c.Text})
	return number, nil
}

// AddAll adds edits, and returns the first one that is to be sent; nil for none.
func (e *Edits) AddAll(changes []Change, now time.Time) (sessionmsg.FromClient, error) {
	for _, c := range changes {
		if _, err := e.Add(c, now); err != nil {
			return nil, err
		}
	}
	return e.Next(), nil
}

// Next takes an edit that is to be sent; nil for none.
func (e *Edits) Next() sessionmsg.FromClient {
	e.mu.Lock()
	defer e.mu.Unlock()
	if len(e.mu.next) == 0 {
		return nil
	}
	m := e.mu.next[0]
	e.mu.next = e.mu.next[1:]
	return m
}

// Answer takes an edit from those that wait for an answer. If it was made, what is to follow it is added: the reader
// sends that with the client's next message.
func (e *Edits) Answer(m sessionmsg.Ack, now time.Time) (c Change, waits bool) {
	c, waits = e.pending[m.Seq]
	delete(e.pending, m.Seq)
	if m.Error == "" {
		for _, then := range c.Then {
			e.Add(then, now) //nolint:errcheck // too many wait: it stays as it is
		}
	}
	return c, waits
}

// Predict returns the blocks as the client shows them: as if the edits that wait for an answer were committed. It is valid
// until the next Add or Answer.
func (e *Edits) Predict(at Blocks) Blocks {
	newest := make(map[grid.Pos]uint64)
	for number, c := range e.pending {
		newest[c.Pos] = max(newest[c.Pos], number)
	}
	return func(pos grid.Pos) (chunk.Block, bool) {
		if number, waits := newest[pos]; waits {
			return e.pending[number].To, true
		}
		return at(pos)
	}
}
