// Package playerstest holds players in memory, for tests of package players and of gateways.
package playerstest

import (
	"context"
	"maps"
	"sync"

	"github.com/voxelpopuli/voxeld/internal/kv"
	"github.com/voxelpopuli/voxeld/player"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
)

// Memory is the network's store of players, or a node's own database. Any goroutine may use it.
type Memory struct {
	Gate chan struct{} // PutPlayer waits for it; nil: it does not wait
	Disk chan struct{} // Commit waits for it; nil: it does not wait

	mu struct {
		sync.Mutex
		records map[player.ID]nodemsg.PlayerRecord
		rows    kv.Tables
		failure error
		silence error
		commits int
	}
}

// NewMemory returns a memory without players.
func NewMemory() *Memory {
	m := &Memory{}
	m.mu.records, m.mu.rows = make(map[player.ID]nodemsg.PlayerRecord), make(kv.Tables)
	return m
}

// Player returns the network's record of a player.
func (m *Memory) Player(_ context.Context, id player.ID) (nodemsg.PlayerRecord, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	r, known := m.mu.records[id]
	if m.mu.silence != nil {
		return nodemsg.PlayerRecord{}, m.mu.silence
	}
	if !known {
		return r, nodemsg.ErrNoRecord
	}
	return r, nil
}

// PutPlayer stores a record in the network if it replaces the one there.
func (m *Memory) PutPlayer(ctx context.Context, r nodemsg.PlayerRecord) error {
	if m.Gate != nil {
		select {
		case <-m.Gate:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if r.Compare(m.mu.records[r.Player]) > 0 {
		m.mu.records[r.Player] = r
	}
	return nil
}

// Get returns a row of the database.
func (m *Memory) Get(table string, key []byte) ([]byte, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.mu.rows[table][string(key)], m.mu.failure
}

// Scan visits the rows of a table.
func (m *Memory) Scan(table string, prefix []byte, visit func(key, value []byte) error) error {
	m.mu.Lock()
	rows := kv.Tables{table: maps.Clone(m.mu.rows[table])}
	m.mu.Unlock()
	return rows.Scan(table, prefix, visit)
}

// Commit writes rows to the database.
func (m *Memory) Commit(writes []kv.Write) error {
	if m.Disk != nil {
		<-m.Disk
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.mu.failure != nil {
		return m.mu.failure
	}
	m.mu.commits++
	return m.mu.rows.Commit(writes)
}

// Commits returns how many commits have succeeded.
func (m *Memory) Commits() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.mu.commits
}

// Fail makes the database fail from now on; nil mends it.
func (m *Memory) Fail(err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.mu.failure = err
}

// FailLookups makes lookups of players fail from now on; nil mends them.
func (m *Memory) FailLookups(err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.mu.silence = err
}
