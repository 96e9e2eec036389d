package legacy

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"sync/atomic"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"

	"github.com/voxelpopuli/voxeld/gameserver/admission"
	"github.com/voxelpopuli/voxeld/gameserver/mirror"
	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/region"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
)

// maxConfirmedLeaders is the number of regions whose leader's confirmation is remembered.
const maxConfirmedLeaders = 4096

// leaders finds the leaders of regions, which original clients connect with.
type leaders struct {
	*Options
	doubted   atomic.Int64                        // confirmations before this time, by the gateway's clock in ns, do not count
	confirmed *lru.Cache[grid.Cell, confirmation] // of the leader of a cell's region, the last one
	founded   *lru.Cache[grid.Cell, struct{}]     // founding cells that had regions when they were requested last
}

// confirmation is that a region's leader has said that it leads it.
type confirmation struct {
	region nodemsg.Region
	at     time.Duration // by the gateway's clock
}

func newLeaders(o *Options) *leaders {
	confirmed, err := lru.New[grid.Cell, confirmation](maxConfirmedLeaders)
	if err != nil {
		panic(err) // the size is positive
	}
	founded, err := lru.New[grid.Cell, struct{}](maxConfirmedLeaders)
	if err != nil {
		panic(err) // the size is positive
	}
	return &leaders{Options: o, confirmed: confirmed, founded: founded}
}

// wait waits until a client may request a chunk that may have to be founded, or whose leader is to be confirmed anew.
// Other land that was requested recently costs nothing: its region existed then.
func (ld *leaders) wait(ctx context.Context, remote net.Addr, pos grid.ChunkPos, anew bool) error {
	if !anew && ld.founded.Contains(grid.CellAt(pos, grid.FoundingLabel)) {
		return nil
	}
	return ld.Client(remote).Wait(ctx, admission.Found)
}

// generateTimeout bounds the search for a chunk's region, founding included.
const generateTimeout = 20 * time.Second

// viewDistance is how far around the chunk of its player a client asks for others, in chunks: it holds 9×9 connections,
// and asks before it has crossed a border.
const viewDistance = 5

// region returns the region that covers the chunk. Where clients begin it is founded if necessary: around the spawn and
// the first place of the released client. Elsewhere a stranger's question must not make land: the error is
// region.ErrNotFounded until a player has come near (see settle). Programs on this machine may have land founded
// anywhere within the border, ten times as often as players of an address.
func (ld *leaders) region(ctx context.Context, client admission.Client, pos grid.ChunkPos) (nodemsg.Region, error) {
	info, err := ld.find(ctx, client, pos)
	switch cell := grid.CellAt(pos, grid.FoundingLabel); {
	case err == nil:
		ld.founded.Add(cell, struct{}{})
	case errors.Is(err, region.ErrNotFounded): // it may have been given up
		ld.founded.Remove(cell)
	}
	return info, err
}

func (ld *leaders) find(ctx context.Context, client admission.Client, pos grid.ChunkPos) (nodemsg.Region, error) {
	for _, first := range []grid.ChunkPos{{}, ld.Spawn().Chunk()} {
		if pos.Distance(first) <= viewDistance && ld.Inside(first) {
			return ld.Regions.Locate(ctx, pos)
		}
	}
	found, err := ld.Regions.Find(ctx, pos)
	if !errors.Is(err, region.ErrNotFounded) || !client.Local() || !ld.Inside(pos) {
		return found, err
	}
	return ld.explore(ctx, client, pos)
}

// explore founds the region that covers the chunk, when it is the client's turn.
func (ld *leaders) explore(ctx context.Context, client admission.Client, pos grid.ChunkPos) (nodemsg.Region, error) {
	if err := client.Wait(ctx, admission.Explore); err != nil {
		return nodemsg.Region{}, err
	}
	return ld.Regions.Locate(ctx, pos)
}

// settle founds the land that the player in a chunk sees, whom this node has registered there or has sent there.
func (ld *leaders) settle(ctx context.Context, client admission.Client, at grid.ChunkPos) {
	if !ld.Inside(at) {
		return
	}
	for _, corner := range [][2]int32{{-1, -1}, {-1, 1}, {1, -1}, {1, 1}} { // the view is smaller than a cell
		pos := grid.ChunkPos{X: at.X + corner[0]*viewDistance, Z: at.Z + corner[1]*viewDistance}
		if !pos.Valid() {
			continue
		}
		_, err := ld.region(ctx, client, pos)
		if errors.Is(err, region.ErrNotFounded) {
			_, err = ld.explore(ctx, client, pos)
		}
		if err != nil {
			ld.Logger.Debug("land around an original client's player not founded", "cell", grid.CellAt(pos, grid.FoundingLabel).String(), "error", err)
		}
	}
}

