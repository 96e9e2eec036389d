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
// Only this package imports bbolt, and no bbolt type appears in its
// exported signatures.
//
// # The file
//
// voxeld.db is a bbolt file (version 2 of bbolt's format); bbolt's tools open it. It can be moved between machines of the
// same byte order. While the daemon runs it holds flock(LOCK_EX) on it. It grows in steps of 1 MiB and never shrinks. A
// new one is made as voxeld.db.new, synced and renamed; an empty one counts as damage. bbolt has no checksums on its
// data, so each value is followed by four bytes: the CRC-32C (Castagnoli, little-endian) of
//
//	table name, 0x00, key length u32 little-endian, key, value
//
// Table names have 1 to 64 bytes, keys 1 to 32,768, values at most 32 MiB.
//
// # The journal
//
// Every 8 MiB or 5 s one transaction writes the journal to the file. Commits that do not fit into the journal, and all
// while the disk has less to spare than 32 MiB plus four times what waits in the journal, go into the file at once.
// voxeld.journal-0 and voxeld.journal-1 are written in turn, reused from the beginning, and removed at a clean stop.
// They grow in zero-filled steps, to 16 MiB at most. A file is a sequence of records, each beginning at a multiple of 8
// bytes, integers big-endian:
//
//	u32  CRC-32C (Castagnoli) of all that follows
//	u32  length n of the writes
//	u64  salt of this generation of the file
//	u64  number: one more than the previous record's, over both files
//	n    writes: table length u8, table, key length u32, key, value length u32 (0xFFFFFFFF: the row is deleted), value;
//	     and so on
//
// A record, one or more commits, is acknowledged after fdatasync. Only records with the file's salt in meta/journal
// count; each transaction that makes a file's records superfluous draws a new one (docs/adr/0086). At the start the
// records of both files are written to the tables. A file ends at the first place without a complete record. If the
// salt occurs behind it, where a head would have it, or if numbers are missing, the journal is damaged, and the store
// is not opened.
//
// # Damage
//
// At the start up to 256 MiB of pages are read completely, with all checksums; of larger files the branch pages and the
// free list. A damaged file is not opened. Replicas with damaged rows of land, raft_log or raft_state are replaced from
// other members; damaged rows of regions, players, player_bases, dht, peers, published, incarnations, bases and contents
// are deleted, since the network has them; for the rest, those of the catalog among them, the daemon ends. More than 1,000
// damaged rows, or a table without a sound one, are a damaged file. An invalid meta page is accepted only beside a
// journal.
//
// In a read, damage fails that read alone. In a commit, damage, or an error of the disk, ends all writing until a
// restart; a full disk fails only the commits that need space.
//
// # Tables
//
// Integers in keys and values are big-endian, X and Z two's complement. The owner's code has the bounds and the meaning
// of each value. "a ‖ b" are the bytes of a, then of b.
//
//	meta          format                  u32: 3, the version of what is described here; there are no lower ones
//	              journal                 u64s: number of the last journal record that the tables have; the salts of
//	                                      voxeld.journal-0 and -1
//	world         genesis, planned        the genesis that this directory belongs to; one whose catalog may not be
//	                                      founded yet (cmd/voxeld)
//	node          identity                private key of the peer, libp2p's encoding (dht)
//	peers         peer id, base58         CBOR: 1 multiaddrs, 2 last seen (Unix seconds); at most 256 rows (dht)
//	dht           datastore key           record in libp2p's protobuf; can be deleted without loss (dht)
//	published     DHT key of a record     its signed envelope, to be republished (dht)
//	regions       region id u64           nodemsg.EncodeRegion: a region of which this node is a member (region)
//	recovered     region id u64           the same before it was recovered here, with the former members that were not
//	                                      notified yet (region)
//	bases         SHA-256 of a chunk      that chunk in the chunk codec, raw deflate: edits refer to it, and this node
//	                                      generates another one (region)
//	contents      SHA-256                 what the policy names by its hash, raw deflate (region/contents)
//	incarnations  own; seen/ ‖ peer id    CBOR (wire/nodemsg/lineage.go): starts of this node; newest start that another
//	                                      one has shown (region/integrity)
//	              promised, reached       Unix seconds u64: when this node last noted that it promised something; the same
//	                                      in the data to which it was put back
//	outdated      group u64               u64: the replica not to be used again, since its data was put back; group
//	                                      0: others are to be listed (region/integrity)
//	raft_log      group u64 ‖ index u64   kind u8 ‖ term u64 ‖ data (replica)
//	raft_state    group u64 ‖ s, c, x,    hard state and applied index; configuration; tombstone; there if a leader's log
//	              k or p                  conflicts with a committed entry; probe (replica)
//	catalog       cell as dx,dz/label     nodemsg.EncodeRegion (world)
//	acts, policy  number u64, from 1 on   command in the catalog's log (nodemsg.EncodeAct), on its members (world); this
//	                                      node's copy (region/policysync)
//	policy_import a or b ‖ u64            command that the first node of a restored world has yet to enter
//	players       player id, 16 bytes     newest player record saved here, without its login (nodemsg.EncodePlayerRecord;
//	                                      gameserver/players)
//	player_bases  the same                u64s: number of the record in players that it belongs to (ignored if that has
//	                                      another one); login in Unix milliseconds, 0 for none; number. A record in the
//	                                      network with a later login, or the same and a greater number, is newer than
//	                                      that in players. Written with that row; for guests only if the network had not
//	                                      answered
//	land          region u64 ‖            (world)
//	  b ‖ X i32 ‖ Z i32                   hash of the chunk's generated base, 32 bytes
//	  e ‖ X ‖ Z ‖ index u32               block u16: an edit over the base; then the text of a sign, at most 323 bytes
//	  g ‖ name of a mod                   what it may do: the operator's command, and more (world/mods.go)
//	  h ‖ X ‖ Z ‖ number u32              segment of the chunk's history (history/record.go)
//	  i ‖ X ‖ Z ‖ id u64                  event that waits for a mod (world/inbox.go)
//	  p ‖ player id                       that player's recent edit sequences
//	  s                                   u64s: index of the entry that split the region; of the last that merged it;
//	                                      number of the next attempt to merge; parent; index of the parent's split;
//	                                      attempt that froze it, plus 1; 1 once a batch was applied (may be missing);
//	                                      index of the entry that gave up the region (may be missing). No row if all 0
//	  r                                   u64: number of the last rollback that is complete; then, if one has arrived,
//	                                      u64: number of the last order (rollback or claim) that has arrived
//
// Changed land rows, the applied index and the trimming of the log are one commit, so a restart neither repeats nor
// misses an entry. world/entry.go has the entries of a region's log.
//
// A change that an older voxeld would misread raises meta/format; Open refuses every version but its own and those that
// it converts. A migration belongs in Open, before any other read.
package store
