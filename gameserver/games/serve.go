package games

import (
	"bufio"
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/coder/websocket"

	"github.com/voxelpopuli/voxeld/gameserver/accept"
	"github.com/voxelpopuli/voxeld/gameserver/weborigin"
	"github.com/voxelpopuli/voxeld/internal/isolate"
	"github.com/voxelpopuli/voxeld/wire"
	"github.com/voxelpopuli/voxeld/wire/sessionmsg"
)

// frameLimit is the largest WebSocket message that is read.
const frameLimit = 64 << 10

// Server serves the clients of a game.
type Server struct {
	Protocol Protocol
	// Admit counts a connection against its address, as a player, until release is called.
	Admit func(remote net.Addr) (release func(), err error)
	// Session runs a client's session. It may be called again when it has returned.
	Session  func(ctx context.Context, c *Conn, remote net.Addr, join sessionmsg.Join)
	Accounts *Accounts
	MayLogIn func(remote net.Addr) bool // counts an attempt to log in against the address
	Pages    *weborigin.Policy          // which web pages may open WebSockets
	Panics   *isolate.Panics
	Logger   *slog.Logger
}

// Serve serves connections until ctx ends or the listener fails, and returns when all of them have ended.
func (s *Server) Serve(ctx context.Context, l net.Listener) error {
	return accept.Serve(ctx, l, s.Logger, s.Panics, func(ctx context.Context, c net.Conn) {
		defer accept.HangUp(c, accept.RefusedTime)
		if err := s.serveEither(ctx, c); err != nil {
			s.Logger.Debug("connection of another game refused or ended", "remote", c.RemoteAddr().String(), "error", err)
		}
	})
}

// serveEither serves a connection over TCP, or over a WebSocket on the same port. It counts as a player from the start.
func (s *Server) serveEither(ctx context.Context, c net.Conn) error {
	if err := c.SetDeadline(time.Now().Add(wire.HandshakeTimeout)); err != nil {
		return err
	}
	release, err := s.Admit(c.RemoteAddr()) // may wait for a proxy's header
	if err != nil {
		s.Protocol.Refuse(c, wire.ErrorText(err))
		return err
	}
	defer release()
	defer accept.HangUp(c, accept.AdmittedTime)
	if _, packets := c.(PacketConn); !packets {
		c = &pacedConn{Conn: c}
	}
	if s.Protocol.Subprotocol() == "" {
		return s.serveClient(ctx, c, c.RemoteAddr())
	}
	in := bufio.NewReader(c)
	method, err := in.Peek(len(http.MethodGet))
	switch early := (peekedConn{c, in}); {
	case err != nil:
		return err
	case string(method) == http.MethodGet:
		return s.serveUpgrade(ctx, early)
	default:
		return s.serveClient(ctx, early, c.RemoteAddr())
	}
}

// serveClient serves a client of a game.
func (s *Server) serveClient(ctx context.Context, c net.Conn, remote net.Addr) error {
	if err := c.SetDeadline(time.Now().Add(wire.HandshakeTimeout)); err != nil {
		return err
	}
	stop := context.AfterFunc(ctx, func() { c.Close() }) //nolint:errcheck // the reads in Open report it
	client, opening, err := s.Protocol.Open(ctx, c)
	stop()
	if err != nil {
		if refused, ok := errors.AsType[*wire.Error](err); ok {
			s.Protocol.Refuse(c, refused.Message)
		}
		return err
	}
	if err := c.SetDeadline(time.Time{}); err != nil {
		return err
	}
	s.Protocol.Clients().Inc()
	defer s.Protocol.Clients().Dec()
	running, end := context.WithCancel(ctx)
	var runner sync.WaitGroup
	defer runner.Wait()
	defer end()
	conn := newConn(client, s.Accounts, func() bool { return s.MayLogIn(remote) }, opening)
	runner.Go(func() {
		defer s.Panics.Recover("connection", client.Cut, "remote", remote.String())
		conn.run(running)
	})
	s.Session(ctx, conn, remote, conn.begin())
	for conn.follows() {
		s.Session(ctx, conn, remote, conn.begin())
	}
	return nil
}

// peekedConn is a connection of which some has been read into a buffer.
type peekedConn struct {
	net.Conn
	in *bufio.Reader
}

// Read reads from the buffer first.
func (c peekedConn) Read(b []byte) (int, error) { return c.in.Read(b) }

// CloseWrite ends the stream, if the connection can do so in one direction.
func (c peekedConn) CloseWrite() error { return closeWrite(c.Conn) }

// serveUpgrade serves a client over a WebSocket. The connection's HTTP server ends with it.
func (s *Server) serveUpgrade(ctx context.Context, c net.Conn) error {
	listener := &oneListener{conn: c, done: make(chan struct{})}
	server := &http.Server{
		ReadHeaderTimeout: wire.HandshakeTimeout,
		ConnState: func(_ net.Conn, state http.ConnState) {
			if state == http.StateClosed { // not hijacked
				listener.Close() //nolint:errcheck // never fails
			}
		},
		Handler: s.Pages.KnownPages(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			defer listener.Close()                                                                        //nolint:errcheck // never fails
			defer s.Panics.Recover("connection", func() { c.Close() }, "remote", c.RemoteAddr().String()) //nolint:errcheck // it is of no use
			ws, err := websocket.Accept(w, r, &websocket.AcceptOptions{
				Subprotocols: []string{s.Protocol.Subprotocol()}, CompressionMode: websocket.CompressionDisabled,
				InsecureSkipVerify: true, // the policy of package weborigin is in front of this
			})
			if err != nil {
				s.Logger.Debug("websocket of another game not accepted", "remote", c.RemoteAddr().String(), "error", err)
				return
			}
			defer ws.CloseNow() //nolint:errcheck // closed in order before, or gone
			ws.SetReadLimit(frameLimit)
			carried := websocket.NetConn(ctx, ws, websocket.MessageBinary)
			if err := s.serveClient(ctx, carried, c.RemoteAddr()); err != nil {
				s.Logger.Debug("connection of another game refused or ended", "remote", c.RemoteAddr().String(), "error", err)
			}
		})),
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
