package main

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/voxelpopuli/voxeld/chunk"
	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/internal/kv"
	"github.com/voxelpopuli/voxeld/motion"
	"github.com/voxelpopuli/voxeld/store"
	"github.com/voxelpopuli/voxeld/test/testkit/daemon"
	"github.com/voxelpopuli/voxeld/test/testkit/legacyclient"
	"github.com/voxelpopuli/voxeld/test/testkit/sessionclient"
	"github.com/voxelpopuli/voxeld/wire/legacymsg"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
	"github.com/voxelpopuli/voxeld/wire/sessionmsg"
)

// playerSystem is three daemons of one world, and the sessions of all writers.
type playerSystem struct {
	options
	daemons  []*daemon.Daemon
	sessions []*session
}

func startPlayers(ctx context.Context, o options, _ int) (system, error) {
	f := &playerSystem{options: o}
	voxeld, err := daemon.Build(ctx, o.dir)
	if err != nil {
		return nil, err
	}
	regions, most := regionsAt(spreadOver), slices.Max(o.writers)
	if f.daemons, err = daemon.Network(ctx, daemon.Options{
		Binary: voxeld, Dir: o.dir, Args: []string{"--sessions-per-address", "10000", "--edits-per-second", "1000000"},
		Prepare: func(dir string) error {
			return f.writePlayerRecords(ctx, filepath.Join(dir, "voxeld.db"), regions, most)
		},
	}, 3, 33, nil); err != nil {
		return nil, err
	}
	if err := f.join(ctx, regions, most); err != nil {
		f.stop()
		return nil, err
	}
	return f, nil
}

// join founds the regions, and has the players join, each on the daemon that leads their region.
func (f *playerSystem) join(ctx context.Context, regions []grid.ChunkPos, players int) error {
	var metrics []string
	for _, d := range f.daemons {
		metrics = append(metrics, d.Metrics)
	}
	if err := knowEachOther(ctx, metrics); err != nil {
		return err
	}
	leaders := make([]string, len(regions))
	leads := make(map[string]int)
	for i, pos := range regions {
		var err error
		if leaders[i], err = locate(ctx, f.daemons[0].Game, pos); err != nil {
			return fmt.Errorf("locate %v: %w", pos, err)
		}
		leads[leaders[i]]++
	}
	fmt.Fprintf(os.Stderr, "  daemons lead %v regions\n", leads)
	f.sessions = make([]*session, players)
	var joining errgroup.Group
	joining.SetLimit(64)
	for w := range f.sessions {
		joining.Go(func() (err error) {
			if f.sessions[w], err = joinAs(ctx, leaders[w%len(regions)], newEditor(w, f.keys), w, regions[w%len(regions)]); err != nil {
				return fmt.Errorf("join as writer %d: %w", w, err)
			}
			return nil
		})
	}
	return joining.Wait()
}

// writePlayerRecords writes records of players into a database: walking to their regions would take half an hour.
func (f *playerSystem) writePlayerRecords(ctx context.Context, path string, regions []grid.ChunkPos, players int) error {
	db, err := store.Open(store.Options{Path: path})
	if err != nil {
		return err
	}
	ended := make(chan error, 1)
	go func() { ended <- db.Run(ctx) }()
	var writes []kv.Write
	for w := range players {
		id := newEditor(w, f.keys).id()
		row, err := nodemsg.EncodePlayerRecord(nodemsg.PlayerRecord{
			Player: id, Name: writerName(w), Guest: !f.keys, Seq: 1,
			Pose: startPose(w, regions[w%len(regions)]), Gateway: "bench", SavedAt: time.Now().UnixMilli(),
		})
		if err != nil {
			return err
		}
		writes = append(writes, kv.Write{Table: "players", Key: id[:], Value: row})
	}
	return errors.Join(db.Commit(writes), db.Close(), <-ended)
}

// blockOf returns the block that a writer edits; the writer stands beside it. It is high in the air, out of the
// terrain. Blocks of one region are above one another.
func blockOf(w int, at grid.ChunkPos) grid.Pos {
	return grid.Pos{X: at.X*grid.ChunkSize + int32(w%4)*8, Y: 90 + int32(w/16%8)*4, Z: at.Z*grid.ChunkSize + int32(w/4%4)*8 + int32(w/128)%4}
}

func startPose(w int, at grid.ChunkPos) motion.Pose {
	p := blockOf(w, at)
	return motion.Pose{X: float64(p.X) + 2.5, Y: float64(p.Y), Z: float64(p.Z) + .5}
}

// locate returns the game address of the daemon that leads the chunk's region, which is founded if need be.
func locate(ctx context.Context, game string, pos grid.ChunkPos) (string, error) {
	c, err := legacyclient.Dial(ctx, game, legacymsg.Handshake{Purpose: legacymsg.PurposeDHT})
	if err != nil {
		return "", err
	}
	defer c.Close() //nolint:errcheck // the answer has been read
	if err := c.SetDeadline(time.Now().Add(20 * time.Second)); err != nil {
		return "", err
	}
	server, err := c.WhereIsChunk(pos)
	return server.String(), err
}

