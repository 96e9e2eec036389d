package legacy

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"sync"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"
	"golang.org/x/time/rate"

	"github.com/voxelpopuli/voxeld/gameserver/admission"
	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/motion"
	"github.com/voxelpopuli/voxeld/player"
	"github.com/voxelpopuli/voxeld/wire/legacymsg"
)

// Limits on one connection's queries for players and for chunks; further ones wait. Those for players who are not here,
// those for land that may have to be founded, and repeated ones for a chunk count against the limits of their address,
// too.
const (
	playerQueriesPerSecond, playerQueriesAtOnce = 20, 100
	chunkQueriesPerSecond, chunkQueriesAtOnce   = 100, 1000
)

// ServeQueries answers where chunks and players are, one query after the other (§3.2.4.1). A client queries when it
// crosses a border, and is otherwise silent for as long as it runs.
func (s *Server) ServeQueries(ctx context.Context, c net.Conn, in *bufio.Reader) error {
	endByReset(c)
	defer c.Close()                                      //nolint:errcheck // by a reset: see endByReset
	stop := context.AfterFunc(ctx, func() { c.Close() }) //nolint:errcheck // the read below reports it
	defer stop()
	ctx, stopSettling := context.WithCancel(ctx)
	var settling sync.WaitGroup
	defer settling.Wait()
	defer stopSettling()
	players := rate.NewLimiter(playerQueriesPerSecond, playerQueriesAtOnce)
	chunks := rate.NewLimiter(chunkQueriesPerSecond, chunkQueriesAtOnce)
	asked, err := lru.New[grid.ChunkPos, struct{}](askedChunks)
	if err != nil {
		return err
	}
	for {
		query, err := legacymsg.ReadQuery(in)
		if err != nil {
			return err
		}
		if err := s.Admit(c.RemoteAddr(), ""); err != nil {
			return err
		}
		var reply []byte
		switch q := query.(type) {
		case legacymsg.WhereIsChunk:
			again, _ := asked.ContainsOrAdd(q.Chunk, struct{}{})
			if err := s.leaders.wait(ctx, c.RemoteAddr(), q.Chunk, again); err != nil {
				return err
			}
			if err := chunks.Wait(ctx); err != nil {
				return err
			}
			reply, err = s.whereIsChunk(ctx, q, s.Client(c.RemoteAddr()), again)
		case legacymsg.WhereIsPlayer:
			if err := players.Wait(ctx); err != nil {
				return err
			}
			var place motion.Pose
			if place, err = s.whereIsPlayer(ctx, q, c.RemoteAddr()); err == nil {
				settling.Wait() // for the one before
				settling.Go(func() { s.leaders.settle(ctx, s.Client(c.RemoteAddr()), place.Chunk()) })
				reply, err = s.appendPlace(place)
			}
		}
		if err != nil {
			return err
		}
		if err := c.SetWriteDeadline(time.Now().Add(answerTimeout)); err != nil {
			return err
		}
		if _, err := c.Write(reply); err != nil {
			return fmt.Errorf("answer query: %w", err)
		}
	}
}

// answerTimeout bounds the writing of an answer.
const answerTimeout = 10 * time.Second

// queryTimeout bounds the search for a chunk's leader. The released client waits for the answer as long as it takes,
// and does not survive the end of the connection.
const queryTimeout = 10 * time.Minute

// askedChunks is how many queried chunks of a client are remembered: as many as it holds at most.
const askedChunks = 81

// whereIsChunk returns the node that leads the chunk's region. A client that repeats the query was not served there.
func (s *Server) whereIsChunk(ctx context.Context, q legacymsg.WhereIsChunk, client admission.Client, again bool) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, queryTimeout)
	defer cancel()
	info, err := s.leaders.led(ctx, client, q.Chunk, again)
	if err != nil {
		return nil, err
	}
	for _, m := range info.Members {
		if m.Peer == info.Leader {
			address, err := s.hosts.address(ctx, m.Game)
			if err != nil {
				return nil, fmt.Errorf("game address of chunk %v: %w", q.Chunk, err)
			}
			return legacymsg.AppendChunkAddress(nil, address), nil
		}
	}
	return nil, fmt.Errorf("game address of chunk %v: its leader is not a member", q.Chunk)
}

// whereIsPlayer returns where a player of that name at the address is or was last, or else a guest of that name.
// Players with a key have no unique name here: they are found by key only. New players start where those of sessions
// do.
func (s *Server) whereIsPlayer(ctx context.Context, q legacymsg.WhereIsPlayer, remote net.Addr) (motion.Pose, error) {
	key := partyOf(q.Name, remote)
	if pose, known := s.parties.lastPose(key); known {
		return pose, nil
	}
	waiting, cancel := context.WithTimeout(ctx, registerTime)
	defer cancel()
	if err := s.Client(remote).Wait(waiting, admission.FindPlayer); err != nil {
		return motion.Pose{}, err
	}
	records := s.parties.loadGuests(ctx, key.name, player.Namesake(key.name, key.from.String(), 0))
	plain, own := records[0], records[1]
	pose, here := s.parties.poseOf(player.GuestID(key.name))
	switch {
	case own.Seq > 0 && (here || own.Seq >= plain.Seq): // somebody else has the plain name, or had it before
		pose = own.Pose
	case here:
	case plain.Seq > 0:
		pose = plain.Pose
	default:
		pose = s.Spawn()
	}
	return pose, nil
}

// appendPlace appends the answer to a query for a player. A place below or above the slab becomes one on top of it,
// from where the client falls to the ground.
func (s *Server) appendPlace(p motion.Pose) ([]byte, error) {
	y := p.Y - float64(s.World.OriginalBase)
	if y < 1 || y > legacymsg.SlabHeight {
		y = legacymsg.SlabHeight
	}
	return legacymsg.AppendPlayerPlace(nil, p.X, y, p.Z)
}
