// Package store keeps a node's durable tables in one bbolt file, with a journal before it.
//
// Job: a commit is on disk when Commit returns, whole or not at all. Commits that wait at the same
// time share one record of the journal, so a node with a hundred busy regions pays for one fsync and
// not for a hundred. Now and then what the journal holds goes into bbolt's tables, in one transaction
// (journal.go, overlay.go, checkpoint.go; docs/adr/0013). Everything else here is about bad days: a second daemon in the same directory
// (ErrInUse), a damaged file (ErrDamaged), a full disk (ErrFull), a crash at any instant.
//
// Whose state: what is needed to write is behind the lock pen. Commit and DeletePrefix queue their work; whoever finds
// nobody writing then writes all that is queued, else Run does. Run also starts and awaits the goroutine that writes the
// file. Locks, in the order in which they may be taken: pen, then mu or the overlay's. Get, Scan, Tables, Backup, Check and Size read consistent snapshots and are
// safe for concurrent use.
//
// Who may import it: region and above (floors 4 to 6). bbolt is imported only here and never shows.
// The bytes are described in docs/disk-format.md.
package store
