package store

import (
	"bytes"
	"maps"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/voxelpopuli/voxeld/internal/kv"
)

// overlay holds the commits that are not in the tables yet. Readers look here first. Only the writer modifies it.
//
// To read tables and overlay as of one moment, begin the transaction while holding the lock: a layer leaves the overlay
// only after the tables contain it.
type overlay struct {
	sync.RWMutex
	active   layer // of the current journal file
	flushing layer // of the other one, while a checkpoint moves it into the tables; immutable; nil if there is none
}

// layer holds the newest write of each key, by table, then by the first bytes of the key. These are usually the number
// of a region or group, so that a scan of one region skips the others.
type layer map[string]map[[shardSize]byte]*shard

// shard maps keys to values, nil for deleted keys. Values are never modified.
type shard struct {
	rows   map[string][]byte
	shared atomic.Bool // with a clone of the overlay: the next write replaces the shard by a copy
}

const shardSize = 8

func shardOf(key []byte) (name [shardSize]byte) {
	copy(name[:], key)
	return name
}

// put adds writes; the layer owns their memory from then on.
func (l layer) put(writes []kv.Write) {
	for _, w := range writes {
		table := l[w.Table]
		if table == nil {
			table = make(map[[shardSize]byte]*shard)
			l[w.Table] = table
		}
		name := shardOf(w.Key)
		s := table[name]
		switch {
		case s == nil:
			s = &shard{rows: make(map[string][]byte)}
			table[name] = s
		case s.shared.Load():
			s = &shard{rows: maps.Clone(s.rows)}
			table[name] = s
		}
		s.rows[string(w.Key)] = w.Value
	}
}

// get looks a key up. found with a nil value means that the key was deleted.
func (l layer) get(table string, key []byte) (value []byte, found bool) {
	if s := l[table][shardOf(key)]; s != nil {
		value, found = s.rows[string(key)]
	}
	return value, found
}

// get looks a key up, newest layer first. The caller holds the lock.
func (o *overlay) get(table string, key []byte) (value []byte, found bool) {
	if value, found = o.active.get(table, key); !found {
		value, found = o.flushing.get(table, key)
	}
	return value, found
}

// rows returns the newest writes of the keys that begin with prefix, in key order. The caller holds the lock; the
// result stays valid without it.
func (o *overlay) rows(table string, prefix []byte) []kv.Write {
	newest := make(map[string][]byte)
	for _, l := range [...]layer{o.flushing, o.active} {
		collect := func(s *shard) {
			for key, value := range s.rows {
				if bytes.HasPrefix([]byte(key), prefix) {
					newest[key] = value
				}
			}
		}
		if len(prefix) >= shardSize {
			if s := l[table][shardOf(prefix)]; s != nil {
				collect(s)
			}
			continue
		}
		for _, s := range l[table] {
			collect(s)
		}
	}
	rows := make([]kv.Write, 0, len(newest))
	for _, key := range slices.Sorted(maps.Keys(newest)) {
		rows = append(rows, kv.Write{Table: table, Key: []byte(key), Value: newest[key]})
	}
	return rows
}

// clone returns an immutable copy of the overlay. It copies no rows, so that a view costs about the same however much
// was written lately. The caller holds the lock, for reading at least.
func (o *overlay) clone() *overlay {
	c := &overlay{active: make(layer, len(o.active)), flushing: o.flushing}
	for table, shards := range o.active {
		for _, s := range shards {
			s.shared.Store(true)
		}
		c.active[table] = maps.Clone(shards)
	}
	return c
}

// inOrder returns the layer's writes by table and key, the order in which bbolt is fastest.
func (l layer) inOrder() []kv.Write {
	var all []kv.Write
	for _, table := range slices.Sorted(maps.Keys(l)) {
		from := len(all)
		for _, s := range l[table] {
			for key, value := range s.rows {
				all = append(all, kv.Write{Table: table, Key: []byte(key), Value: value})
			}
		}
		slices.SortFunc(all[from:], func(a, b kv.Write) int { return bytes.Compare(a.Key, b.Key) })
	}
	return all
}
