// Package store keeps a node's durable tables in one bbolt file, with a journal before it.
//
// Job: a commit is on disk when Commit returns, whole or not at all. Commits that wait at the same
// time share one record of the journal, so a node with a hundred busy regions pays for one fsync and
// not for a hundred. Now and then what the journal holds goes into bbolt's tables, in one transaction
// (journal.go, overlay.go, checkpoint.go; docs/adr/0013). Everything else here is about bad days: a second daemon in the same directory
// (ErrInUse), a damaged file (ErrDamaged), a full disk (ErrFull), a crash at any instant.
//
// Whose state: the goroutine in Run is the only writer of the journal, and starts and awaits the one
// that writes the file. Commit and DeletePrefix hand it
// their work and wait; Get, Scan, Tables, Backup, Check and Size read consistent snapshots and are
// safe for concurrent use.
//
// Who may import it: region and above (floors 4 to 6). bbolt is imported only here and never shows.
// The bytes are described in docs/disk-format.md.
package store
