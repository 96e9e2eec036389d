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
	"github.com/voxelpopuli/voxeld/test/testkit/sessionclient"
	"github.com/voxelpopuli/voxeld/wire/sessionmsg"
)

// Options configure a crowd. The zero value of a field means its default.
type Options struct {
	Targets  []string        // of a sessionclient, all of one kind, assigned to players in turn (required)
	Heights  *HeightMap      // of the land that players walk on; default an empty one
	Homes    []grid.ChunkPos // home chunks, assigned to players in turn; all in the height map. Default none: players fly about
	Roam     float64         // players who fly about begin within so many blocks of where they entered
	Still    bool            // players send nothing, and there are no samples
	View     int             // chunks in each direction; default 1
	Fresh    bool            // players have no land from before: they ask for all that is in view, by its hashes
	Samples  int             // players who decode what they receive; default 4
	JoinRate float64         // players who join a second; default 100
	// FloorMove, if not nil, is the move that players send to a floor program (test/bench/floor), in its framing.
	FloorMove []byte
}

func (o Options) withDefaults() Options {
	if o.Heights == nil {
		o.Heights = NewHeightMap()
	}
	o.View, o.Samples, o.JoinRate = cmp.Or(o.View, 1), cmp.Or(o.Samples, 4), cmp.Or(o.JoinRate, 100)
	if o.Still {
		o.Samples = 0
	}
	return o
}

const (
	// period is the interval between two moves of a player, and parts the number of parts into which it is divided. In each part
	// another part of the crowd moves, and all samples read.
	period = 50 * time.Millisecond
	parts  = 25
)

// Crowd is a growing number of players. Add and Counts may be called while Run runs, from another goroutine.
type Crowd struct {
	o        Options
	protocol protocol
	carrier  sessionclient.Carrier
	entered  chan *client

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
	ping    []byte // in its frame; of the floor program none
	plain   []byte // a move
	packet  []byte // the same in its frame
	buffer  []byte
}

// client is one player in the world.
type client struct {
	arrival
	fd      int     // -1 after the connection has ended
	secure  *secure // nil: without TLS
	mover   mover
	moves   int // until the next ping
	landed  time.Duration
	loading *loading    // nil when all land in view is here, or nobody asks for it
	unsent  []byte      // the rest of a move that the socket accepted in part
	history moveHistory // where the player really was
	sampler *sampler    // nil unless the player is a sample
}

// New returns an empty crowd.
func New(o Options) *Crowd {
	c := &Crowd{
		o: o.withDefaults(), protocol: session{}, carrier: sessionclient.WebSocket{}, entered: make(chan *client, 64),
		known: make(map[string]*client), rng: rand.New(rand.NewPCG(1, 0)), buffer: make([]byte, 1<<20),
	}
	switch {
	case o.FloorMove != nil:
		c.protocol, c.carrier = floor{o.FloorMove}, floorFrames{}
	case !sessionclient.IsPage(o.Targets[0]):
		c.carrier = sessionclient.Prefixed{}
	}
	if c.protocol == (session{}) {
		ping, err := sessionmsg.EncodeClientCBOR(sessionmsg.Ping{})
		if err != nil {
			panic(err) // it has no field that could be invalid
		}
		c.ping = c.carrier.Append(nil, ping)
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
			c.mu.BytesIn += p.bytes
			c.mu.Landed.Add(p.landed.Seconds())
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
		switch {
		case p.loading != nil:
			c.load(p)
		case p.sampler == nil:
			c.drain(p)
		default:
			c.measureErrors(p)
		}
	}
	for _, p := range c.samples {
		if p.fd >= 0 {
			c.readSample(p)
		}
	}
}

// movesPerPing is how many moves a page sends from one ping to the next, which are two seconds apart.
const movesPerPing = 40

// move advances the player one step and sends the move, and a ping when it is time for one.
func (c *Crowd) move(p *client) {
	before := p.mover
	p.mover.step(period.Seconds())
	if len(p.unsent) == 0 {
		c.plain = c.protocol.appendMove(c.plain[:0], p.mover.pose)
		c.packet = c.carrier.Append(c.packet[:0], c.plain)
		if p.moves--; p.moves <= 0 {
			p.moves = movesPerPing
			c.packet = append(c.packet, c.ping...)
		}
	} else {
		p.mover = before
		c.packet = append(c.packet[:0], p.unsent...)
	}
	n, err := p.send(c.packet)
	switch {
	case errors.Is(err, unix.EAGAIN):
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
}

// drain reads what the server has sent.
func (c *Crowd) drain(p *client) {
	for {
		if n, ok := c.read(p); !ok || n < len(c.buffer) {
			return
		}
	}
}

// read reads once into the crowd's buffer; ok is false if there is nothing.
func (c *Crowd) read(p *client) (n int, ok bool) {
	n, err := p.receive(c.buffer)
	switch {
	case errors.Is(err, unix.EAGAIN), errors.Is(err, unix.EINTR):
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
	at   [64]sentMove
	next int // index of the oldest
	n    int
}

type sentMove struct {
	pose motion.Pose
	at   time.Time
}

func (t *moveHistory) add(pose motion.Pose, at time.Time) {
	t.at[t.next] = sentMove{pose: pose, at: at}
	t.next = (t.next + 1) % len(t.at)
	t.n = min(t.n+1, len(t.at))
}

// last returns the last move, of which there is one.
func (t *moveHistory) last() motion.Pose { return t.at[(t.next-1+len(t.at))%len(t.at)].pose }
