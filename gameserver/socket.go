package gameserver

import (
	"context"
	"net"
	"net/http"

	"github.com/coder/websocket"

	"github.com/voxelpopuli/voxeld/gameserver/admission"
	"github.com/voxelpopuli/voxeld/gameserver/codec"
	"github.com/voxelpopuli/voxeld/player"
	"github.com/voxelpopuli/voxeld/wire"
)

// readLimit is the largest WebSocket message that is read at all. Messages between wire.MaxLine and this are refused with a
// reason.
const readLimit = 2 << 20

// serveSocket runs a session over WebSocket.
func (g *Gateway) serveSocket(ctx context.Context, w http.ResponseWriter, r *http.Request) {
	query := r.URL.Query()
	skin, err := player.ParseSkin(query.Get("skin"))
	if err != nil {
		http.Error(w, wire.ErrorText(err), http.StatusBadRequest)
		return
	}
	remote := addrOf(r)
	release, err := g.limits.Admit(remote, admission.PlayerWeight)
	if err != nil {
		g.metrics.noteRefusedJoin(err)
		http.Error(w, wire.ErrorText(err), http.StatusTooManyRequests)
		return
	}
	defer release()
	ws, err := websocket.Accept(w, r, &websocket.AcceptOptions{
		InsecureSkipVerify: true, // the policy of package weborigin is in front of this
		// Frames are small, and chunks are compressed already, once for all.
		CompressionMode: websocket.CompressionDisabled,
	})
	if err != nil {
		g.Logger.Debug("websocket not accepted", "remote", r.RemoteAddr, "error", err)
		return
	}
	defer ws.CloseNow() //nolint:errcheck // closed in order before, or gone
	ws.SetReadLimit(readLimit)
	// The request's context ends when the connection is hijacked; a session ends by its own rules.
	c := &socketConn{ws: ws, addr: remote, codec: codec.JSON, chunkHashes: query.Has("hashes"), skins: query.Has("skin"), skin: skin}
	c.ctx, c.cancel = context.WithCancel(context.WithoutCancel(r.Context()))
	defer c.cancel()
	g.serveSession(ctx, c, nil)
}

func addrOf(r *http.Request) net.Addr {
	a, err := net.ResolveTCPAddr("tcp", r.RemoteAddr)
	if err != nil {
		return &net.TCPAddr{}
	}
	return a
}
