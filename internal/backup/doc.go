// Package backup is the format of backups: the catalog, the land of all regions and the players of a world, in one
// compressed stream with checksums. It writes, reads and verifies them, and has no part in how they are collected
// (region/backups) or put back (internal/backup/restore).
//
// A backup is full, or incremental: the latter refers to its base for the regions that have not changed since. A Chain
// is a full backup and the incremental ones that follow it.
//
// # Format
//
// A backup begins with the 16 bytes "voxeld backup", NUL, NUL, version 1. The rest is one zstd stream of records:
// length (4 bytes, big-endian) and CBOR. Each record has one of these fields:
//
//	1 header   genesis, time, version of voxeld, nodes and addresses, id of the base, cells of the area
//	2 group    region id, cell, log index, term, next replica id, recoveries, members; problem; missing; or the checksum
//	           of unchanged rows; signatures of members; an issuer's of who the catalog's members are
//	3 rows     of the last group: keys and values as in the tables of package store, without their common prefix
//	4 end      of the group: number of rows, SHA-256 of its rows
//	5 table    rows of players, of terrain that some nodes generate differently, or of commands about roles, names, bans
//	           and claims
//	6 summary  numbers of groups and rows, problems, SHA-256 of all records before, which is the backup's id; charters
//	           and certificates
//
// The catalog is the first group. A signature is Ed25519 over the text "voxeld attestation 1", NUL, world id, region
// id, recoveries, log index (8 bytes each, big-endian) and the checksum of the rows.
//
// A Writer and a Reader belong to their caller's goroutine.
package backup
