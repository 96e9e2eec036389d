package gameserver

import (
	"bufio"
	"cmp"
	"context"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"time"

	"golang.org/x/time/rate"

	"github.com/voxelpopuli/voxeld/player"
	"github.com/voxelpopuli/voxeld/wire"
)

// How often one connection may ask for players; it waits else. Queries for chunks: see pace.
const queriesPerSecond, queriesAtOnce = 20, 100

// serveQueries answers where chunks and players are, one query after the other (§3.2.4.1). A client asks when it walks over
// a border and is silent otherwise, for as long as it plays.
func (g *Gateway) serveQueries(ctx context.Context, c net.Conn, in *bufio.Reader) error {
	defer c.Close()                                      //nolint:errcheck // by a reset: see endByReset
	stop := context.AfterFunc(ctx, func() { c.Close() }) //nolint:errcheck // the read below reports it
	defer stop()
	players := rate.NewLimiter(queriesPerSecond, queriesAtOnce)
	for {
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
			reply, err = g.whereIsPlayer(ctx, q, c.RemoteAddr())
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

// whereIsPlayer returns where a player of that name at the address is or was last, or else a guest of that name. Players
// with a key have no name of their own here: they are found by key only. Newcomers begin where those of sessions do.
func (g *Gateway) whereIsPlayer(ctx context.Context, q wire.WhereIsPlayer, remote net.Addr) ([]byte, error) {
	key := partyOf(q.Name, remote)
	g.mu.Lock()
	p := g.mu.parties[key]
	g.mu.Unlock()
	if p != nil {
		if pose, known := p.place(); known {
			return g.appendPlace(pose)
		}
	}
	if pose, here := g.present(player.GuestID(key.name)); here {
		return g.appendPlace(pose)
	}
	records := g.recallGuests(ctx, key.name, player.Namesake(key.name, key.from.String(), 0))
	newest := slices.MaxFunc(records, func(a, b wire.PlayerRecord) int { return cmp.Compare(a.Seq, b.Seq) })
	if newest.Seq == 0 {
		return g.appendPlace(g.spawnPose())
	}
	return g.appendPlace(newest.Pose)
}

func (g *Gateway) appendPlace(p wire.Pose) ([]byte, error) {
	return wire.AppendPlayerPlace(nil, p.X, p.Y-float64(g.World.OriginalBase), p.Z)
}
