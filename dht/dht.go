package dht

import (
	"errors"
	"log/slog"
	"sync"
	"time"

	kaddht "github.com/libp2p/go-libp2p-kad-dht"
	"github.com/libp2p/go-libp2p/core/crypto"
	libhost "github.com/libp2p/go-libp2p/core/host"
	"github.com/libp2p/go-libp2p/core/peer"

	"github.com/voxelpopuli/voxeld/dht/record"
	"github.com/voxelpopuli/voxeld/dht/redial"
	"github.com/voxelpopuli/voxeld/dht/transport"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
)

var (
	// ErrNotFound means that none of the nodes asked has the record, or that there is no other node.
	ErrNotFound = nodemsg.ErrNoRecord

	// ErrOutdated means that the record was not stored, because a newer one is known.
	ErrOutdated = errors.New("a newer record is known")
)

// DHT is a node's part in one world's Kademlia network. Its methods may be called from any goroutine.
type DHT struct {
	host      *transport.Host
	lib       libhost.Host // libp2p's side of host
	opts      Options
	key       crypto.PrivKey
	kad       *kaddht.IpfsDHT
	store     *datastore
	holders   *holders
	places    *places
	placement placement
	regions   *record.Regions
	players   *record.Players
	joined    time.Time // when Join was called
	met       bool      // this node had met others before
	logger    *slog.Logger
	metrics   *metrics

	maxPublished int // player records; maxOfSigner but in tests

	dials     *redial.Schedule // belongs to Run
	forgets   chan peer.ID     // peers that Run is to forget
	lastTable struct {
		peers []peer.ID // in the routing table, in order
		at    time.Time
	} // when Run last looked at the table; belongs to Run

	mu struct {
		sync.Mutex
		published     map[string]publication // by record key
		spread        int                    // known peers when all records were last made due for newcomers
		catalogSpread int                    // known peers when the catalog's record was
	}
}
