package raftlog

import (
	"maps"
	"slices"
	"strings"

	"github.com/voxelpopuli/voxeld/internal/kv"
)

// tables is a Reader in memory: keys are table + key.
type tables map[string][]byte

func (m tables) Get(table string, key []byte) ([]byte, error) { return m[table+string(key)], nil }

func (m tables) Scan(table string, prefix []byte, visit func(key, value []byte) error) error {
	for _, at := range slices.Sorted(maps.Keys(m)) {
		if key, ok := strings.CutPrefix(at, table); ok && strings.HasPrefix(key, string(prefix)) {
			if err := visit([]byte(key), m[at]); err != nil {
				return err
			}
		}
	}
	return nil
}

func (m tables) commit(writes []kv.Write) {
	for _, w := range writes {
		if w.Value == nil {
			delete(m, w.Table+string(w.Key))
		} else {
			m[w.Table+string(w.Key)] = w.Value
		}
	}
}
