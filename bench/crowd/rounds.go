package crowd

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/player"
	"github.com/voxelpopuli/voxeld/wire"
)

// This file lets players play rounds: in each of them everybody goes on along a given way, and everybody takes note of
// what he is told of whom, and how many rounds old that is.
//
// A player's rounds are his own: they begin when he moves, and players begin theirs at different times, evenly spread. With each move he
// turns his head, and which way he looks says which round it is. An update can be used in the first round that its origin
// begins after it came: in r+1, if it takes less than a round.

// Spot is a place across, in blocks.
type Spot struct{ X, Z float64 }

// Rounds are what is to be played.
type Rounds struct {
	Targets []string // host:port of gateways: the i-th player joins the i-th, over and over
	Way     [][]Spot // by round and player; no step longer than StepMost. It begins at the chunk of Middle
	Middle  bool     // the ways are counted from where players enter the world, not from its origin
	View    int      // chunks in each direction; default 1
	Prefix  string   // of names
	// Reach is up to how many blocks away updates are taken note of; 0 is all.
	Reach float64
	// Began, if not nil, is called when a round begins. It must not take long.
	Began func(round int)
}

const (
	// RoundTime is the length of a round.
	RoundTime = 50 * time.Millisecond
	// StepMost is the longest way in a round, in blocks: 19 a second, where the server allows 20.
	StepMost = .95
	// startTime is how long all may take to get to where their ways begin.
	startTime = 90 * time.Second
	// lagMost is by how much moves may be late before the rounds that follow begin later too.
	lagMost = 4 * time.Millisecond
)

// Told says that an update of a player reached another one, who could use it in Round.
type Told struct {
	Round, Of        int32 // Of is the round of the update
	Receiver, Origin int32
}

// Played is what became of rounds.
type Played struct {
	Told        []Told     // in the order of rounds
	In, Out     [][]uint32 // bytes, by player and round
	Delay       Spread     // seconds from a move until another player has read of it
	Corrections uint64     // moves that a gateway refused
	Strange     uint64     // updates that showed a player where he was not in that round; not in Told
	Stretched   float64    // seconds that all rounds together were too long, because this machine was late
}

// Play plays rounds until the last, and takes everybody out of the world again.
func Play(ctx context.Context, o Rounds) (*Played, error) {
	if o.View == 0 {
		o.View = 1
	}
	if err := o.validate(); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	g := &game{o: o, numbers: make(map[player.ID]int32)}
	var readers sync.WaitGroup
	defer readers.Wait()
	defer func() {
		for _, p := range g.players {
			p.conn.Close() //nolint:errcheck // the reader sees it
		}
	}()
	if err := g.join(ctx); err != nil {
		return nil, err
	}
	for _, p := range g.players {
		readers.Go(func() {
			if err := p.read(); err != nil && !g.over.Load() {
				cancel(fmt.Errorf("player %d: %w", p.number, err))
			}
		})
	}
	err := g.play(ctx)
	g.over.Store(true)
	if err != nil {
		return nil, err
	}
	for _, p := range g.players {
		p.conn.Close() //nolint:errcheck // likewise
	}
	readers.Wait()
	return g.played(), nil
}

func (o *Rounds) validate() error {
	if len(o.Way) < 2 || len(o.Way[0]) == 0 || len(o.Targets) == 0 {
		return errors.New("play: want players, gateways and two rounds or more")
	}
	for r, spots := range o.Way[1:] {
		for i, s := range spots {
			if b := o.Way[r][i]; max(s.X-b.X, b.X-s.X, s.Z-b.Z, b.Z-s.Z) > StepMost || apart(wire.Pose{X: s.X, Z: s.Z}, wire.Pose{X: b.X, Z: b.Z}) > StepMost {
				return fmt.Errorf("play: player %d goes from %v to %v in round %d: nobody may be so fast", i, b, s, r+1)
			}
		}
	}
	return nil
}

// game is rounds under way.
type game struct {
	o         Rounds
	players   []*gamer
	numbers   map[player.ID]int32
	middle    Spot
	over      atomic.Bool
	stretched time.Duration
}

