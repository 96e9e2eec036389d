package region

import "sync"

// mailbox passes values from any goroutine to one owner, in order, without ever blocking the sender. Its size is bounded by the
// senders' protocol, or by limit where peers could flood it.
type mailbox[T any] struct {
	limit int           // number of values; 0 means no limit
	wake  chan struct{} // holds a token while there may be values to drain, or the mailbox is closed
	ended chan struct{} // closed when the mailbox is

	mu struct {
		sync.Mutex
		items  []T
		closed bool
	}
}

func newMailbox[T any](limit int) *mailbox[T] {
	return &mailbox[T]{limit: limit, wake: make(chan struct{}, 1), ended: make(chan struct{})}
}

// put adds a value. It reports false, and drops the value, if the mailbox is closed or full.
func (m *mailbox[T]) put(v T) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.mu.closed || m.limit > 0 && len(m.mu.items) >= m.limit {
		return false
	}
	m.mu.items = append(m.mu.items, v)
	m.signal()
	return true
}

// drain removes and returns all values, and reports whether the mailbox is still open.
func (m *mailbox[T]) drain() (items []T, open bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	items, m.mu.items = m.mu.items, nil
	return items, !m.mu.closed
}

// close makes later puts fail. The values inside can still be drained.
func (m *mailbox[T]) close() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.end()
}

// closeIfEmpty closes the mailbox if it is empty, and reports whether it did.
func (m *mailbox[T]) closeIfEmpty() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.mu.items) > 0 {
		return false
	}
	m.end()
	return true
}

// end closes the mailbox. The caller holds the lock.
func (m *mailbox[T]) end() {
	if !m.mu.closed {
		m.mu.closed = true
		close(m.ended)
		m.signal()
	}
}

func (m *mailbox[T]) signal() {
	select {
	case m.wake <- struct{}{}:
	default:
	}
}
