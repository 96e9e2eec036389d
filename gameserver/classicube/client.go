package classicube

import (
	"bufio"
	"net"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"github.com/voxelpopuli/voxeld/gameserver/accept"
	"github.com/voxelpopuli/voxeld/gameserver/games"
	"github.com/voxelpopuli/voxeld/wire/sessionmsg"
)

// A client that moves is sent another level at most so often. It leaves one after 48 blocks.
const levelEvery, levelsAtOnce = 2 * time.Second, 4

// Client is the connection of one client: a games.Client.
type Client struct {
	a        *Adapter
	c        net.Conn
	in       *packetReader
	features features

	// The reader's.
	looks    *rate.Limiter
	levels   *rate.Limiter
	partial  string // the beginning of a long chat message
	usedDoor bool   // by the last click: the block that the client asks for beside it is not meant

	mu struct {
		sync.Mutex
		out     *bufio.Writer
		welcome sessionmsg.Welcome
		since   time.Time // when the welcome arrived

		lands  lands
		window window // that the client has, or is to be sent
		loaded bool   // the client has it

		player  games.Position
		pinged  time.Time
		edits   games.Edits
		stance  games.Stance
		avatars avatars
		clock   clock
		ended   bool // the reason for the end was sent
	}
}

// clock is what the client was last shown of time and place.
type clock struct {
	coloured, located time.Time
	line              string
}

func newClient(a *Adapter, c net.Conn, in *packetReader, f features) *Client {
	cl := &Client{
		a: a, c: c, in: in, features: f,
		looks: games.NewLooks(), levels: rate.NewLimiter(rate.Every(levelEvery), levelsAtOnce),
	}
	cl.mu.out = bufio.NewWriterSize(games.Deadlined{Conn: c}, 8<<10)
	cl.mu.lands = make(lands)
	cl.mu.avatars = newAvatars(f[extPlayerList], cl.showDelta)
	return cl
}

// put buffers a packet. An error is that of the next flush.
func (cl *Client) put(p packet) { cl.mu.out.Write(p) } //nolint:errcheck // bufio keeps it

// Look calls f with the blocks in view, and the edits of the session.
func (cl *Client) Look(f func(at games.Blocks, edits *games.Edits)) {
	cl.mu.Lock()
	defer cl.mu.Unlock()
	f(cl.mu.lands.blocks(), &cl.mu.edits)
}

// Flush sends what is buffered.
func (cl *Client) Flush() error {
	cl.mu.Lock()
	defer cl.mu.Unlock()
	return cl.mu.out.Flush()
}

// Close ends the connection in order. The gateway closes it when the client has read the rest.
func (cl *Client) Close() error { return accept.CloseInOrder(cl.c) }

// Cut ends the connection at once.
func (cl *Client) Cut() { cl.c.Close() } //nolint:errcheck // readers and writers see the error
