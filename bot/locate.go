package bot

import (
	"context"
	"fmt"
	"net/netip"

	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/wire/legacymsg"
)

// locator asks a server in dht mode where chunks and players are, one question at a time. It dials on the first question,
// and never again: the released client does not survive the end of this connection.
type locator struct {
	run  *runState
	name string // of the player
	conn *conn  // nil while not connected
}

// place returns where the player stood last.
func (l *locator) place(ctx context.Context) (x, y, z float64, err error) {
	err = l.ask(ctx, legacymsg.WhereIsPlayer{Name: l.name}, func(c *conn) (bytes int, err error) {
		if x, y, z, err = legacymsg.ReadPlayerPlace(c.in); err != nil {
			return 0, err
		}
		as, err := legacymsg.AppendPlayerPlace(nil, x, y, z)
		return len(as), err
	})
	return x, y, z, err
}

// connect finds the server of a chunk and connects to the chunk there.
func (l *locator) connect(ctx context.Context, at grid.ChunkPos) (*conn, error) {
	var addr netip.AddrPort
	err := l.ask(ctx, legacymsg.WhereIsChunk{Chunk: at}, func(c *conn) (bytes int, err error) {
		addr, err = legacymsg.ReadChunkAddress(c.in)
		return len(legacymsg.AppendChunkAddress(nil, addr)), err
	})
	if err != nil {
		return nil, err
	}
	c, err := l.run.dial(ctx, addr.String())
	if err != nil {
		return nil, err
	}
	if err := c.handshake(legacymsg.Handshake{Purpose: legacymsg.PurposeConnect, Chunk: at, Player: l.name}); err != nil {
		c.close()
		return nil, err
	}
	return c, nil
}

func (l *locator) ask(ctx context.Context, q legacymsg.Query, read func(*conn) (bytes int, err error)) (err error) {
	if l.conn == nil {
		if l.conn, err = l.run.dial(ctx, l.run.Target); err != nil {
			return err
		}
		if err = l.conn.handshake(legacymsg.Handshake{Purpose: legacymsg.PurposeDHT}); err != nil {
			return err
		}
	}
	packet, err := legacymsg.AppendQuery(nil, q)
	if err != nil {
		return err
	}
	if err = l.conn.send("query", packet); err == nil {
		err = l.conn.answer("place", func() (int, error) { return read(l.conn) })
	}
	if err != nil && ctx.Err() == nil {
		return &failure{"dht connection ended", fmt.Sprintf("%v: the released client would end", err)}
	}
	return err
}

func (l *locator) close() {
	if l.conn != nil {
		l.conn.close()
	}
}
