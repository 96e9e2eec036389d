package games_test

import (
	"context"
	"log/slog"
	"net"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/voxelpopuli/voxeld/gameserver/classicube"
	"github.com/voxelpopuli/voxeld/gameserver/games"
	"github.com/voxelpopuli/voxeld/internal/isolate"
	"github.com/voxelpopuli/voxeld/test/testkit/classicclient"
	"github.com/voxelpopuli/voxeld/wire/sessionmsg"
)

// watched is a listener of connections that report whether they are closed in order.
type watched struct {
	net.Listener
	closed chan<- bool
}

func (w watched) Accept() (net.Conn, error) {
	c, err := w.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return &watchedConn{TCPConn: c.(*net.TCPConn), closed: w.closed}, nil
}

type watchedConn struct {
	*net.TCPConn
	ended  bool // nothing more is written
	closed chan<- bool
}

func (c *watchedConn) CloseWrite() error {
	c.ended = true
	return c.TCPConn.CloseWrite()
}

func (c *watchedConn) Close() error {
	select {
	case c.closed <- c.ended:
	default: // it was closed before
	}
	return c.TCPConn.Close()
}

// When a session has ended, its connection is closed in order: otherwise the reason for the end may be lost on the way.
func TestConnectionIsHungUp(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	closed := make(chan bool, 1)
	registry := prometheus.NewRegistry()
	server := &games.Server{
		Protocol: classicube.New(registry),
		Admit:    func(net.Addr) (func(), error) { return func() {}, nil },
		Session:  func(context.Context, *games.Conn, net.Addr, sessionmsg.Join) {},
		Panics:   isolate.New(slog.New(slog.DiscardHandler), registry), Logger: slog.New(slog.DiscardHandler),
	}
	ctx, cancel := context.WithCancel(t.Context())
	served := make(chan error, 1)
	go func() { served <- server.Serve(ctx, watched{listener, closed}) }()
	go classicclient.Dial(listener.Addr().String(), classicclient.Options{Name: "ada"}) //nolint:errcheck // the session has no answer
	if inOrder := <-closed; !inOrder {
		t.Error("the connection was closed at once")
	}
	cancel()
	if err := <-served; err != nil {
		t.Error(err)
	}
}
