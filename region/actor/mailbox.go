package actor

import "sync"

// Mailbox passes values from any goroutine to one owner, in order, without ever blocking the sender. Its size is
// bounded by the senders' protocol, or by limit where peers could flood it.
type Mailbox[T any] struct {
	limit int           // number of values; 0 means no limit
	wake  chan struct{} // holds a token while there may be values to drain, or the mailbox is closed
	ended chan struct{} // closed when the mailbox is

	mu struct {
		sync.Mutex
		items  []T
		closed bool
	}
}

// NewMailbox returns a mailbox. It refuses values while it holds limit of them; 0 means no limit.
func NewMailbox[T any](limit int) *Mailbox[T] {
	return &Mailbox[T]{limit: limit, wake: make(chan struct{}, 1), ended: make(chan struct{})}
}

// Put adds a value. It reports false, and drops the value, if the mailbox is closed or full.
func (m *Mailbox[T]) Put(v T) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.mu.closed || m.limit > 0 && len(m.mu.items) >= m.limit {
		return false
	}
	m.mu.items = append(m.mu.items, v)
	m.signal()
	return true
}

// Drain removes and returns all values, and reports whether the mailbox is still open.
func (m *Mailbox[T]) Drain() (items []T, open bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	items, m.mu.items = m.mu.items, nil
	return items, !m.mu.closed
}

// Close makes later puts fail. The values inside can still be drained.
func (m *Mailbox[T]) Close() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.end()
}

// CloseIfEmpty closes the mailbox if it is empty, and reports whether it did.
func (m *Mailbox[T]) CloseIfEmpty() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.mu.items) > 0 {
		return false
	}
	m.end()
	return true
}

// end closes the mailbox. The caller holds the lock.
func (m *Mailbox[T]) end() {
	if !m.mu.closed {
		m.mu.closed = true
		close(m.ended)
		m.signal()
	}
}

func (m *Mailbox[T]) signal() {
	select {
	case m.wake <- struct{}{}:
	default:
	}
}

// Wake returns a channel that holds a token while there may be values to drain, or the mailbox is closed.
func (m *Mailbox[T]) Wake() <-chan struct{} { return m.wake }

// Ended returns a channel that is closed when the mailbox is.
func (m *Mailbox[T]) Ended() <-chan struct{} { return m.ended }

// Len returns how many values wait.
func (m *Mailbox[T]) Len() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.mu.items)
}