// gamer is one player. The reader's part belongs to his reader, the rest to whoever plays.
type gamer struct {
	g      *game
	number int32
	conn   net.Conn
	in     *bufio.Reader
	body   body
	packet []byte
	out    []uint32
	begun  atomic.Int32 // rounds
	sent   []time.Time  // by round; of those that have begun

	reader struct {
		early       [][]byte // frames that came before all had joined
		buffer      []byte
		actors      []int32 // by index: whose it is, or -1
		newest      []int32 // by origin: the round of the newest update, and 1; 0: none
		told        []Told
		in          []uint32
		at          time.Time // of the frame
		delay       Spread
		corrections uint64
		strange     uint64
	}
}

// join brings all players in.
func (g *game) join(ctx context.Context) error {
	n := len(g.o.Way[0])
	g.players = make([]*gamer, n)
	ids := make([]player.ID, n)
	errs := make([]error, n)
	gate := make(chan struct{}, joining)
	var wg sync.WaitGroup
	for i := range n {
		gate <- struct{}{}
		wg.Go(func() {
			defer func() { <-gate }()
			g.players[i], ids[i], errs[i] = g.enter(ctx, i)
		})
	}
	wg.Wait()
	if err := errors.Join(errs...); err != nil {
		g.players = slices.DeleteFunc(g.players, func(p *gamer) bool { return p == nil })
		return fmt.Errorf("join: %w", err)
	}
	for i, id := range ids {
		g.numbers[id] = int32(i)
	}
	if g.o.Middle {
		at := chunkOf(g.players[0].body.pose).Origin()
		g.middle = Spot{float64(at.X), float64(at.Z)}
	}
	for i, p := range g.players {
		start := g.spot(0, i)
		p.body.goalX, p.body.goalZ, p.body.placed, p.body.aloft = start.X, start.Z, true, true
	}
	return nil
}

func (g *game) enter(ctx context.Context, i int) (p *gamer, id player.ID, err error) {
	ctx, cancel := context.WithTimeout(ctx, joinTime)
	defer cancel()
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", g.o.Targets[i%len(g.o.Targets)])
	if err != nil {
		return nil, id, err
	}
	stop := context.AfterFunc(ctx, func() { conn.Close() }) //nolint:errcheck // the read reports it
	defer stop()
	rounds := len(g.o.Way)
	p = &gamer{g: g, number: int32(i), conn: conn, in: bufio.NewReaderSize(conn, 16<<10), out: make([]uint32, rounds), sent: make([]time.Time, rounds)}
	at, err := p.enter(fmt.Sprintf("%s-%d", g.o.Prefix, i))
	if err == nil {
		id, err = player.ParseID(at.player)
	}
	if err != nil {
		return nil, id, errors.Join(err, conn.Close())
	}
	p.body = body{pose: at.pose, sky: float64(at.height) + overLand}
	p.reader.in, p.reader.newest = make([]uint32, rounds), make([]int32, len(g.o.Way[0]))
	return p, id, nil
}

// enter joins, and waits until the land is there. Frames that come before are kept: they say who is around.
func (p *gamer) enter(name string) (at arrival, err error) {
	join, err := wire.EncodeClient(wire.Join{Version: wire.SessionVersion, Name: name, View: p.g.o.View, Encoding: wire.EncodingCBOR})
	if err != nil {
		return at, err
	}
	if _, err := p.conn.Write(append(join, '\n')); err != nil {
		return at, fmt.Errorf("send join: %w", err)
	}
	for {
		message, err := wire.ReadMessage(p.in, nil, wire.MaxServerLine)
		if err != nil {
			return at, fmt.Errorf("await welcome: %w", err)
		}
		if message[0] == wire.TickFrame {
			p.reader.early = append(p.reader.early, message)
			continue
		}
		decoded, err := wire.DecodeServerCBOR(message)
		if err != nil {
			return at, err
		}
		switch m := decoded.(type) {
		case wire.Welcome:
			at = arrival{player: m.Player, pose: m.Pose, height: grid.ChunkSize * m.Sections}
		case wire.ChunkData:
			if m.Chunk == chunkOf(at.pose) && at.player != "" {
				return at, nil
			}
		case wire.Failure:
			return at, errors.New(m.Code + ": " + m.Message)
		}
	}
}

