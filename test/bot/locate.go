package bot

import (
	"context"
	"fmt"
	"net/netip"

	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/test/testkit/legacyclient"
	"github.com/voxelpopuli/voxeld/wire/legacymsg"
)

// locator asks a server in dht mode where chunks and players are, one question at a time. It dials on the first
// question, and never again: the released client does not survive the end of this connection.
type locator struct {
	run  *runState
	name string // of the player
	conn *conn  // nil while not connected
	dht  *legacyclient.Conn
}

// place returns where the player stood last.
func (l *locator) place(ctx context.Context) (x, y, z float64, err error) {
	err = l.ask(ctx, func() error {
		x, y, z, err = l.dht.WhereIsPlayer(l.name)
		return err
	})
	return x, y, z, err
}

// connect finds the server of a chunk and connects to the chunk there.
func (l *locator) connect(ctx context.Context, at grid.ChunkPos) (*legacyclient.Conn, error) {
	var addr netip.AddrPort
	err := l.ask(ctx, func() (err error) {
		addr, err = l.dht.WhereIsChunk(at)
		return err
	})
	if err != nil {
		return nil, err
	}
	_, c, err := l.open(ctx, addr.String(), legacymsg.Handshake{Purpose: legacymsg.PurposeConnect, Chunk: at, Player: l.name})
	return c, err
}

// open connects to a game server, and makes the handshake.
func (l *locator) open(ctx context.Context, addr string, h legacymsg.Handshake) (*conn, *legacyclient.Conn, error) {
	cn, err := dial(ctx, addr, l.run.Timeout)
	if err != nil {
		return nil, nil, err
	}
	c := legacyclient.New(cn)
	err = cn.within(func() error {
		size, err := c.Handshake(h)
		if size > 0 {
			l.run.meter.wrote(string(h.Purpose), size)
		}
		return err
	})
	if err != nil {
		_ = cn.Close()
		return nil, nil, fmt.Errorf("%s %v: %w", h.Purpose, h.Chunk, err)
	}
	l.run.meter.read("answer", len(legacymsg.AnswerOK))
	return cn, c, nil
}

// ask makes one query.
func (l *locator) ask(ctx context.Context, query func() error) (err error) {
	if l.conn == nil {
		if l.conn, l.dht, err = l.open(ctx, l.run.Target, legacymsg.Handshake{Purpose: legacymsg.PurposeDHT}); err != nil {
			return err
		}
	}
	in, out := l.conn.in, l.conn.out
	if err := l.conn.within(query); err != nil {
		if ctx.Err() == nil {
			return &failure{"dht connection ended", fmt.Sprintf("%v: the released client would end", err)}
		}
		return err
	}
	l.run.meter.wrote("query", l.conn.out-out)
	l.run.meter.read("place", l.conn.in-in)
	return nil
}

func (l *locator) close() {
	if l.conn != nil {
		_ = l.conn.Close()
	}
}
