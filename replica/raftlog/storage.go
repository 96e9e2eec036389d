package raftlog

import "github.com/voxelpopuli/voxeld/internal/kv"

// Reader reads durable tables.
type Reader interface {
	// Get returns the value at key, nil without an error if there is none.
	Get(table string, key []byte) ([]byte, error)
	// Scan visits the keys that begin with prefix, in order. The slices are valid during the visit only.
	Scan(table string, prefix []byte, visit func(key, value []byte) error) error
}

// Storage is the underlying durable key-value store: package store's, or a fake in memory. Its methods are called
// concurrently from the goroutine of Host.Run, from callers of Host.Has and Host.Groups, and from the transport that
// sends snapshots.
type Storage interface {
	Reader
	// Commit makes all writes durable, or none of them, before it returns. Of several writes to a key the last one
	// wins.
	Commit(writes []kv.Write) error
	// View calls read with a snapshot of all tables as they are when it begins. get and scan are as in Reader, and
	// valid until read returns; so is the value that get returns.
	View(read func(
		get func(table string, key []byte) ([]byte, error),
		scan func(table string, prefix []byte, visit func(key, value []byte) error) error,
	) error) error
}

// keyLister is a Storage that can list keys whose values are damaged.
type keyLister interface {
	Keys(table string, prefix []byte, visit func(key []byte) error) error
}

// listKeys visits the keys that begin with prefix, including those of damaged rows if the storage supports it.
func listKeys(s Reader, table string, prefix []byte, visit func(key []byte) error) error {
	if k, ok := s.(keyLister); ok {
		return k.Keys(table, prefix, visit)
	}
	return s.Scan(table, prefix, func(key, _ []byte) error { return visit(key) })
}

// view is a snapshot of a Storage.
type view struct {
	get  func(table string, key []byte) ([]byte, error)
	scan func(table string, prefix []byte, visit func(key, value []byte) error) error
}

func (v view) Get(table string, key []byte) ([]byte, error) { return v.get(table, key) }

func (v view) Scan(table string, prefix []byte, visit func(key, value []byte) error) error {
	return v.scan(table, prefix, visit)
}

// ReadView calls read with a snapshot of the storage.
func ReadView(s Storage, read func(r Reader) error) error {
	return s.View(func(
		get func(table string, key []byte) ([]byte, error),
		scan func(table string, prefix []byte, visit func(key, value []byte) error) error,
	) error {
		return read(view{get: get, scan: scan})
	})
}
