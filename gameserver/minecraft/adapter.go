package minecraft

import (
	"context"
	"net"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/voxelpopuli/voxeld/gameserver/games"
	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/wire/sessionmsg"
)

// maxColumns is how many chunks are kept for others at the same place, and maxColumn the bytes of each.
const maxColumns, maxColumn = 512, 64 << 10

// landKey is all that the packets of a chunk are made of.
type landKey struct {
	at   grid.ChunkPos
	land games.Packed
}

// Adapter is the games.Protocol of Minecraft.
type Adapter struct {
	games.Metrics
	status  func() Status
	columns *games.Shared[landKey, shownChunk]
}

// New returns an Adapter, which shows a status in lists of servers.
func New(r prometheus.Registerer, status func() Status) *Adapter {
	land := prometheus.CounterOpts{Name: "voxeld_minecraft_chunks_total", Help: "Chunks of 32 × 32 blocks sent to clients of Minecraft."}
	return &Adapter{
		Metrics: games.NewMetrics(r, "minecraft", "Minecraft", land),
		status:  status,
		columns: games.NewShared[landKey](maxColumns, maxColumn, shownChunk.size),
	}
}

// Subprotocol returns that there are no WebSockets.
func (a *Adapter) Subprotocol() string { return "" }

// Open reads a connection's handshake: it is for the status, or for a login.
func (a *Adapter) Open(_ context.Context, c net.Conn) (games.Client, games.Opening, error) {
	in := newFrameReader(c)
	if first, err := in.in.Peek(1); err == nil && first[0] == oldPing {
		return nil, games.Opening{}, answerOldPing(c, a.status())
	}
	version, want, err := readHandshake(in)
	if err != nil {
		return nil, games.Opening{}, err
	}
	if want == wantStatus {
		return nil, games.Opening{}, answerStatus(c, in, a.status())
	}
	name, err := readLogin(in, version)
	if err != nil {
		return nil, games.Opening{}, err
	}
	return newClient(a, c, in), games.Opening{Join: sessionmsg.Join{Name: name, View: maxView}}, nil
}

// Refuse disconnects a client that is logging in, with a reason.
func (a *Adapter) Refuse(c net.Conn, why string) {
	c.Write(appendFrame(nil, begin(packetLoginRefused).text(textOf(why, "").json()), false)) //nolint:errcheck // it may be gone already
}
