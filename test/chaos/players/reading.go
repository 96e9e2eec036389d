package players

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/test/chaos/history"
	"github.com/voxelpopuli/voxeld/wire/sessionmsg"
)

// readView is the view distance, in chunks, at which the whole area is visible from its middle.
const readView = High/grid.ChunkSize + 1

// ReadLimit is the time limit for readers to see everything.
const ReadLimit = 60 * time.Second

// ReadAll opens a new session at each running gateway, flies to the middle, and returns the area as each gateway
// shows it. The cluster must be healthy.
func ReadAll(ctx context.Context, nodes []*Gateway, l *history.Ledger, limit time.Duration) ([]history.Reading, error) {
	var mu sync.Mutex
	var all []history.Reading
	var errs []error
	var wg sync.WaitGroup
	for _, n := range nodes {
		if !n.Serves() {
			continue
		}
		wg.Go(func() {
			r, err := readOne(ctx, n, l, limit)
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				errs = append(errs, err)
				return
			}
			all = append(all, r)
		})
	}
	wg.Wait()
	if len(errs) > 0 {
		return all, errs[0]
	}
	return all, nil
}

func readOne(ctx context.Context, n *Gateway, l *history.Ledger, limit time.Duration) (history.Reading, error) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	r := history.Reading{Node: n.Number, From: l.Now()}
	s, err := join(ctx, n, fmt.Sprintf("reader%d", n.Number), readView)
	if err != nil {
		return r, err
	}
	defer s.Leave()
	ticks := time.NewTicker(tickInterval)
	defer ticks.Stop()
	arrived := false
	for !arrived || len(s.missing()) > 0 {
		select {
		case <-ctx.Done():
			return r, fmt.Errorf("read at node %d: from %v, chunks %v did not arrive within %v",
				n.Number, s.Pose, s.missing(), limit)
		case m, open := <-s.Inbox:
			if !open {
				return r, fmt.Errorf("read at node %d: connection closed", n.Number)
			}
			if f, failed := m.FromServer.(sessionmsg.Failure); failed {
				return r, fmt.Errorf("read at node %d: %s: %s", n.Number, f.Code, f.Message)
			}
			if _, err := s.apply(m.FromServer); err != nil {
				return r, err
			}
		case <-ticks.C:
			if arrived, err = s.fly(.5, .5); err != nil { // also back there, after a correction
				return r, err
			}
		}
	}
	r.To = l.Now()
	r.Block = s.Block
	return r, nil
}

// missing returns the chunks of the area that have not arrived.
func (s *session) missing() []grid.ChunkPos {
	var chunks []grid.ChunkPos
	for x := int32(Low); x < High+grid.ChunkSize; x += grid.ChunkSize {
		for z := int32(Low); z < High+grid.ChunkSize; z += grid.ChunkSize {
			at := grid.Pos{X: min(x, High-1), Z: min(z, High-1)}.Chunk()
			if s.Chunks[at] == nil && !slices.Contains(chunks, at) {
				chunks = append(chunks, at)
			}
		}
	}
	return chunks
}