// spot is where a player is in a round.
func (g *game) spot(round, i int) Spot {
	s := g.o.Way[round][i]
	return Spot{s.X + g.middle.X, s.Z + g.middle.Z}
}

// play lets all fly to their places, and then plays the rounds.
func (g *game) play(ctx context.Context) error {
	pace := &pacer{start: time.Now(), wait: time.NewTimer(0)}
	defer pace.wait.Stop()
	for away := true; away; {
		away = false
		err := pace.round(ctx, func(slice int) error {
			for i := slice; i < len(g.players); i += parts {
				p := g.players[i]
				if !p.body.aloft {
					continue
				}
				away = true
				if p.body.hover(RoundTime.Seconds()); p.body.pose.X == p.body.goalX && p.body.pose.Z == p.body.goalZ {
					p.body.aloft = false
				}
				if _, err := p.move(); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
		if time.Since(pace.start) > startTime && away {
			return errors.New("play: not everybody got to where he begins")
		}
	}
	pace.stretched = 0
	for round := range g.o.Way {
		if g.o.Began != nil {
			g.o.Began(round)
		}
		err := pace.round(ctx, func(slice int) error {
			for i := slice; i < len(g.players); i += parts {
				if err := g.players[i].begin(round); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	g.stretched = pace.stretched
	return pace.round(ctx, func(int) error { return nil }) // the last updates come
}

// pacer calls for each part of the players when their time in a round has come.
type pacer struct {
	start     time.Time
	rounds    int
	stretched time.Duration
	wait      *time.Timer
}

func (p *pacer) round(ctx context.Context, part func(slice int) error) error {
	for slice := range parts {
		due := p.start.Add(time.Duration(p.rounds)*RoundTime + time.Duration(slice)*RoundTime/parts)
		p.wait.Reset(time.Until(due))
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-p.wait.C:
		}
		if lag := time.Since(due); lag > lagMost {
			p.start, p.stretched = p.start.Add(lag), p.stretched+lag
		}
		if err := part(slice); err != nil {
			return err
		}
	}
	p.rounds++
	return nil
}

// hover goes on above the land for dt seconds, up first.
func (b *body) hover(dt float64) {
	way := travelSpeed * dt
	if b.pose.Y < b.sky {
		b.pose.Y = min(b.sky, b.pose.Y+way)
		return
	}
	b.across(way)
	b.pose.Yaw = yawOf(-1)
}

// begin begins a player's round.
func (p *gamer) begin(round int) error {
	at := p.g.spot(round, int(p.number))
	p.body.pose.X, p.body.pose.Z = at.X, at.Z
	p.body.pose.Yaw = yawOf(int32(round))
	p.sent[round] = time.Now()
	p.begun.Store(int32(round) + 1)
	n, err := p.move()
	p.out[round] = uint32(n)
	return err
}

func (p *gamer) move() (n int, err error) {
	if p.packet, err = (binary{}).appendMove(p.packet[:0], p.body.pose); err != nil {
		return 0, err
	}
	if n, err = p.conn.Write(p.packet); err != nil {
		return 0, fmt.Errorf("player %d moves: %w", p.number, err)
	}
	return n, nil
}

// played adds up what all have noted.
func (g *game) played() *Played {
	all := &Played{Stretched: g.stretched.Seconds()}
	for _, p := range g.players {
		r := &p.reader
		all.Told = append(all.Told, r.told...)
		all.In, all.Out = append(all.In, r.in), append(all.Out, p.out)
		all.Delay.Merge(&r.delay)
		all.Corrections += r.corrections
		all.Strange += r.strange
	}
	slices.SortStableFunc(all.Told, func(a, b Told) int { return cmp.Compare(a.Round, b.Round) })
	return all
}
