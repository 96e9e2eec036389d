// Package ledger keeps the edits that were acknowledged to bots, outside of all daemons, and compares them with the
// land that a node serves.
//
// Bots call Acked from many goroutines.
package ledger

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/voxelpopuli/voxeld/chunk"
	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/test/testkit/sessionclient"
	"github.com/voxelpopuli/voxeld/wire"
	"github.com/voxelpopuli/voxeld/wire/sessionmsg"
)

// Ledger holds, for each place and player, the acknowledged edit with the highest number. The zero value is empty.
type Ledger struct {
	mu     sync.Mutex
	places map[grid.Pos]map[string]entry
	edits  int
}

type entry struct {
	seq   uint64
	block chunk.Block
}

// Acked enters an edit. It is made for bot.Options.
func (l *Ledger) Acked(player string, seq uint64, pos grid.Pos, b chunk.Block) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.edits++
	if l.places == nil {
		l.places = make(map[grid.Pos]map[string]entry)
	}
	if l.places[pos] == nil {
		l.places[pos] = make(map[string]entry)
	}
	if l.places[pos][player].seq <= seq {
		l.places[pos][player] = entry{seq, b}
	}
}

// Edits returns the number of edits that were entered.
func (l *Ledger) Edits() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.edits
}

// Lost reads the land as a player of the node whose game server is at the address, and returns a line for each place
// where the block is not what one of the players put there last. No bot may build meanwhile. It returns an error if the
// land does not arrive within the limit.
func (l *Ledger) Lost(ctx context.Context, game string, limit time.Duration) (lost []string, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	conn, err := sessionclient.Dial(ctx, game, sessionmsg.Join{Name: "reader", View: wire.MaxView, Encoding: sessionmsg.EncodingJSON})
	if err != nil {
		return nil, fmt.Errorf("read the land: %w", err)
	}
	reader := sessionclient.NewPlayer(conn)
	defer reader.Leave()
	missing := make(map[grid.ChunkPos]bool)
	for pos := range l.places {
		missing[pos.Chunk()] = true
	}
	deadline := time.NewTimer(limit)
	defer deadline.Stop()
	for len(missing) > 0 {
		select {
		case m, open := <-reader.Inbox:
			if !open {
				return nil, fmt.Errorf("read the land: the session ended, %d chunks were missing", len(missing))
			}
			if _, err := reader.Apply(m.FromServer); err != nil {
				return nil, fmt.Errorf("read the land: %w", err)
			}
			if data, ok := m.FromServer.(sessionmsg.ChunkData); ok {
				delete(missing, data.Chunk)
			}
		case <-deadline.C:
			return nil, fmt.Errorf("read the land: %d chunks did not arrive within %v", len(missing), limit)
		}
	}
	for pos, entries := range l.places {
		stands, _ := reader.Block(pos)
		if !slices.ContainsFunc(slices.Collect(maps.Values(entries)), func(e entry) bool { return e.block == stands }) {
			lost = append(lost, fmt.Sprintf("%v stands at %v, acknowledged were %v", stands.Name(), pos, entries))
		}
	}
	return lost, nil
}
