package luanti

import (
	"context"
	"fmt"
	"net"

	lru "github.com/hashicorp/golang-lru/v2"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/voxelpopuli/voxeld/chunk"
	"github.com/voxelpopuli/voxeld/gameserver/games"
	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/wire/sessionmsg"
)

const (
	// viewDistance is asked of the gateway, in chunks.
	viewDistance = 5
	// maxColumns is how many chunks are kept for others at the same place, and maxColumn the bytes of each.
	maxColumns, maxColumn = 512, 64 << 10
	// maxArranged is of how many players the slots are kept, some 300 bytes each.
	maxArranged = 4096
)

// landKey is all that the packets of a chunk are made of.
type landKey struct {
	origin
	at   grid.ChunkPos
	land games.Packed
}

// Adapter is the games.Protocol of Luanti.
type Adapter struct {
	games.Metrics
	known       func(ctx context.Context, remote net.Addr, name string) bool
	columns     *games.Shared[landKey, [][]byte]
	definitions definitions
	uniform     uniforms
	arranged    *lru.Cache[string, []chunk.Block] // the slots of those who have arranged them, by their id
}

// New returns an Adapter. Known reports whether somebody has played under a name before, to a client at an address.
func New(r prometheus.Registerer, known func(ctx context.Context, remote net.Addr, name string) bool) (*Adapter, error) {
	d, err := define()
	if err != nil {
		return nil, fmt.Errorf("textures for Luanti: %w", err)
	}
	arranged, err := lru.New[string, []chunk.Block](maxArranged)
	if err != nil {
		return nil, err
	}
	land := prometheus.CounterOpts{Name: "voxeld_luanti_chunks_total", Help: "Chunks sent to clients of Luanti."}
	return &Adapter{
		Metrics:     games.NewMetrics(r, "luanti", "Luanti", land),
		columns:     games.NewShared[landKey](maxColumns, maxColumn, games.SizeOf),
		definitions: d, known: known, arranged: arranged,
	}, nil
}

// Subprotocol is that of WebSockets, which the game has none of.
func (a *Adapter) Subprotocol() string { return "" }

// Open reads a connection's handshake.
func (a *Adapter) Open(ctx context.Context, c net.Conn) (games.Client, sessionmsg.Join, error) {
	to, ok := c.(games.PacketConn)
	if !ok {
		return nil, sessionmsg.Join{}, fmt.Errorf("%T is not a connection of a luanti.Listener", c)
	}
	name, err := readLogin(c, func(name string) bool { return a.known(ctx, c.RemoteAddr(), name) })
	if err != nil {
		return nil, sessionmsg.Join{}, err
	}
	return newClient(a, to), sessionmsg.Join{Name: name, View: viewDistance}, nil
}

// Refuse disconnects a client with a reason.
func (a *Adapter) Refuse(c net.Conn, why string) {
	c.Write(deny(why)) //nolint:errcheck // it may be gone already
}
