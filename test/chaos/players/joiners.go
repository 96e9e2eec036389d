package players

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/voxelpopuli/voxeld/test/chaos/history"
	"github.com/voxelpopuli/voxeld/wire/sessionmsg"
)

const (
	// joinEvery is how long a joiner waits between two sessions.
	joinEvery = time.Second
	// joinLimit is how long a joiner waits for the whole area.
	joinLimit = 10 * time.Second
)

// Joins is how the sessions of joiners went. Welcomed is called for each welcome; one of the others for each who comes
// back.
type Joins struct {
	Welcomed  func(took time.Duration)
	Whole     func(took time.Duration) // the whole area arrived
	Part      func()                   // a part did not arrive within joinLimit
	Elsewhere func()                   // the node has named others instead of a welcome
	None      func(err error)          // there was no welcome, or the session ended
}

// JoinRepeatedly joins at a gateway again and again until ctx ends, and has the ledger judge the land that is shown.
// Before each, a player joins who was never there, and leaves at once: new players begin beside what was built, from
// where not all of the area is visible.
func JoinRepeatedly(ctx context.Context, g *Gateway, l *history.Ledger, done Joins) {
	for i := 0; ctx.Err() == nil; i++ {
		if g.Serves() {
			s, err := joinAs(ctx, g, fmt.Sprintf("new%d-%d", g.Number, i), done)
			whole, start := false, time.Now()
			if err == nil {
				s.Leave()
				whole, err = joinOnce(ctx, g, l, done)
			}
			switch {
			case ctx.Err() != nil:
				return
			case errors.Is(err, errRedirected):
				done.Elsewhere()
			case err != nil && g.Serves(): // else the node was faulty meanwhile
				done.None(err)
			case err != nil:
			case whole:
				done.Whole(time.Since(start))
			default:
				done.Part()
			}
		}
		select {
		case <-ctx.Done():
		case <-time.After(joinEvery):
		}
	}
}

// joinAs is join, and measures how long it takes.
func joinAs(ctx context.Context, g *Gateway, name string, done Joins) (*session, error) {
	start := time.Now()
	s, err := join(ctx, g, name, readView)
	if err == nil {
		done.Welcomed(time.Since(start))
	}
	return s, err
}

// joinOnce joins, and reports whether the whole area arrived. Players begin at the spawn, from where readView reaches
// all of it.
func joinOnce(ctx context.Context, g *Gateway, l *history.Ledger, done Joins) (whole bool, err error) {
	j := l.BeginJoin(g.Number)
	s, err := joinAs(ctx, g, fmt.Sprintf("joiner%d", g.Number), done)
	if err != nil {
		return false, err
	}
	defer s.Leave()
	defer j.End()
	limit := time.NewTimer(joinLimit)
	defer limit.Stop()
	for len(s.missing()) > 0 {
		select {
		case <-ctx.Done():
			return false, ctx.Err()
		case <-limit.C:
			return false, nil
		case m, open := <-s.Inbox:
			if !open {
				return false, fmt.Errorf("join at node %d: connection closed", g.Number)
			}
			if _, err := s.apply(m.FromServer); err != nil {
				return false, err
			}
			switch m := m.FromServer.(type) {
			case sessionmsg.Failure:
				return false, fmt.Errorf("join at node %d: %s: %s", g.Number, m.Code, m.Message)
			case sessionmsg.Notice:
				if m.Code == sessionmsg.CodeLandUnconfirmed {
					j.Unconfirmed()
				}
			case sessionmsg.ChunkData:
				j.Show(m.Chunk, s.Chunks[m.Chunk])
			}
		}
	}
	return true, nil
}
