package minecraft

import (
	"bufio"
	"net"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"github.com/voxelpopuli/voxeld/gameserver/accept"
	"github.com/voxelpopuli/voxeld/gameserver/games"
	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/wire/sessionmsg"
)

const (
	maxEarly = 16 // lines for a client that does not play yet
	// maxView is asked of the gateway, in chunks: twice as many of the game's.
	maxView = 5
)

// state is that of a connection.
type state int

const (
	atLogin state = iota
	inConfiguration
	inPlay
	isOver // the reason was sent
)

// Client is the connection of one client: a games.Client.
type Client struct {
	a       *Adapter
	c       net.Conn
	in      *frameReader
	packets *rate.Limiter
	looks   *rate.Limiter

	mu struct {
		sync.Mutex
		out        *bufio.Writer
		frame      []byte // scratch
		state      state
		compressed bool
		early      []component // said when the client plays
		welcome    sessionmsg.Welcome
		since      time.Time // when the connection, and then the session, began
		alive      alive

		lands   lands
		centre  column // of the land that the client keeps
		avatars avatars

		player   games.Position
		teleport teleport
		timed    time.Time // when the client was last sent the time

		requests requests
		hands    hands
		sneaks   bool
		stance   games.Stance
		form     signForm
	}
}

// alive is what is known of the connection.
type alive struct {
	asked    time.Time // when the last question was sent
	answered time.Time
}

// teleport is where the client was put last.
type teleport struct {
	number  int
	pending bool // the client has not confirmed it: what it sends is ignored
}

func newClient(a *Adapter, c net.Conn, in *frameReader) *Client {
	cl := &Client{
		a: a, c: c, in: in,
		packets: games.NewPackets(),
		looks:   games.NewLooks(),
	}
	cl.mu.out = bufio.NewWriterSize(games.Deadlined{Conn: c}, 8<<10)
	cl.mu.lands = make(lands)
	cl.mu.avatars = newAvatars(cl.showDelta)
	cl.mu.requests = newRequests()
	cl.mu.since = time.Now()
	cl.mu.alive = alive{asked: cl.mu.since, answered: cl.mu.since}
	return cl
}

// put buffers a packet. An error is that of the next flush.
func (cl *Client) put(p packet) {
	cl.mu.frame = appendFrame(cl.mu.frame[:0], p, cl.mu.compressed)
	cl.mu.out.Write(cl.mu.frame) //nolint:errcheck // bufio keeps it
}

// say shows a message.
func (cl *Client) say(text component) {
	switch {
	case cl.mu.state == inPlay:
		cl.put(begin(packetSystemChat).text(text.json()).u8(0))
	case len(cl.mu.early) < maxEarly:
		cl.mu.early = append(cl.mu.early, text)
	}
}

// notice shows a message of the server.
func (cl *Client) notice(text string) { cl.say(textOf(text, colourNotice)) }

// end sends the reason for the end of the connection.
func (cl *Client) end(why string) {
	kind := map[state]byte{atLogin: packetLoginRefused, inConfiguration: packetConfigRefused, inPlay: packetDisconnect}
	cl.put(begin(kind[cl.mu.state]).text(textOf(why, "").json()))
	cl.mu.state = isOver
}

// height returns that of the world, in blocks.
func (cl *Client) height() int32 { return int32(cl.mu.welcome.Sections) * grid.ChunkSize } //nolint:gosec // at most wire.MaxSections

// Look calls f with the blocks in view, and the edits of the session.
func (cl *Client) Look(f func(at games.Blocks, edits *games.Edits)) {
	cl.mu.Lock()
	defer cl.mu.Unlock()
	f(cl.mu.lands.blocks(), &cl.mu.requests.edits)
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
