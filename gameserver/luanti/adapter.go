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
	"github.com/voxelpopuli/voxeld/player"
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
	look        Look
	columns     *games.Shared[landKey, [][]byte]
	definitions definitions
	uniform     uniforms
	arranged    *lru.Cache[string, []chunk.Block] // the slots of those who have arranged them, by their id
}

// Look returns the verifier of the password with which a guest keeps a name, nil if there is none, and reports whether
// somebody has played under it before, to a client at an address.
type Look func(ctx context.Context, remote net.Addr, name string) (v *player.Verifier, known bool, err error)

// New returns an Adapter.
func New(r prometheus.Registerer, look Look) (*Adapter, error) {
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
		definitions: d, look: look, arranged: arranged,
	}, nil
}

// Subprotocol is that of WebSockets, which the game has none of.
func (a *Adapter) Subprotocol() string { return "" }

// Open reads a connection's handshake.
func (a *Adapter) Open(ctx context.Context, c net.Conn) (games.Client, games.Opening, error) {
	to, ok := c.(games.PacketConn)
	if !ok {
		return nil, games.Opening{}, fmt.Errorf("%T is not a connection of a luanti.Listener", c)
	}
	name, verifier, err := readLogin(c, func(name string) (*player.Verifier, bool, error) { return a.look(ctx, c.RemoteAddr(), name) })
	if err != nil {
		return nil, games.Opening{}, err
	}
	cl := newClient(a, to)
	if verifier != nil {
		cl.kept = name
	}
	return cl, games.Opening{Join: sessionmsg.Join{Name: name, View: viewDistance}, Verifier: verifier}, nil
}

// Refuse disconnects a client with a reason.
func (a *Adapter) Refuse(c net.Conn, why string) {
	c.Write(deny(why)) //nolint:errcheck // it may be gone already
}
