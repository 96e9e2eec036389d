package dht

import "github.com/voxelpopuli/voxeld/kv"

// Storage persists a node's identity, its known peers and its share of the records. It is safe for concurrent use. Commit
// returns when all writes, or none of them, are durable.
type Storage interface {
	Get(table string, key []byte) ([]byte, error)
	Scan(table string, prefix []byte, visit func(key, value []byte) error) error
	Commit(writes []kv.Write) error
}

// The tables of this package.
const (
	tableNode      = "node"      // identityKey → the peer's private key
	tablePeers     = "peers"     // peer id → knownPeer, in CBOR
	tableRecords   = "dht"       // datastore key ("/chunk/…", "/player/…") → record in libp2p's protobuf
	tablePublished = "published" // record key → envelope of a player record that this node signed
)
