// Package games is what adapters of other games and the gateway agree on. An adapter translates between a game's
// protocol and that of sessions, connection by connection, so that its players are players like any other: the gateway
// checks what they do, and decides what they are sent, in one place (docs/adr/0055).
//
// # Adding a game
//
// It is for games in which each player has one connection, over which the land around is sent. The model is
// gameserver/classicube. Write a Protocol and a Client in a new package, with a fuzz test of everything that a client
// can send. Map the blocks in package blocktable. Add its socket (n.games) and adapter (Listeners.Adapted) in
// cmd/voxeld/start.go, its option to internal/config, a rule to .golangci.yml, its bytes to docs/protocol.md, its
// limits to docs/operations.md, and a test with a client, as in test/testkit/classicclient.
//
// For other protocols the model is gameserver/legacy, which knows neither Gateway nor sessions: messages in a package
// below wire, whose decoders check sizes before they allocate, return *wire.Error, and are fuzzed; a connection that
// implements mirror.Subscriber; moves checked with player.Motion, building with gameserver/checks; players saved
// through players.Store. gameserver/legacy_link.go wires it.
package games

import (
	"context"
	"net"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/voxelpopuli/voxeld/player"
	"github.com/voxelpopuli/voxeld/wire/sessionmsg"
)

// Protocol is the protocol of a game.
type Protocol interface {
	// Open reads a new connection's handshake, under the deadline that the connection has. The caller closes the
	// connection.
	Open(ctx context.Context, c net.Conn) (Client, Opening, error)
	// Subprotocol is that of the game's WebSockets, which carry the same bytes as TCP; empty if it has none.
	Subprotocol() string
	// Refuse answers a connection that is not served with the reason, if the protocol has a message for it.
	Refuse(c net.Conn, why string)
	// Clients is the metric of connected clients.
	Clients() prometheus.Gauge
}

// Opening is what a client's handshake says.
type Opening struct {
	sessionmsg.Join                  // the name and the view distance
	Verifier        *player.Verifier // of the password that the client has proved to know, or has chosen for a new name; nil: of none
}

// PacketConn is a connection that carries packets, and knows how much of what was sent has not arrived.
type PacketConn interface {
	net.Conn
	// WriteLossy sends a packet at once, which has to fit into a datagram and may be lost.
	WriteLossy(p []byte)
	Backlog() int
}

// Client is a client of another game, as a client of sessions. One goroutine calls Read and Look; any may call the rest. A
// second Welcome begins another session of the same client, whose player has become another one.
type Client interface {
	// Read waits for the client's next message.
	Read() (sessionmsg.FromClient, error)
	// Send sends a session's message, now or with the next flush. A Notice stands for all that is only read, and a
	// Failure for all that ends the session.
	Send(m sessionmsg.FromServer) error
	// Look calls f with the blocks in view, and with the edits of the session, which it guards.
	Look(f func(at Blocks, edits *Edits))
	// SendTick is Send for a tick frame, which it does not retain.
	SendTick(frame []byte) error
	// Tick sends what time brings, and flushes. It is called about every TickEvery.
	Tick(now time.Time) error
	Flush() error
	// Close ends the connection in order: what was sent is delivered, and Read returns.
	Close() error
	// Cut ends the connection at once.
	Cut()
}
