package gameserver

import (
	"context"
	"net"

	"github.com/voxelpopuli/voxeld/gameserver/admission"
	"github.com/voxelpopuli/voxeld/gameserver/codec"
	"github.com/voxelpopuli/voxeld/gameserver/games"
	"github.com/voxelpopuli/voxeld/player"
	"github.com/voxelpopuli/voxeld/wire/sessionmsg"
)

// This file serves clients of other games as sessions, through their adapters.

// Adapted is a socket for clients of another game.
type Adapted struct {
	Game     string // its name in nodemsg.HandoffOffer.Games
	Listener net.Listener
	Protocol games.Protocol
}

// adapted returns the server of a game.
func (g *Gateway) adapted(a Adapted, accounts *games.Accounts) *games.Server {
	return &games.Server{
		Protocol: a.Protocol,
		Admit: func(remote net.Addr) (func(), error) {
			release, err := g.limits.Admit(remote, admission.PlayerWeight)
			if err != nil {
				g.metrics.noteRefusedJoin(err)
			}
			return release, err
		},
		Session: func(ctx context.Context, c *games.Conn, remote net.Addr, join sessionmsg.Join) {
			g.serveSession(ctx, adaptedConn{c, a.Game, remote}, &join)
		},
		MayLogIn: func(remote net.Addr) bool { return g.limits.Client(remote).Allow(admission.LogIn) },
		Pages:    g.pages, Accounts: accounts, Panics: g.metrics.panics, Logger: g.Logger,
	}
}

// HasPlayed reports whether a name is registered, or that of a guest who has played, as far as this node can find out
// for a client at an address; if it cannot, they may have.
func (g *Gateway) HasPlayed(ctx context.Context, remote net.Addr, name string) bool {
	guest := player.GuestID(name)
	return g.enforcer.Registered(name) || g.sessions.Of(guest) != nil ||
		!g.limits.Client(remote).Allow(admission.LogIn) || g.players.Known(ctx, guest)
}

// adaptedConn is the conn of a client of another game.
type adaptedConn struct {
	*games.Conn
	game string
	addr net.Addr
}

// gameOf returns the game of a client of another game; empty for others.
func gameOf(c conn) string {
	if adapted, is := c.(adaptedConn); is {
		return adapted.game
	}
	return ""
}

func (c adaptedConn) read() ([]byte, error) { return c.Read() }
func (c adaptedConn) setCodec(codec.Codec)  {} // always that of the Join
func (c adaptedConn) close() error          { return c.Close() }
func (c adaptedConn) cut()                  { c.Cut() }
func (c adaptedConn) remote() net.Addr      { return c.addr }
