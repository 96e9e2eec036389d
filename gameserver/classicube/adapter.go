package classicube

import (
	"context"
	"net"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/voxelpopuli/voxeld/gameserver/games"
	"github.com/voxelpopuli/voxeld/wire/sessionmsg"
)

// maxLevels is how many levels are kept for others at the same place, and maxLevel the bytes of each.
const maxLevels, maxLevel = 8, 2 << 20

// Adapter is the games.Protocol of ClassiCube.
type Adapter struct {
	games.Metrics
	levels *games.Shared[levelKey, [][]byte]
}

// New returns an Adapter.
func New(r prometheus.Registerer) *Adapter {
	land := prometheus.CounterOpts{Name: "voxeld_classicube_levels_total", Help: "Levels sent to clients of ClassiCube."}
	return &Adapter{
		Metrics: games.NewMetrics(r, "classicube", "ClassiCube", land),
		levels:  games.NewShared[levelKey](maxLevels, maxLevel, games.SizeOf),
	}
}

// Subprotocol is that of WebSockets of ClassiCube's web client.
func (a *Adapter) Subprotocol() string { return "ClassiCube" }

// Open reads a connection's handshake.
func (a *Adapter) Open(_ context.Context, c net.Conn) (games.Client, games.Opening, error) {
	in := newPacketReader(c)
	l, err := readLogin(c, in)
	if err != nil {
		return nil, games.Opening{}, err
	}
	return newClient(a, c, in, l.features), games.Opening{Join: sessionmsg.Join{Name: l.name, View: viewDistance}}, nil
}

// Refuse disconnects a client with a reason.
func (a *Adapter) Refuse(c net.Conn, why string) {
	c.Write(disconnect(why)) //nolint:errcheck // it may be gone already
}
