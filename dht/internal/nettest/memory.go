package nettest

import (
	"bytes"
	"sync"

	"github.com/voxelpopuli/voxeld/internal/kv"
)

// Memory is a storage that is lost when the process ends, and can fail.
type Memory struct {
	mu     sync.Mutex
	tables kv.Tables
	failed error
	hung   chan struct{} // commits wait until it is closed; nil: they do not
}

// NewMemory returns an empty storage.
func NewMemory() *Memory { return &Memory{tables: make(kv.Tables)} }

// Get returns the value of a row, or nil.
func (m *Memory) Get(table string, key []byte) ([]byte, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return bytes.Clone(m.tables[table][string(key)]), m.failed
}

// Scan visits the rows whose keys have the prefix, in order.
func (m *Memory) Scan(table string, prefix []byte, visit func(key, value []byte) error) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.tables.Scan(table, prefix, visit); err != nil {
		return err
	}
	return m.failed
}

// Commit applies the writes.
func (m *Memory) Commit(writes []kv.Write) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if hung := m.hung; hung != nil {
		m.mu.Unlock()
		<-hung
		m.mu.Lock()
	}
	if m.failed != nil {
		return m.failed
	}
	return m.tables.Commit(writes)
}

// Copied returns a copy, as of the storage of a killed node.
func (m *Memory) Copied() *Memory {
	m.mu.Lock()
	defer m.mu.Unlock()
	return &Memory{tables: m.tables.Clone()}
}

// Size returns the number of rows of a table.
func (m *Memory) Size(table string) int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.tables[table])
}

// Fail makes every access fail with err from now on; nil ends that.
func (m *Memory) Fail(err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.failed = err
}

// Hang makes every commit wait until end is called, as on a disk that does not answer. Reads go on.
func (m *Memory) Hang() (end func()) {
	m.mu.Lock()
	defer m.mu.Unlock()
	hung := make(chan struct{})
	m.hung = hung
	return sync.OnceFunc(func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		m.hung = nil
		close(hung)
	})
}

// Clear deletes all rows of a table.
func (m *Memory) Clear(table string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.tables, table)
}
