// Package kv defines Write, a change to a table, which the storage engine shares with its users.
//
// Stores, replicas and the DHT all persist data, but may not import one another (docs/ARCHITECTURE.md). Each declares
// the small storage interface that it needs in terms of this type. Any package may import kv.
package kv

import "errors"

// Write is one change to a durable table. A nil Value deletes the key; an empty one does not.
type Write struct {
	Table string // one of the table names in the documentation of package store
	Key   []byte
	Value []byte
}

// ErrDamaged marks stored bytes that were never written, or that the reader cannot have written. A caller that meets it
// must discard what it has already read of the same object.
var ErrDamaged = errors.New("stored data is damaged")
