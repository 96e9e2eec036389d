package gameserver

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"time"

	"golang.org/x/time/rate"

	"github.com/voxelpopuli/voxeld/player"
	"github.com/voxelpopuli/voxeld/wire"
)

// How often one connection may ask for players; it waits else. Queries for chunks: see pace.
const queriesPerSecond, queriesAtOnce = 20, 100

// serveQueries answers where chunks and players are, one query after the other (§3.2.4.1).
func (g *Gateway) serveQueries(ctx context.Context, c net.Conn, in *bufio.Reader) error {
	stop := context.AfterFunc(ctx, func() { c.Close() }) //nolint:errcheck // the read below reports it
	defer stop()
	players := rate.NewLimiter(queriesPerSecond, queriesAtOnce)
	for {
		if err := c.SetReadDeadline(time.Now().Add(silence)); err != nil {
			return err
		}
		query, err := wire.ReadQuery(in)
		if err != nil {
			return err
		}
		var reply []byte
		switch q := query.(type) {
		case wire.WhereIsChunk:
			if err := g.pace(ctx, c.RemoteAddr()); err != nil {
				return err
			}
			reply, err = g.whereIsChunk(ctx, q)
		case wire.WhereIsPlayer:
			if err := players.Wait(ctx); err != nil {
				return err
			}
			reply, err = g.whereIsPlayer(ctx, q)
		}
		if err != nil {
			return err
		}
		if err := c.SetWriteDeadline(time.Now().Add(writeTimeout)); err != nil {
			return err
		}
		if _, err := c.Write(reply); err != nil {
			return fmt.Errorf("answer query: %w", err)
		}
	}
}

func (g *Gateway) whereIsChunk(ctx context.Context, q wire.WhereIsChunk) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, generateTimeout)
	defer cancel()
	info, err := g.Regions.Locate(ctx, q.Chunk)
	if err != nil {
		return nil, err
	}
	for _, m := range info.Members {
		if m.Peer == info.Leader {
			address, err := resolve(ctx, m.Game)
			if err != nil {
				return nil, fmt.Errorf("game address of chunk %v: %w", q.Chunk, err)
			}
			return wire.AppendChunkAddress(nil, address), nil
		}
	}
	return nil, fmt.Errorf("game address of chunk %v: its leader is no member", q.Chunk)
}

// resolve gives the IP address that original clients need, from host:port.
func resolve(ctx context.Context, game string) (netip.AddrPort, error) {
	if ap, err := netip.ParseAddrPort(game); err == nil {
		return ap, nil
	}
	host, port, err := net.SplitHostPort(game)
	if err != nil {
		return netip.AddrPort{}, err
	}
	number, err := strconv.ParseUint(port, 10, 16)
	if err != nil {
		return netip.AddrPort{}, fmt.Errorf("port %q: %w", port, err)
	}
	ips, err := net.DefaultResolver.LookupNetIP(ctx, "ip4", host)
	if err != nil {
		return netip.AddrPort{}, err
	}
	return netip.AddrPortFrom(ips[0].Unmap(), uint16(number)), nil
}

// whereIsPlayer tells where a guest of the name is, if he is here, or else where he left last. Players with a key have no name of their own
// here: they are found by key only.
func (g *Gateway) whereIsPlayer(ctx context.Context, q wire.WhereIsPlayer) ([]byte, error) {
	id := player.GuestID(q.Name)
	p, here := g.present(id)
	if !here {
		record, known, err := g.keeper.recall(ctx, id)
		if err != nil {
			return nil, err
		}
		if !known {
			return wire.AppendPlayerPlace(nil, wire.DefaultX, wire.DefaultY, wire.DefaultZ)
		}
		p = record.Pose
	}
	return wire.AppendPlayerPlace(nil, p.X, p.Y-float64(g.World.OriginalBase), p.Z)
}
