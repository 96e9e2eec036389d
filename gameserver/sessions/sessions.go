// Package sessions holds which player has which session on a gateway.
//
// Any goroutine may use a Table; its lock is a leaf.
package sessions

import (
	"errors"
	"sync"

	"github.com/voxelpopuli/voxeld/player"
)

// Errors of Take.
var (
	ErrClosed   = errors.New("the table takes no more sessions")
	ErrReserved = errors.New("the player's id is reserved")
)

// Table holds the sessions of a gateway, by player. Create it with New.
type Table[S comparable] struct {
	mu struct {
		sync.Mutex
		of       map[player.ID]S
		reserved map[player.ID]struct{} // players of original clients
		closed   bool
	}
}

// New returns a table without sessions.
func New[S comparable]() *Table[S] {
	t := &Table[S]{}
	t.mu.of, t.mu.reserved = make(map[player.ID]S), make(map[player.ID]struct{})
	return t
}

// Take adds the session of a player, unless they have one, which is returned then.
func (t *Table[S]) Take(id player.ID, s S) (older S, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.mu.closed {
		return older, ErrClosed
	}
	if _, reserved := t.mu.reserved[id]; reserved {
		return older, ErrReserved
	}
	older, there := t.mu.of[id]
	if !there {
		t.mu.of[id] = s
	}
	return older, nil
}

// Remove removes the session of a player.
func (t *Table[S]) Remove(id player.ID) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.mu.of, id)
}

// Close has Take fail from now on. Begun is called before: a session that was taken is in All then, any other finds
// out.
func (t *Table[S]) Close(begun func()) {
	t.mu.Lock()
	defer t.mu.Unlock()
	begun()
	t.mu.closed = true
}

// Of returns the session of a player, or the zero value.
func (t *Table[S]) Of(id player.ID) S {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.mu.of[id]
}

// All returns the sessions.
func (t *Table[S]) All() []S { return t.Append(nil) }

// Append appends the sessions.
func (t *Table[S]) Append(to []S) []S {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, s := range t.mu.of {
		to = append(to, s)
	}
	return to
}

// Reserve keeps the id of a player from sessions until Release. It reports false if a session or another reservation
// has it.
func (t *Table[S]) Reserve(id player.ID) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	_, there := t.mu.of[id]
	if _, reserved := t.mu.reserved[id]; reserved || there {
		return false
	}
	t.mu.reserved[id] = struct{}{}
	return true
}

// Release frees a reserved id.
func (t *Table[S]) Release(id player.ID) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.mu.reserved, id)
}

// Reserved returns how many ids are reserved.
func (t *Table[S]) Reserved() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.mu.reserved)
}
