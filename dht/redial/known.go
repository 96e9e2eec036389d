package redial

import (
	"fmt"
	"slices"
	"time"

	"github.com/fxamacker/cbor/v2"
	"github.com/libp2p/go-libp2p/core/peer"

	"github.com/voxelpopuli/voxeld/internal/kv"
)

const (
	maxKnown      = 256                 // known peers kept on disk
	maxKnownAddrs = 16                  // addresses kept of each
	forgetKnown   = 30 * 24 * time.Hour // since a peer was last seen
)

// knownPeer is what the node stores about a peer across restarts.
type knownPeer struct {
	Addrs []string `cbor:"1,keyasint"` // multiaddrs without /p2p/
	Seen  int64    `cbor:"2,keyasint"` // last time in the routing table, Unix seconds
}

// table is the table of known peers: peer id → knownPeer, in CBOR.
const table = "peers"

var knownDec = must(cbor.DecOptions{MaxArrayElements: 1024, MaxMapPairs: 16}.DecMode())

func must[T any](v T, err error) T {
	if err != nil {
		panic("redial: " + err.Error()) // this package fixes both the types and the encoding
	}
	return v
}

// Storage reads what was written earlier to a table of the node's disk.
type Storage interface {
	Scan(table string, prefix []byte, visit func(key, value []byte) error) error
}

// loadKnown reads the known peers. It skips invalid entries: a live peer is found again.
func loadKnown(storage Storage) (map[peer.ID]knownPeer, error) {
	known := make(map[peer.ID]knownPeer)
	err := storage.Scan(table, nil, func(key, value []byte) error {
		id, err := peer.Decode(string(key))
		if err != nil {
			return nil
		}
		var k knownPeer
		if err := knownDec.Unmarshal(value, &k); err != nil {
			return nil
		}
		known[id] = k
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("read known peers: %w", err)
	}
	return known, nil
}

// KnownRow returns the write that makes a peer known to a node.
func KnownRow(id string, addrs []string, now time.Time) kv.Write {
	value := must(cbor.Marshal(knownPeer{Addrs: addrs[:min(len(addrs), maxKnownAddrs)], Seen: now.Unix()})) // texts and a number: cannot fail
	return kv.Write{Table: table, Key: []byte(id), Value: value}
}

// updateKnown updates the known peers from the routing table, and drops the oldest when there are too many, or they are
// too old and the clock has settled. It returns the writes that this requires.
func updateKnown(known map[peer.ID]knownPeer, seen map[peer.ID][]string, now time.Time, settled bool) []kv.Write {
	var writes []kv.Write
	for id, addrs := range seen {
		slices.Sort(addrs)
		addrs = addrs[:min(len(addrs), maxKnownAddrs)]
		old, there := known[id]
		// One write per hour and peer suffices to rank peers by age.
		if len(addrs) == 0 || there && slices.Equal(old.Addrs, addrs) && now.Unix()-old.Seen < 3600 {
			continue
		}
		k := knownPeer{Addrs: addrs, Seen: now.Unix()}
		value := must(cbor.Marshal(k)) // texts and a number: cannot fail
		known[id] = k
		writes = append(writes, kv.Write{Table: table, Key: []byte(id.String()), Value: value})
	}
	var oldest []peer.ID
	for id := range known {
		oldest = append(oldest, id)
	}
	slices.SortFunc(oldest, func(a, b peer.ID) int { return int(known[a].Seen - known[b].Seen) })
	for i, id := range oldest {
		if i >= len(oldest)-maxKnown && (!settled || now.Unix()-known[id].Seen < int64(forgetKnown/time.Second)) {
			break
		}
		delete(known, id)
		writes = append(writes, kv.Write{Table: table, Key: []byte(id.String())})
	}
	return writes
}
