// Package store keeps a node's durable tables in one bbolt file, with a journal before it.
//
// Job: when Commit returns, the commit is on disk, whole or not at all. Commits that wait at the same time share one
// record of the journal, so a node with a hundred busy regions pays for one fsync instead of a hundred. Now and then a
// checkpoint moves the journal's contents into bbolt's tables, in one transaction (docs/adr/0013). The rest of the
// package handles failures: a second daemon in the same directory (ErrInUse), a damaged file (kv.ErrDamaged), a full
// disk (ErrFull), a crash at any instant.
//
// Parts, from the top down: DB (open.go, read.go, db.go) queues commits and serves reads; writer performs the commits,
// and checkpoints; journal and overlay hold what is not in the tables yet; tables is the bbolt file (tables_open.go
// opens it); inspection reads the file's structure before bbolt does (docs/adr/0021).
//
// Ownership: writer belongs to the goroutine that holds its lock. Commit queues its work; a caller that
// finds no writer then writes everything that is queued, otherwise Run does. Run also starts and awaits the goroutine
// that writes the file. Locks are taken in this order: writer, then mu or the overlay's. Get, Scan, Keys, View,
// Check and Size read consistent snapshots and are safe for concurrent use.
//
// Importers: region and above (floors 4 to 6). Only this package imports bbolt, and no bbolt type appears in its
// exported signatures. docs/disk-format.md describes the bytes.
package store