func (f *playerSystem) load(ctx context.Context, writers int, warm, duration time.Duration) (result, error) {
	begin := time.Now().Add(warm)
	end := begin.Add(duration)
	took, errs := make([][]time.Duration, writers), make([]error, writers)
	var all sync.WaitGroup
	for w, s := range f.sessions[:writers] {
		all.Go(func() { took[w], errs[w] = s.write(ctx, newPacer(f.rate, w, writers), begin, end) })
	}
	all.Wait()
	return percentiles(slices.Concat(took...), duration), errors.Join(errs...)
}

func (f *playerSystem) usage() (u usage, err error) {
	var own syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &own); err != nil {
		return u, fmt.Errorf("read own usage: %w", err)
	}
	u.client = time.Duration(own.Utime.Nano() + own.Stime.Nano())
	for _, d := range f.daemons {
		if err := u.add(d.Process, d.Metrics, "voxeld_store_fsyncs_total"); err != nil {
			return u, err
		}
	}
	return u, nil
}

func (f *playerSystem) stop() {
	for _, s := range f.sessions {
		if s != nil {
			s.conn.Close() //nolint:errcheck // no longer used
		}
	}
	daemon.KillAll(f.daemons)
}

// session is a player with their own TCP connection. Reads must continue between writes: so one goroutine reads, and
// writes the next edit when it finds an answer.
type session struct {
	conn  *sessionclient.Conn
	by    editor
	world string // its id, if edits are signed
	seq   uint64
	pos   grid.Pos
	ended chan error

	mu struct {
		sync.Mutex
		measurement *measurement // nil between two measurements
	}
}

// joinAs joins, and returns when the player's land has arrived.
func joinAs(ctx context.Context, game string, by editor, w int, at grid.ChunkPos) (*session, error) {
	join := sessionmsg.Join{Name: by.name, View: 1, Encoding: sessionmsg.EncodingCBOR}
	if by.key != nil {
		join.Key = hex.EncodeToString(by.public())
	}
	c, err := sessionclient.Dial(ctx, game, join)
	if err != nil {
		return nil, err
	}
	s := &session{conn: c, by: by, pos: blockOf(w, at), ended: make(chan error, 1)}
	if err := c.SetReadDeadline(time.Now().Add(2 * time.Minute)); err != nil {
		return s, err
	}
	welcome, err := c.Enter(func(m sessionclient.Message) error {
		challenge, asked := m.FromServer.(sessionmsg.Challenge)
		if !asked {
			return nil
		}
		_, err := c.Send(sessionclient.Prove(by.key, challenge))
		return err
	})
	if err != nil {
		return nil, errors.Join(err, c.Close())
	}
	if s.seq = welcome.NextSeq; welcome.Signed {
		s.world = welcome.World
	}
	go func() { s.ended <- s.read() }()
	return s, c.SetReadDeadline(time.Time{})
}

// read handles acknowledgements.
func (s *session) read() error {
	for {
		m, err := s.conn.Read()
		if err != nil {
			return err
		}
		switch m := m.FromServer.(type) {
		case sessionmsg.Ack:
			if err := s.acknowledged(m); err != nil {
				return err
			}
		case sessionmsg.Failure:
			return fmt.Errorf("session ended: %s: %s", m.Code, m.Message)
		}
	}
}

// measurement is a player's part in one measurement.
type measurement struct {
	pacer      pacer
	begin, end time.Time
	start      time.Time // of the edit under way
	took       []time.Duration
	over       chan struct{} // closed when the measurement ends
}

// write writes until end, and returns how long the edits took.
func (s *session) write(ctx context.Context, pacer pacer, begin, end time.Time) ([]time.Duration, error) {
	t := &measurement{pacer: pacer, begin: begin, end: end, over: make(chan struct{})}
	s.mu.Lock()
	s.mu.measurement = t
	s.mu.Unlock()
	if err := s.next(t); err != nil {
		return nil, err
	}
	select {
	case <-t.over:
		return t.took, nil
	case err := <-s.ended:
		return nil, err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// next writes the next edit of a measurement, when it is due.
func (s *session) next(t *measurement) error {
	t.pacer.wait()
	blocks := [...]chunk.Block{chunk.Brick, chunk.Planks}
	if t.start = time.Now(); t.start.After(t.end) {
		close(t.over)
		return nil
	}
	s.seq++
	e := sessionmsg.Edit{Seq: s.seq, X: s.pos.X, Y: s.pos.Y, Z: s.pos.Z, Block: uint16(blocks[s.seq%2])}
	if s.world != "" {
		e = sessionclient.Sign(s.by.key, s.world, e)
	}
	_, err := s.conn.Send(e)
	return err
}

func (s *session) acknowledged(ack sessionmsg.Ack) error {
	s.mu.Lock()
	t := s.mu.measurement
	s.mu.Unlock()
	if t == nil || ack.Error != "" || ack.Seq != s.seq {
		return fmt.Errorf("edit %d at %v: unexpected answer %+v", s.seq, s.pos, ack)
	}
	if done := time.Now(); t.start.After(t.begin) && done.Before(t.end) {
		t.took = append(t.took, done.Sub(t.start))
	}
	return s.next(t)
}
