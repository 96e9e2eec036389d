// Package backup is the format of backups: the catalog, the land of all regions and the players of a world, in one
// compressed stream with checksums. It writes, reads and verifies them, and has no part in how they are collected
// (region/backups) or put back (internal/backup/restore). docs/backup.md describes the bytes.
//
// A backup is full, or incremental: the latter refers to its base for the regions that have not changed since. A Chain
// is a full backup and the incremental ones that follow it.
//
// A Writer and a Reader belong to their caller's goroutine.
package backup
