// Package kv holds the one word that the storage engine and its users share: a write to a table.
//
// Stores, replicas and the DHT all persist, but may not import one another (docs/ARCHITECTURE.md);
// each declares the small storage interface it needs in terms of this type. Any package may import kv.
package kv

import "errors"

// Write is one change to a durable table. A nil Value deletes the key; an empty one does not.
type Write struct {
	Table string // one of the table names in docs/disk-format.md
	Key   []byte
	Value []byte
}

// ErrDamaged marks a read that found what cannot be what was written. Stores wrap it; whoever meets it must not go on
// with what was read before of the same thing.
var ErrDamaged = errors.New("what is stored is damaged")
