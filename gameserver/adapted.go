package gameserver

import (
	"context"
	"net"

	"github.com/voxelpopuli/voxeld/gameserver/admission"
	"github.com/voxelpopuli/voxeld/gameserver/codec"
	"github.com/voxelpopuli/voxeld/gameserver/games"
	"github.com/voxelpopuli/voxeld/player"
	"github.com/voxelpopuli/voxeld/wire"
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

// LookUp returns the verifier of the password with which a guest keeps a name, nil if there is none, and reports whether
// the name is registered, or that of a guest who has played, as far as this node can find out; if it cannot, they may
// have. It counts an attempt to log in against the address.
func (g *Gateway) LookUp(ctx context.Context, remote net.Addr, name string) (v *player.Verifier, known bool, err error) {
	if !g.limits.Client(remote).Allow(admission.LogIn) {
		return nil, false, wire.Refuse(wire.FailRate, "Too many players are logging in from your address. Try again in a few seconds.")
	}
	if g.enforcer.Registered(name) {
		return nil, true, nil
	}
	v, known = g.players.Known(ctx, player.GuestID(name))
	return v, known || g.sessions.Of(player.GuestID(name)) != nil, nil
}

// verifierOf returns the verifier of the password that the guest of a connection has proved to know; nil for none.
func verifierOf(c conn) *player.Verifier {
	if adapted, is := c.(adaptedConn); is {
		return adapted.Verifier()
	}
	return nil
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
