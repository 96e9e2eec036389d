package luanti

import (
	"sync"
	"time"

	"golang.org/x/time/rate"

	"github.com/voxelpopuli/voxeld/chunk"
	"github.com/voxelpopuli/voxeld/gameserver/games"
	"github.com/voxelpopuli/voxeld/wire/sessionmsg"
)

// Client is the connection of one client: a games.Client.
type Client struct {
	a      *Adapter
	c      games.PacketConn
	kept   string // the name that the password keeps, which never changes; empty for none
	buffer []byte // a packet; the reader's

	packets, looks *rate.Limiter // the reader's

	mu struct {
		sync.Mutex
		failed  error // of a write
		welcome sessionmsg.Welcome
		since   time.Time // when the welcome arrived
		ready   bool      // the client has the definitions and is in the game

		origin origin
		lands  lands

		player  games.Position
		clocked time.Time // when the client was last told the time of day
		located time.Time // when the place was last shown
		line    string    // that it shows of that
		edits   games.Edits
		slots   []chunk.Block // of the inventory
		held    int           // the slot in the player's hand
		sneaks  bool
		stance  games.Stance
		avatars avatars
		ended   bool // the reason for the end was sent
		closed  bool // nothing more is read
	}
}

func newClient(a *Adapter, c games.PacketConn) *Client {
	cl := &Client{
		a: a, c: c, buffer: make([]byte, maxPacket),
		packets: games.NewPackets(), looks: games.NewLooks(),
	}
	cl.mu.lands, cl.mu.slots, cl.mu.avatars = make(lands), firstSlots(), newAvatars(cl.showDelta)
	return cl
}

// put sends a packet. An error is that of the next flush.
func (cl *Client) put(p packet) {
	if cl.mu.failed == nil {
		_, cl.mu.failed = games.Deadlined{Conn: cl.c}.Write(p)
	}
}

// Look calls f with the blocks in view, and the edits of the session.
func (cl *Client) Look(f func(at games.Blocks, edits *games.Edits)) {
	cl.mu.Lock()
	defer cl.mu.Unlock()
	f(cl.mu.lands.blocks(), &cl.mu.edits)
}

// Flush reports whether everything could be sent.
func (cl *Client) Flush() error {
	cl.mu.Lock()
	defer cl.mu.Unlock()
	return cl.mu.failed
}

// Close ends the connection in order. The gateway closes it when the client has read the rest.
func (cl *Client) Close() error {
	cl.mu.Lock()
	defer cl.mu.Unlock()
	cl.mu.closed = true
	return cl.c.SetReadDeadline(time.Now())
}

// Cut ends the connection at once.
func (cl *Client) Cut() { cl.c.Close() } //nolint:errcheck // readers and writers see the error
