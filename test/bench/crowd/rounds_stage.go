package crowd

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"time"

	"golang.org/x/sys/unix"

	"github.com/voxelpopuli/voxeld/wire/sessionmsg"
)

// In this file one thread plays rounds for all players. It polls their sockets once in readEvery and sleeps in
// between, so that it does not wake up for each frame. If allowed (as root), it takes real-time priority over the
// daemons, as if players had machines of their own.

// readEvery is the interval between reads. Updates are recorded as later by up to that much.
const readEvery = time.Millisecond

// play moves all players to their starting positions, and then plays the rounds.
func (g *game) play(ctx context.Context) error {
	done := make(chan error)
	go func() { // it ends before this function returns
		runtime.LockOSThread() // the thread ends with this goroutine
		first := unix.SchedAttr{Policy: unix.SCHED_FIFO, Priority: 1, Flags: unix.SCHED_FLAG_RESET_ON_FORK}
		g.first = unix.SchedSetAttr(0, &first, 0) == nil // without priority, moves are late now and then
		done <- g.perform(ctx)
	}()
	return <-done
}

func (g *game) perform(ctx context.Context) error {
	g.buffer = make([]byte, 256<<10)
	for _, p := range g.players {
		if err := g.poll.add(int(p.number), p.fd, unix.EPOLLIN); err != nil {
			return fmt.Errorf("poll sockets: %w", err)
		}
		if err := p.receive(nil, time.Now()); err != nil { // bytes that arrived during the join
			return err
		}
	}
	pacer := newPacer(time.Now(), g.o.Spread)
	until := func(due time.Time) error { return g.read(ctx, due) }
	each := func(play func(p *roundClient) error) error { // one round
		return pacer.round(until, func(slice int) error {
			for i := slice; i < len(g.players); i += pacer.slices {
				if err := play(g.players[i]); err != nil {
					return err
				}
			}
			return nil
		})
	}
	began := time.Now()
	for away := true; away; {
		if away = false; time.Since(began) > startTimeout {
			return errors.New("play: not all players reached their starting positions")
		}
		err := each(func(p *roundClient) error {
			if !p.mover.flying {
				return nil
			}
			away = true
			if p.mover.hover(RoundTime.Seconds()); p.mover.pose.X == p.mover.goalX && p.mover.pose.Z == p.mover.goalZ {
				p.mover.flying = false
			}
			_, err := p.move()
			return err
		})
		if err != nil {
			return err
		}
	}
	pacer.late = 0
	for round := range g.o.Paths {
		if g.o.OnRound != nil {
			g.o.OnRound(round)
		}
		if err := each(func(p *roundClient) error { return p.begin(round) }); err != nil {
			return err
		}
	}
	g.late = pacer.late
	return pacer.round(until, func(int) error { return nil }) // receive the last updates
}

// pacer calls back for each part of the players when their time in a round has come.
type pacer struct {
	start  time.Time
	slices int
	rounds int
	late   time.Duration
}

// newPacer begins rounds after now: LeadTime before those of gateways, or at once if players are spread.
func newPacer(now time.Time, spread bool) *pacer {
	p := &pacer{start: now, slices: parts}
	if !spread {
		p.slices = 1
		p.start = now.Add(RoundTime - (time.Duration(now.UnixNano())+LeadTime)%RoundTime)
	}
	return p
}

// round calls part for each part of the players at its time; until waits for that time.
func (p *pacer) round(until func(due time.Time) error, part func(slice int) error) error {
	for slice := range p.slices {
		due := p.start.Add(time.Duration(p.rounds)*RoundTime + time.Duration(slice)*RoundTime/time.Duration(p.slices))
		if err := until(due); err != nil {
			return err
		}
		p.lag(time.Since(due))
		if err := part(slice); err != nil {
			return err
		}
	}
	p.rounds++
	return nil
}

// lag records by how much a slice's moves are late. Beyond maxLag the following rounds are postponed too, so that
// players do not seem to hurry. Rounds that begin with the gateways' are postponed by whole rounds. The larger of the
// shift and the players' mean delay counts as late.
func (p *pacer) lag(lag time.Duration) {
	shift := time.Duration(0)
	if lag > maxLag {
		if shift = lag; p.slices == 1 {
			shift = lag.Round(RoundTime)
		}
	}
	p.start = p.start.Add(shift)
	p.late += max(shift, lag/time.Duration(p.slices))
}

// hover moves above the land for dt seconds, up first.
func (b *mover) hover(dt float64) {
	step := travelSpeed * dt
	if b.pose.Y < b.sky {
		b.pose.Y = min(b.sky, b.pose.Y+step)
		return
	}
	b.moveTowards(step)
	b.pose.Yaw = yawOf(-1)
}

// begin begins a player's round.
func (p *roundClient) begin(round int) error {
	at := p.g.position(round, int(p.number))
	p.mover.pose.X, p.mover.pose.Z = at.X, at.Z
	p.mover.pose.Yaw = yawOf(int32(round))
	p.sent[round] = time.Now()
	p.begun = int32(round) + 1
	n, err := p.move()
	p.out[round] = uint32(n)
	return err
}

func (p *roundClient) move() (n int, err error) {
	g := p.g
	if g.packet, err = (cborCodec{}).appendMove(g.packet[:0], p.mover.pose); err != nil {
		return 0, err
	}
	if n, err = unix.Write(p.fd, g.packet); err == nil && n < len(g.packet) {
		err = errors.New("the server does not read moves") // a socket that the server has not read for thousands of rounds
	}
	if err != nil {
		return n, fmt.Errorf("send move of player %d: %w", p.number, err)
	}
	return n, nil
}

// read reads what players receive, until due.
func (g *game) read(ctx context.Context, due time.Time) error {
	for {
		events, err := g.poll.wait()
		if err != nil {
			return err
		}
		now := time.Now()
		for _, e := range events {
			p := g.players[e.Fd]
			switch n, err := unix.Read(p.fd, g.buffer); {
			case err == unix.EAGAIN || err == unix.EINTR:
			case err != nil || n == 0:
				return fmt.Errorf("player %d: %w", p.number, errors.Join(errClosed, err))
			default:
				if err := p.receive(g.buffer[:n], now); err != nil {
					return fmt.Errorf("player %d: %w", p.number, err)
				}
			}
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		rest := time.Until(due)
		if rest <= 0 {
			return nil
		}
		if len(events) == len(g.poll.events) {
			continue
		}
		nap := unix.NsecToTimespec(int64(min(rest, readEvery)))
		unix.Nanosleep(&nap, nil) //nolint:errcheck // a signal may cut it short
	}
}

// receive decodes the bytes that were read.
func (p *roundClient) receive(data []byte, at time.Time) error {
	p.at = at
	if p.begun > 0 {
		p.in[p.begun-1] += uint32(len(data))
	}
	return p.received.each(data, p.handle)
}

// handle handles a message.
func (p *roundClient) handle(message []byte) error {
	switch {
	case len(message) == 0:
		return errors.New("empty message")
	case message[0] == sessionmsg.TickFrame:
		return sessionmsg.ReadTick(message, p)
	case len(message) > 1024:
		return nil // land
	}
	decoded, err := sessionmsg.DecodeServerCBOR(message)
	if err != nil {
		return err
	}
	switch m := decoded.(type) {
	case sessionmsg.Correction:
		p.corrections++
	case sessionmsg.Failure:
		return errors.New(m.Code + ": " + m.Message)
	}
	return nil
}
