package main

import (
	"context"
	"crypto/ed25519"
	"fmt"
	"sync"
	"time"

	"github.com/voxelpopuli/voxeld/chunk"
	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/player"
	"github.com/voxelpopuli/voxeld/region"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
)

// regionClient is the region link that a node's writers in one region share, as the players of a gateway do.
type regionClient struct {
	link region.Link
	at   grid.ChunkPos
	wake chan struct{}

	mu struct {
		sync.Mutex
		out     []nodemsg.Intent
		waiting map[player.ID]chan nodemsg.EditResult
		broken  error
	}
}

func newRegionClient(ctx context.Context, link region.Link, at grid.ChunkPos) (*regionClient, error) {
	c := &regionClient{link: link, at: at, wake: make(chan struct{}, 1)}
	c.mu.waiting = make(map[player.ID]chan nodemsg.EditResult)
	// A gateway watches the chunks that its players edit.
	if err := link.Send(nodemsg.ToRegion{Watch: []grid.ChunkPos{at}}); err != nil {
		return nil, err
	}
	go c.send(ctx)
	go c.receive(ctx)
	return c, nil
}

func (c *regionClient) send(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-c.wake:
		}
		c.mu.Lock()
		out := c.mu.out
		c.mu.out = nil
		c.mu.Unlock()
		if len(out) == 0 {
			continue
		}
		if err := c.link.Send(nodemsg.ToRegion{Edits: out}); err != nil {
			c.fail(err)
			return
		}
	}
}

func (c *regionClient) receive(ctx context.Context) {
	for {
		frame, err := c.link.Receive(ctx)
		if err == nil && frame.Closed != "" {
			err = fmt.Errorf("link closed: %s", frame.Closed)
		}
		if err != nil {
			c.fail(err)
			return
		}
		c.mu.Lock()
		for _, r := range frame.Results {
			if w := c.mu.waiting[r.Player]; w != nil {
				w <- r
			}
		}
		c.mu.Unlock()
	}
}

func (c *regionClient) fail(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.mu.broken == nil {
		c.mu.broken = err
		for _, w := range c.mu.waiting {
			close(w)
		}
		clear(c.mu.waiting)
	}
}

// answers returns where the answers to a player's edits arrive, until forget is called.
func (c *regionClient) answers(id player.ID) (answers chan nodemsg.EditResult, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	answers = make(chan nodemsg.EditResult, 1)
	c.mu.waiting[id] = answers
	return answers, c.mu.broken
}

func (c *regionClient) forget(id player.ID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.mu.waiting, id)
}

// commit commits one edit.
func (c *regionClient) commit(e nodemsg.Intent, answers chan nodemsg.EditResult) error {
	c.mu.Lock()
	c.mu.out = append(c.mu.out, e)
	c.mu.Unlock()
	select {
	case c.wake <- struct{}{}:
	default:
	}
	r, ok := <-answers
	switch {
	case !ok:
		return c.mu.broken
	case r.Refused != "":
		return fmt.Errorf("edit refused: %s", r.Refused)
	case r.Seq != e.Seq:
		return fmt.Errorf("answer to edit %d has sequence %d", e.Seq, r.Seq)
	}
	return nil
}

// writer alternates two blocks at its own position.
func (c *regionClient) writer(ctx context.Context, by editor, w int, pacer pacer, begin, end time.Time) (took []time.Duration, err error) {
	e := nodemsg.Intent{
		Player: by.id(),
		Seq:    uint64(time.Now().UnixMicro()),
		Pos:    grid.Pos{X: c.at.X*grid.ChunkSize + int32(w%32), Y: 100, Z: c.at.Z*grid.ChunkSize + int32(w/32%32)},
	}
	if by.key == nil {
		e.Name = by.name
	} else {
		e.Key = [ed25519.PublicKeySize]byte(by.public())
	}
	answers, err := c.answers(e.Player)
	defer c.forget(e.Player)
	if err != nil {
		return nil, err
	}
	blocks := [...]chunk.Block{chunk.Brick, chunk.Planks}
	for ctx.Err() == nil {
		pacer.wait()
		start := time.Now()
		if start.After(end) {
			break
		}
		e.Seq++
		e.Block = blocks[e.Seq%2]
		if by.key != nil {
			copy(e.Signature[:], ed25519.Sign(by.key, player.EditText(genesis.ID(), e.Seq, e.Pos, uint16(e.Block), "")))
		}
		if err := c.commit(e, answers); err != nil {
			return nil, err
		}
		if done := time.Now(); start.After(begin) && done.Before(end) {
			took = append(took, done.Sub(start))
		}
	}
	return took, ctx.Err()
}
