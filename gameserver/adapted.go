package gameserver

import (
	"bufio"
	"context"
	"errors"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/coder/websocket"

	"github.com/voxelpopuli/voxeld/gameserver/accept"
	"github.com/voxelpopuli/voxeld/gameserver/admission"
	"github.com/voxelpopuli/voxeld/gameserver/codec"
	"github.com/voxelpopuli/voxeld/gameserver/games"
	"github.com/voxelpopuli/voxeld/wire"
)

// This file serves clients of other games as sessions, through their adapters.

// Adapted is a socket for clients of another game.
type Adapted struct {
	Listener net.Listener
	Protocol games.Protocol
}

func (g *Gateway) serveAdapted(ctx context.Context, l net.Listener, p games.Protocol) error {
	return accept.Serve(ctx, l, g.Logger, g.metrics.panics, func(ctx context.Context, c net.Conn) {
		defer hangUp(c)
		if err := g.serveEither(ctx, c, p); err != nil && !isClosed(err) {
			g.Logger.Debug("connection of another game refused or ended", "remote", c.RemoteAddr().String(), "error", err)
		}
	})
}

// serveEither serves a connection over TCP, or over a WebSocket on the same port. It counts as a player from the start.
func (g *Gateway) serveEither(ctx context.Context, c net.Conn, p games.Protocol) error {
	if err := c.SetDeadline(time.Now().Add(wire.HandshakeTimeout)); err != nil {
		return err
	}
	release, err := g.limits.Admit(c.RemoteAddr(), admission.PlayerWeight) // may wait for a proxy's header
	if err != nil {
		g.metrics.noteRefusedJoin(err)
		p.Refuse(c, err.Error())
		return err
	}
	defer release()
	if p.Subprotocol() == "" {
		return g.serveClient(ctx, c, c.RemoteAddr(), p)
	}
	in := bufio.NewReader(c)
	method, err := in.Peek(len(http.MethodGet))
	switch early := (peekedConn{c, in}); {
	case err != nil:
		return err
	case string(method) == http.MethodGet:
		return g.serveUpgrade(ctx, early, p)
	default:
		return g.serveClient(ctx, early, c.RemoteAddr(), p)
	}
}

// serveClient serves a client of a game.
func (g *Gateway) serveClient(ctx context.Context, c net.Conn, remote net.Addr, p games.Protocol) error {
	if err := c.SetDeadline(time.Now().Add(wire.HandshakeTimeout)); err != nil {
		return err
	}
	stop := context.AfterFunc(ctx, func() { c.Close() }) //nolint:errcheck // the reads in Open report it
	client, join, err := p.Open(ctx, c)
	stop()
	if err != nil {
		if refused, ok := errors.AsType[*wire.Error](err); ok {
			p.Refuse(c, refused.Message)
		}
		return err
	}
	defer client.Cut()
	if err := c.SetDeadline(time.Time{}); err != nil {
		return err
	}
	running, end := context.WithCancel(ctx)
	var runner sync.WaitGroup
	defer runner.Wait()
	defer end()
	runner.Go(func() {
		defer g.metrics.panics.Recover("connection", client.Cut, "remote", remote.String())
		client.Run(running)
	})
	g.serveSession(ctx, adaptedConn{client, remote}, &join)
	return nil
}

// adaptedConn is the conn of a client of another game.
type adaptedConn struct {
	games.Client
	addr net.Addr
}

func (c adaptedConn) read() ([]byte, error) { return c.Read() }
func (c adaptedConn) setCodec(codec.Codec)  {} // always that of the Join
func (c adaptedConn) close() error          { return c.Close() }
func (c adaptedConn) cut()                  { c.Cut() }
func (c adaptedConn) remote() net.Addr      { return c.addr }

// peekedConn is a connection of which some has been read into a buffer.
type peekedConn struct {
	net.Conn
	in *bufio.Reader
}

// Read reads from the buffer first.
func (c peekedConn) Read(b []byte) (int, error) { return c.in.Read(b) }

// CloseWrite ends the stream, if the connection can do so in one direction.
func (c peekedConn) CloseWrite() error {
	if half, ok := c.Conn.(halfCloser); ok {
		return half.CloseWrite()
	}
	return c.Close()
}

// serveUpgrade serves a client over a WebSocket. The connection's HTTP server ends with it.
func (g *Gateway) serveUpgrade(ctx context.Context, c net.Conn, p games.Protocol) error {
	listener := &oneListener{conn: c, done: make(chan struct{})}
	server := &http.Server{
		ReadHeaderTimeout: wire.HandshakeTimeout,
		ConnState: func(_ net.Conn, state http.ConnState) {
			if state == http.StateClosed { // not hijacked
				listener.Close() //nolint:errcheck // never fails
			}
		},
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			defer listener.Close()                                                                                //nolint:errcheck // never fails
			defer g.metrics.panics.Recover("connection", func() { c.Close() }, "remote", c.RemoteAddr().String()) //nolint:errcheck // it is of no use
			ws, err := websocket.Accept(w, r, &websocket.AcceptOptions{
				Subprotocols: []string{p.Subprotocol()}, CompressionMode: websocket.CompressionDisabled,
				InsecureSkipVerify: true, // as for sessions: see serveSocket
			})
			if err != nil {
				g.Logger.Debug("websocket of another game not accepted", "remote", c.RemoteAddr().String(), "error", err)
				return
			}
			defer ws.CloseNow() //nolint:errcheck // closed in order before, or gone
			ws.SetReadLimit(readLimit)
			carried := websocket.NetConn(ctx, ws, websocket.MessageBinary)
			if err := g.serveClient(ctx, carried, c.RemoteAddr(), p); err != nil && !isClosed(err) {
				g.Logger.Debug("connection of another game refused or ended", "remote", c.RemoteAddr().String(), "error", err)
			}
		}),
	}
	if err := server.Serve(listener); !errors.Is(err, net.ErrClosed) {
		return err
	}
	return nil
}

// oneListener is the net.Listener of a server for one connection.
type oneListener struct {
	conn  net.Conn // nil once it is accepted
	close sync.Once
	done  chan struct{}
}

// Accept returns the connection, and at the next call waits until the server is done with it.
func (l *oneListener) Accept() (net.Conn, error) {
	if c := l.conn; c != nil {
		l.conn = nil
		return c, nil
	}
	<-l.done
	return nil, net.ErrClosed
}

// Close ends the wait of Accept.
func (l *oneListener) Close() error {
	l.close.Do(func() { close(l.done) })
	return nil
}

// Addr returns an address that nobody asks for.
func (l *oneListener) Addr() net.Addr { return &net.TCPAddr{} }
