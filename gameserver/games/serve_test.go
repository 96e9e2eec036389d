package games_test

import (
	"context"
	"log/slog"
	"net"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/voxelpopuli/voxeld/gameserver/classicube"
	"github.com/voxelpopuli/voxeld/gameserver/games"
	"github.com/voxelpopuli/voxeld/isolate"
	"github.com/voxelpopuli/voxeld/testkit/classicclient"
	"github.com/voxelpopuli/voxeld/wire/sessionmsg"
)

// When a session has ended, its connection is still open until it is hung up: otherwise the reason for the end may be lost on the way.
func TestConnectionIsHungUp(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	registry := prometheus.NewRegistry()
	server := &games.Server{
		Protocol: classicube.New(registry),
		Admit:    func(net.Addr) (func(), error) { return func() {}, nil },
		Session:  func(context.Context, *games.Conn, net.Addr, sessionmsg.Join) {},
		HangUp: func(c net.Conn) {
			_, err := c.Write([]byte{1})
			ended <- err
			c.Close()
		},
		Panics: isolate.New(slog.New(slog.DiscardHandler), registry), Logger: slog.New(slog.DiscardHandler),
	}
	ctx, cancel := context.WithCancel(t.Context())
	served := make(chan error, 1)
	go func() { served <- server.Serve(ctx, listener) }()
	go classicclient.Dial(listener.Addr().String(), classicclient.Options{Name: "ada"}) //nolint:errcheck // the session has no answer
	if err := <-ended; err != nil {
		t.Errorf("the connection was closed before: %v", err)
	}
	cancel()
	if err := <-served; err != nil {
		t.Error(err)
	}
}
