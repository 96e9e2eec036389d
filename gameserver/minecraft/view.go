package minecraft

import (
	"cmp"
	"maps"
	"slices"

	"github.com/voxelpopuli/voxeld/gameserver/games"
	"github.com/voxelpopuli/voxeld/grid"
)

// centre sends the client the column around which it keeps the land, if that has changed.
func (cl *Client) centre() {
	if at := columnOf(cl.mu.player.Pose); at != cl.mu.centre && cl.mu.state == inPlay {
		cl.mu.centre = at
		cl.putCentre()
	}
}

func (cl *Client) putCentre() {
	cl.put(begin(packetCentre).varint(int(cl.mu.centre.x)).varint(int(cl.mu.centre.z)))
}

// showAll shows the chunks that have arrived, the nearest first.
func (cl *Client) showAll() error {
	middle := cl.mu.player.Pose.Chunk()
	for _, at := range slices.SortedFunc(maps.Keys(cl.mu.lands), func(a, b grid.ChunkPos) int {
		return cmp.Or(cmp.Compare(a.Distance(middle), b.Distance(middle)), a.Compare(b))
	}) {
		if err := cl.showChunk(at); err != nil {
			return err
		}
	}
	return nil
}

// showChunk shows a chunk.
func (cl *Client) showChunk(at grid.ChunkPos) error {
	if cl.mu.state != inPlay || !shownThere(at) {
		return nil
	}
	shown, err := cl.translateChunk(at)
	if err != nil {
		return err
	}
	cl.put(begin(packetBatchStart))
	for _, f := range shown.frames {
		cl.mu.out.Write(f) //nolint:errcheck // bufio keeps it
	}
	cl.put(begin(packetBatchEnd).varint(len(shown.frames)))
	for pos, text := range cl.mu.lands[at].signs {
		showSign(cl, pos, text)
	}
	cl.a.Land.Inc()
	cl.mu.lands[at].fittings = maps.Clone(shown.fittings)
	cl.joinBorders(at)
	return nil
}

// shownThere reports whether the game has a place for a chunk.
func shownThere(at grid.ChunkPos) bool {
	const most = maxAcross / grid.ChunkSize
	return at.X >= -most && at.X < most && at.Z >= -most && at.Z < most
}

// shownChunk is a chunk as it is sent, and the fittings in it. Nothing of it is changed.
type shownChunk struct {
	frames   [][]byte
	fittings fittings
}

// size returns about how many bytes it takes.
func (s shownChunk) size() int {
	const each = 16 // bytes of a fitting
	return games.SizeOf(s.frames) + len(s.fittings)*each
}

// translateChunk returns a chunk as it is sent.
func (cl *Client) translateChunk(at grid.ChunkPos) (shownChunk, error) {
	l := cl.mu.lands[at]
	land, unchanged := l.Unchanged()
	return cl.a.columns.Get(landKey{at, land}, unchanged, func() (s shownChunk, err error) {
		c, err := l.Load()
		if err != nil {
			return s, err
		}
		var packets []packet
		packets, s.fittings = chunkPackets(at, c)
		for _, p := range packets {
			s.frames = append(s.frames, appendFrame(nil, p, true))
		}
		return s, nil
	})
}

// hideChunk removes a chunk.
func (cl *Client) hideChunk(at grid.ChunkPos) {
	delete(cl.mu.lands, at)
	cl.mu.avatars.Gone(at)
	if cl.mu.state == inPlay {
		columns(at, func(at column, _, _ int) { cl.put(begin(packetUnloadColumn).i32(at.z).i32(at.x)) })
	}
}
