package kv

import (
	"bytes"
	"maps"
	"slices"
	"strings"
	"sync"
)

// Tables is a store in memory: rows by table and key. It is not safe for concurrent use. Whoever reads a value must not
// change it.
type Tables map[string]map[string][]byte

// Get returns the value of a row, or nil.
func (t Tables) Get(table string, key []byte) ([]byte, error) { return t[table][string(key)], nil }

// Scan visits the rows whose keys have the prefix, in the order of keys.
func (t Tables) Scan(table string, prefix []byte, visit func(key, value []byte) error) error {
	rows := t[table]
	var keys []string
	for key := range rows {
		if strings.HasPrefix(key, string(prefix)) {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	for _, key := range keys {
		if err := visit([]byte(key), rows[key]); err != nil {
			return err
		}
	}
	return nil
}

// Commit applies the writes.
func (t Tables) Commit(writes []Write) error {
	for _, w := range writes {
		if w.Value == nil {
			delete(t[w.Table], string(w.Key))
			continue
		}
		if t[w.Table] == nil {
			t[w.Table] = make(map[string][]byte)
		}
		t[w.Table][string(w.Key)] = bytes.Clone(w.Value)
	}
	return nil
}

// Clone returns an independent copy.
func (t Tables) Clone() Tables {
	c := make(Tables, len(t))
	for name, rows := range t {
		c[name] = maps.Clone(rows)
	}
	return c
}

// Memory is Tables that any goroutine may use. The zero value is empty.
type Memory struct {
	mu     sync.Mutex
	tables Tables // nil while empty
}

// Get returns a copy of the value of a row, or nil.
func (m *Memory) Get(table string, key []byte) ([]byte, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return bytes.Clone(m.tables[table][string(key)]), nil
}

// Scan visits the rows whose keys have the prefix as they are now, in the order of keys.
func (m *Memory) Scan(table string, prefix []byte, visit func(key, value []byte) error) error {
	m.mu.Lock()
	rows := Tables{table: maps.Clone(m.tables[table])}
	m.mu.Unlock()
	return rows.Scan(table, prefix, visit)
}

// Commit applies the writes, all at once.
func (m *Memory) Commit(writes []Write) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.tables == nil {
		m.tables = make(Tables)
	}
	return m.tables.Commit(writes)
}

// Tables returns a copy of everything.
func (m *Memory) Tables() Tables {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.tables.Clone()
}
