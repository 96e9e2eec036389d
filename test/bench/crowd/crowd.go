package crowd

import (
	"cmp"
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/motion"
)

// Options configure a crowd. The zero value of a field means its default.
type Options struct {
	Targets  []string        // host:port of game servers, assigned to players in turn (required)
	Heights  *HeightMap      // of the land that players walk on; default an empty one
	Homes    []grid.ChunkPos // home chunks, assigned to players in turn; all in the height map. Default none: players fly about
	Roam     float64         // players who fly about begin within so many blocks of where they entered
	Still    bool            // players send nothing, and there are no samples
	View     int             // chunks in each direction; default 1
	Samples  int             // players who decode what they receive, at most 64; default 4
	JoinRate float64         // players who join a second; default 100
	Silences bool            // measure how long players at a spot get nothing; see Silences
	// Original, if not nil, is the chunk that all players connect to in the original protocol, and walk about in.
	// Homes and View then have no effect.
	Original *grid.ChunkPos
	// Game is the other game that the players have clients of; see Games. Nothing of what they see is counted.
	Game string
	// FloorMove, if not nil, is the move that players send to a floor program (test/bench/floor), in its framing.
	FloorMove []byte
}

// network returns the network of a game's sockets.
func (o Options) network() string {
	if o.Game == "luanti" {
		return "udp"
	}
	return "tcp"
}

func (o Options) withDefaults() Options {
	if o.Heights == nil {
		o.Heights = NewHeightMap()
	}
	o.View, o.Samples, o.JoinRate = cmp.Or(o.View, 1), min(cmp.Or(o.Samples, 4), maxSamples), cmp.Or(o.JoinRate, 100)
	if o.Game != "" || o.Still {
		o.Samples = 0
	}
	if o.Original != nil {
		o.Homes = []grid.ChunkPos{*o.Original}
	}
	return o
}

// maxSamples is the number of bits in sentMove.received, one for each sample.
const maxSamples = 64

const (
	// period is the interval between two moves of a player, and parts the number of parts into which it is divided. In each part
	// another part of the crowd moves, and all samples read.
	period = 50 * time.Millisecond
	parts  = 25
)

// Crowd is a growing number of players. Add and Counts may be called while Run runs, from another goroutine.
type Crowd struct {
	o       Options
	codec   codec
	entered chan *client

	mu struct {
		sync.Mutex
		Counts
		next int // number of the next player
	}

	// The rest belongs to Run.
	slots   [parts][]*client
	turn    int // slot of the next newcomer
	samples []*client
	known   map[string]*client // by id
	all     []*client
	rng     *rand.Rand
	packet  []byte
	buffer  []byte

	// With Options.Silences:
	poll     poll
	numbers  map[int]*client
	silences Silences
}

// client is one player in the world.
type client struct {
	arrival
	number  int
	fd      int
	mover   mover
	unsent  []byte      // the rest of a move that the socket accepted in part
	history moveHistory // where the player really was
	sampler *sampler    // nil unless the player is a sample
	heard   time.Time   // when something arrived last, at the spot; zero elsewhere
}

// New returns an empty crowd.
func New(o Options) *Crowd {
	c := &Crowd{o: o.withDefaults(), entered: make(chan *client, 64), codec: cborCodec{}, numbers: make(map[int]*client), known: make(map[string]*client), buffer: make([]byte, 1<<20)}
	c.rng = rand.New(rand.NewPCG(1, 0))
	if game := games[o.Game]; game != nil {
		c.codec = game
	}
	if o.FloorMove != nil {
		c.codec = floorCodec{o.FloorMove}
	}
	if o.Original != nil {
		c.codec = originalCodec{*o.Original}
	}
	c.mu.Failed = make(map[string]int)
	return c
}

// Counts returns the counts as of now.
func (c *Crowd) Counts() Counts {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.mu.clone()
}

// Run plays until ctx ends, and then disconnects all players.
func (c *Crowd) Run(ctx context.Context) {
	defer func() {
		for _, p := range c.all {
			p.close()
		}
		c.poll.close()
	}()
	const every = period / parts
	due := time.Now()
	wait := time.NewTimer(0)
	defer wait.Stop()
	for slice := 0; ; slice = (slice + 1) % parts {
		due = due.Add(every)
		wait.Reset(time.Until(due))
		select {
		case <-ctx.Done():
			return
		case <-wait.C:
		}
		late := time.Since(due)
		c.mu.Lock()
		c.admit()
		if c.o.Silences {
			c.listen()
		}
		c.play(slice, late)
		c.mu.Unlock()
		// Players who are more than a whole move behind skip moves rather than send them in a burst.
		for time.Since(due) > period {
			due = due.Add(every)
			slice = (slice + 1) % parts
			if !c.o.Still {
				c.mu.Lock()
				c.mu.Due += uint64(len(c.slots[slice]))
				c.mu.Unlock()
			}
		}
	}
}

// admit adds newcomers. The lock is held.
func (c *Crowd) admit() {
	for {
		select {
		case p := <-c.entered:
			c.slots[c.turn] = append(c.slots[c.turn], p)
			c.turn = (c.turn + 7) % parts // 7 and 25 are coprime: players who joined one after another do not move together
			c.all = append(c.all, p)
			c.known[p.player] = p
			if c.o.Silences {
				if err := c.poll.add(p.number, p.fd, unix.EPOLLIN|unix.EPOLLET); err != nil {
					c.remove(p, err)
					continue
				}
				c.numbers[p.number] = p
			}
			if p.sampler != nil {
				c.samples = append(c.samples, p)
				c.mu.Samples++
			}
			c.mu.Players++
		default:
			return
		}
	}
}

