package crowd

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/voxelpopuli/voxeld/motion"
	"github.com/voxelpopuli/voxeld/player"
	"github.com/voxelpopuli/voxeld/test/testkit/histogram"
	"github.com/voxelpopuli/voxeld/test/testkit/sessionclient"
	"github.com/voxelpopuli/voxeld/wire/sessionmsg"
)

// This file lets players play rounds. In each round every player takes one step of a given path, and records which
// updates of other players they receive, and how many rounds old those are.
//
// Each player has rounds of their own: a round begins when that player moves. Players move all at once or evenly
// spread over the round. A player turns with each move, and the yaw identifies the round. An update can be used in
// the first round that the sender begins after it arrived: in r+1, if it takes less than a round.

// Point is a horizontal position, in blocks.
type Point struct{ X, Z float64 }

// Rounds configures a game.
type Rounds struct {
	Targets []string  // host:port of gateways, assigned to players in turn
	Paths   [][]Point // by round and player, relative to where players enter the world; no step longer than MaxStep
	Spread  bool      // players begin their rounds evenly spread over RoundTime, not all at once
	Prefix  string    // of names
	// Range is the distance in blocks within which updates are recorded; 0 is unlimited.
	Range float64
	// OnRound, if not nil, is called when a round begins. It must return quickly.
	OnRound func(round int)
}

const (
	// RoundTime is the length of a round.
	RoundTime = 50 * time.Millisecond
	// LeadTime is how long before a multiple of RoundTime of the wall clock players begin their rounds if they begin
	// all at once. Gateways begin theirs at the multiple.
	LeadTime = 10 * time.Millisecond
	// MaxStep is the longest step of a round, in blocks: 19 a second, where the server allows 20.
	MaxStep = .95
	// startTimeout is the time limit for all players to reach the beginning of their paths.
	startTimeout = 90 * time.Second
	// maxLag is how late moves may be before the following rounds are postponed.
	maxLag = 4 * time.Millisecond
)

// Update records that an update of one player reached another, who could use it in Round.
type Update struct {
	Round, Of        int32 // Of is the round of the update
	Receiver, Origin int32
}

// GameResult is the result of a game.
type GameResult struct {
	Updates     []Update            // in the order of rounds
	In, Out     [][]uint32          // bytes, by player and round
	Delay       histogram.Histogram // seconds from a move until another player has read of it
	Corrections uint64              // moves that a gateway refused
	Late        float64             // seconds by which all players' moves were late together, on average, because this machine was busy
	First       bool                // players had real-time priority on this machine, which requires root
}

// Play plays all rounds and disconnects the players.
func Play(ctx context.Context, o Rounds) (*GameResult, error) {
	if err := o.validate(); err != nil {
		return nil, err
	}
	g := &game{o: o, numbers: make(map[player.ID]int32)}
	defer g.leave()
	if err := g.join(ctx); err != nil {
		return nil, err
	}
	if err := g.play(ctx); err != nil {
		return nil, err
	}
	return g.result(), nil
}

func (o *Rounds) validate() error {
	if len(o.Paths) < 2 || len(o.Paths[0]) == 0 || len(o.Targets) == 0 {
		return errors.New("play: want players, gateways and two rounds or more")
	}
	for r, points := range o.Paths[1:] {
		for i, s := range points {
			if b := o.Paths[r][i]; max(s.X-b.X, b.X-s.X, s.Z-b.Z, b.Z-s.Z) > MaxStep || distance(motion.Pose{X: s.X, Z: s.Z}, motion.Pose{X: b.X, Z: b.Z}) > MaxStep {
				return fmt.Errorf("play: player %d moves from %v to %v in round %d: too fast", i, b, s, r+1)
			}
		}
	}
	return nil
}

// game is a game under way. Once all players have joined it belongs to one thread (rounds_stage.go).
type game struct {
	o       Rounds
	players []*roundClient
	numbers map[player.ID]int32
	middle  Point
	late    time.Duration
	first   bool // this thread has real-time priority
	packet  []byte
	buffer  []byte // for reads
	poll    poll
}

// roundClient is one player.
type roundClient struct {
	g        *game
	number   int32
	fd       int // -1 after the player has left
	mover    mover
	received inbound
	begun    int32       // rounds
	sent     []time.Time // by round; of those that have begun
	out, in  []uint32    // bytes, by round

	actors      []int32 // by index: the player's number, or -1
	newest      []int32 // by origin: the round of the newest update plus 1; 0: none
	updates     []Update
	at          time.Time // when the newest bytes were read
	delay       histogram.Histogram
	corrections uint64
}

// join connects all players.
func (g *game) join(ctx context.Context) error {
	n := len(g.o.Paths[0])
	g.players = make([]*roundClient, n)
	ids := make([]player.ID, n)
	errs := make([]error, n)
	gate := make(chan struct{}, maxJoining)
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
		g.players = slices.DeleteFunc(g.players, func(p *roundClient) bool { return p == nil })
		return fmt.Errorf("join: %w", err)
	}
	for i, id := range ids {
		g.numbers[id] = int32(i)
	}
	at := g.players[0].mover.pose.Chunk().Origin()
	g.middle = Point{float64(at.X), float64(at.Z)}
	for i, p := range g.players {
		start := g.position(0, i)
		p.mover.goalX, p.mover.goalZ, p.mover.placed, p.mover.flying = start.X, start.Z, true, true
	}
	return nil
}

func (g *game) enter(ctx context.Context, i int) (p *roundClient, id player.ID, err error) {
	rounds := len(g.o.Paths)
	p = &roundClient{g: g, number: int32(i), fd: -1, out: make([]uint32, rounds), in: make([]uint32, rounds), sent: make([]time.Time, rounds), newest: make([]int32, len(g.o.Paths[0]))}
	p.received.split = cborCodec{}.split
	// Frames that arrive on the way are kept, because they name the avatars nearby.
	var at arrival
	p.fd, err = connect(ctx, "tcp", g.o.Targets[i%len(g.o.Targets)], func(conn net.Conn) (err error) {
		var early []byte
		at, early, err = enterSession(conn, fmt.Sprintf("%s-%d", g.o.Prefix, i), 1, func(m sessionclient.Message) error {
			if m.Tick != nil {
				p.received.rest = sessionmsg.AppendMessage(p.received.rest, m.Tick)
			}
			return nil
		})
		p.received.rest = append(p.received.rest, early...)
		return err
	})
	if err != nil {
		return nil, id, err
	}
	p.mover = mover{pose: at.pose, sky: float64(at.height) + overLand}
	id, err = player.ParseID(at.player)
	return p, id, err
}

// leave disconnects all players.
func (g *game) leave() {
	for _, p := range g.players {
		if p.fd >= 0 {
			unix.Close(p.fd) //nolint:errcheck // nothing is lost with it
			p.fd = -1
		}
	}
	g.poll.close()
}

// position returns the position of a player in a round.
func (g *game) position(round, i int) Point {
	s := g.o.Paths[round][i]
	return Point{s.X + g.middle.X, s.Z + g.middle.Z}
}

// result sums up what all players have recorded.
func (g *game) result() *GameResult {
	all := &GameResult{Late: g.late.Seconds(), First: g.first}
	for _, p := range g.players {
		all.Updates = append(all.Updates, p.updates...)
		all.In, all.Out = append(all.In, p.in), append(all.Out, p.out)
		all.Delay.Merge(p.delay)
		all.Corrections += p.corrections
	}
	slices.SortStableFunc(all.Updates, func(a, b Update) int { return cmp.Compare(a.Round, b.Round) })
	return all
}
