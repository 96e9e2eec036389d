package classicube

import (
	"context"
	"net"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/voxelpopuli/voxeld/gameserver/games"
	"github.com/voxelpopuli/voxeld/wire/sessionmsg"
)

// maxBuilding is how many levels are packed at the same time: each takes a core for a tenth of a second.
const maxBuilding = 2

// Adapter is the games.Protocol of ClassiCube.
type Adapter struct {
	metrics  *metrics
	building chan struct{} // holds a token for each level that is being packed
}

// New returns an Adapter.
func New(r prometheus.Registerer) *Adapter {
	return &Adapter{metrics: newMetrics(r), building: make(chan struct{}, maxBuilding)}
}

// Subprotocol is that of WebSockets of ClassiCube's web client.
func (a *Adapter) Subprotocol() string { return "ClassiCube" }

// Open reads a connection's handshake.
func (a *Adapter) Open(_ context.Context, c net.Conn) (games.Client, sessionmsg.Join, error) {
	in := newPacketReader(c)
	l, err := readLogin(c, in)
	if err != nil {
		return nil, sessionmsg.Join{}, err
	}
	join := sessionmsg.Join{Version: sessionmsg.SessionVersion, Name: l.name, View: viewDistance, Encoding: sessionmsg.EncodingCBOR}
	return newClient(a, c, in, l.features), join, nil
}

// Refuse disconnects a client with a reason.
func (a *Adapter) Refuse(c net.Conn, why string) {
	c.Write(disconnect(why)) //nolint:errcheck // it may be gone already
}