// generate returns the region of a chunk, if it exists or may be founded (§3.1.3).
func (ld *leaders) generate(ctx context.Context, remote net.Addr, pos grid.ChunkPos) (nodemsg.Region, error) {
	if err := ld.wait(ctx, remote, pos, false); err != nil {
		return nodemsg.Region{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, generateTimeout)
	defer cancel()
	return ld.region(ctx, ld.Client(remote), pos)
}

// confirmedFor is how long a leader's confirmation is trusted.
const confirmedFor = 2 * time.Second

// lastSearch is the longest pause between two questions whether land has been founded. Each of them counts against the
// limits of the address, as the first one does.
const lastSearch = 10 * time.Second

// led returns the region that covers the chunk, with a node that confirmed that it leads it: just now, or, unless anew
// is set, recently. A region's route alone may name an old leader, and the released client does not accept `no`.
func (ld *leaders) led(ctx context.Context, client admission.Client, pos grid.ChunkPos, anew bool) (nodemsg.Region, error) {
	if anew { // the node that was named may have died, and it led other regions too
		ld.doubted.Store(int64(ld.Now()))
	}
	retry, longest := mirror.FirstRetry, mirror.LastRetry
	for {
		info, err := ld.region(ctx, client, pos)
		if err == nil {
			if info, ok := ld.lately(info); ok {
				return info, nil
			}
		}
		var link region.Link
		if !errors.Is(err, region.ErrNotFounded) { // Follow would found it
			link, info, err = ld.Regions.Follow(ctx, pos)
		}
		if err == nil {
			link.Close() //nolint:errcheck // it was opened only for the confirmation
			// The leader's address may have changed, or it is a new member.
			if leader, err := ld.Regions.Describe(ctx, info.Leader); err == nil {
				others := slices.DeleteFunc(slices.Clone(info.Members), func(m nodemsg.Member) bool { return m.Peer == leader.Peer })
				info.Members = append(others, leader)
			}
			ld.confirmed.Add(info.Cell, confirmation{info, ld.Now()})
			return info, nil
		}
		select {
		case <-ctx.Done():
			return info, err
		case <-time.After(retry): // one of its members may be elected meanwhile, or the land be founded
		}
		if errors.Is(err, region.ErrNotFounded) { // the next question is for the catalog again
			longest = lastSearch
			if client.Wait(ctx, admission.Found) != nil {
				return info, err
			}
		}
		retry = min(2*retry, longest)
	}
}

// lately returns the region of a route as it was when its leader confirmed its leadership. Ok is false if that was not
// recently. The route may be of a part of a region that was divided since, or name another leader: then another one
// confirmed.
func (ld *leaders) lately(route nodemsg.Region) (info nodemsg.Region, ok bool) {
	last, ok := ld.confirmed.Get(route.Cell)
	return last.region, ok && last.region.Leader == route.Leader && ld.Now()-last.at < confirmedFor && int64(last.at) > ld.doubted.Load()
}

// residentTimeout bounds the search for a region's new leader during a handshake: the released client waits 1 s for the
// answer.
const residentTimeout = 700 * time.Millisecond

// resident refuses a connection to a chunk whose region is not led here, and any connection of a client that may not
// play. A member of the region accepts it although another one leads: it may have led when dht named it, and the
// released client survives the reset of a connection that it has, but not a `no`.
func (ld *leaders) resident(ctx context.Context, remote net.Addr, name string, pos grid.ChunkPos) error {
	if err := ld.Admit(remote, name); err != nil {
		return err
	}
	info, err := ld.generate(ctx, remote, pos)
	if err != nil || info.Leader == ld.Peer { // according to the last update
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, residentTimeout)
	defer cancel()
	now, err := ld.led(ctx, ld.Client(remote), pos, true)
	member := func(m nodemsg.Member) bool { return m.Peer == ld.Peer }
	switch {
	case slices.ContainsFunc(info.Members, member) || err == nil && slices.ContainsFunc(now.Members, member):
		return nil
	case err != nil:
		return err
	case now.Leader != ld.Peer:
		return fmt.Errorf("connect to chunk %v: %w", pos, region.ErrNotHere)
	}
	return nil
}