// listen records what has arrived since the last call. The lock is held.
func (c *Crowd) listen() {
	now := time.Now()
	events, err := c.poll.wait()
	if err != nil {
		c.mu.Failed[err.Error()]++
	}
	for _, event := range events {
		p := c.numbers[int(event.Fd)]
		there := p.mover.heights != nil && !p.mover.flying
		if there && !p.heard.IsZero() {
			silence := now.Sub(p.heard)
			c.silences.Longest = max(c.silences.Longest, silence)
			if silence > longSilence {
				c.silences.Over++
			}
		}
		if p.heard = (time.Time{}); there {
			p.heard = now
		}
	}
}

// play lets one part of the crowd move and read. The lock is held.
func (c *Crowd) play(slice int, late time.Duration) {
	for _, p := range c.slots[slice] {
		if p.fd < 0 {
			continue
		}
		if !c.o.Still {
			c.mu.Due++
			c.mu.Late.Add(late.Seconds())
			if c.move(p); p.fd < 0 {
				continue
			}
		}
		if p.sampler == nil {
			c.drain(p)
		} else {
			c.measureErrors(p)
		}
	}
	for _, p := range c.samples {
		if p.fd >= 0 {
			c.readSample(p)
		}
	}
}

// move advances the player one step and sends the move.
func (c *Crowd) move(p *client) {
	before := p.mover
	p.mover.step(period.Seconds())
	if len(p.unsent) == 0 {
		var err error
		pose := p.mover.pose
		pose.X -= p.cornerX
		pose.Z -= p.cornerZ
		if c.packet, err = c.codec.appendMove(append(c.packet[:0], p.head...), pose); err != nil {
			c.remove(p, err)
			return
		}
	} else {
		p.mover = before
		c.packet = append(c.packet[:0], p.unsent...)
	}
	n, err := unix.Write(p.fd, c.packet)
	switch {
	case err == unix.EAGAIN:
		p.mover = before
		c.mu.Blocked++
		return
	case err != nil:
		c.remove(p, err)
		return
	}
	c.mu.BytesOut += uint64(n)
	if p.unsent = append(p.unsent[:0], c.packet[n:]...); len(p.unsent) > 0 {
		c.mu.Blocked++
		return
	}
	c.mu.Sent++
	p.history.add(p.mover.pose, time.Now())
	if c.o.Original != nil {
		c.due(p)
	}
}

// due counts a move that a player has sent. The crowd's lock is held.
func (c *Crowd) due(p *client) {
	n := c.mu.Samples
	if p.sampler != nil {
		n--
	}
	c.mu.Deliveries.Due += uint64(n)
}

// drain reads what the server has sent, and answers it where the protocol requires that.
func (c *Crowd) drain(p *client) {
	for {
		n, ok := c.read(p)
		if !ok {
			return
		}
		if p.hear != nil {
			if err := p.answer(c.buffer[:n]); err != nil {
				c.remove(p, err)
				return
			}
		}
		if n < len(c.buffer) && c.o.network() == "tcp" {
			return
		}
	}
}

// answer answers what a player has received. Answers are short, and a socket that does not accept one loses it.
func (p *client) answer(received []byte) error {
	reply, err := p.hear(received)
	if len(reply) > 0 {
		unix.Write(p.fd, reply) //nolint:errcheck // the next read reports the end of the connection
	}
	return err
}

// read reads once into the crowd's buffer; ok is false if there is nothing.
func (c *Crowd) read(p *client) (n int, ok bool) {
	n, err := unix.Read(p.fd, c.buffer)
	switch {
	case err == unix.EAGAIN || err == unix.EINTR:
		return 0, false
	case err != nil:
		c.remove(p, err)
		return 0, false
	case n == 0:
		c.remove(p, errClosed)
		return 0, false
	}
	c.mu.BytesIn += uint64(n)
	return n, true
}

var errClosed = errors.New("closed by server")

// remove removes a player whose connection has ended.
func (c *Crowd) remove(p *client, err error) {
	c.mu.Failed[err.Error()]++
	c.mu.Lost++
	c.mu.Players--
	if p.sampler != nil {
		c.mu.Samples--
	}
	p.close()
}

func (p *client) close() {
	if p.fd >= 0 {
		unix.Close(p.fd) //nolint:errcheck // nothing is lost with it
		p.fd = -1
	}
}

// moveHistory is a ring of a player's last moves.
type moveHistory struct {
	at   []sentMove
	next int // index of the oldest
	n    int
}

type sentMove struct {
	pose     motion.Pose
	at       time.Time
	received uint64 // samples that have received this move, by bit; see receive
}

// shortHistory is the number of moves kept for a player if deliveries are not counted.
const shortHistory = 64

func newMoveHistory(length int) moveHistory { return moveHistory{at: make([]sentMove, length)} }

func (t *moveHistory) add(pose motion.Pose, at time.Time) {
	t.at[t.next] = sentMove{pose: pose, at: at}
	t.next = (t.next + 1) % len(t.at)
	t.n = min(t.n+1, len(t.at))
}
