package region

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/wire"
)

const (
	// answerTime is how long a node that lives takes at most to answer to a hello.
	answerTime = time.Second
	// seatTime is how long it takes at most to say whether there is a seat; loading and lobbyTime are in it.
	seatTime = lobbyTime + 2*time.Second
	// followRounds is how often all members of a region are tried while some of them live, and followPause
	// the time between the rounds: together longer than an election takes.
	followRounds = 8
	followPause  = 250 * time.Millisecond
	// readingRound is the first round in which a member whose disk refuses writes may show the land, also before that
	// if lobbyTime is over: until then those whose disks do not have had the time to elect one of them.
	readingRound = 6
	// suspicion is how long a node that did not answer is tried after the others.
	suspicion = 5 * time.Second
)

// Follow links the caller with the region that covers the chunk, wherever it is led; it is founded
// first if need be. The node that is believed to lead is tried first, then whom the tried ones name, then
// the other members. If none of them has a seat the route is forgotten: the next Follow asks the catalog.
func (h *Host) Follow(ctx context.Context, pos grid.ChunkPos) (Link, wire.Region, error) {
	info, err := h.Directory.Locate(ctx, pos)
	if err != nil {
		return nil, wire.Region{}, err
	}
	var failed error
	began := time.Now()
	for round := range followRounds {
		reading := round >= readingRound || time.Since(began) >= lobbyTime
		link, leader, again, err := h.followRound(ctx, info, reading)
		if err == nil {
			if leader != info.Leader {
				h.Directory.moved(info, leader)
				info.Leader = leader
			}
			return guided{Link: link, host: h, info: info}, info, nil
		}
		failed = err
		if !again || ctx.Err() != nil {
			break
		}
		select {
		case <-ctx.Done():
		case <-time.After(followPause):
		}
	}
	if ctx.Err() == nil {
		h.Directory.doubt(info)
	}
	return nil, info, fmt.Errorf("follow %v: %w", info.Cell, failed)
}

// followRound tries all members once, and those whom they name. Again tells whether another round may
// help: one of them lives and does not say that the region is nothing of its business.
func (h *Host) followRound(ctx context.Context, info wire.Region, reading bool) (link Link, leader string, again bool, err error) {
	hello := wire.Hello{Region: info.ID, Cell: info.Cell, Reading: reading}
	tried := make(map[string]bool)
	var failures []error
	for next := h.suspects.first(info, tried); next != ""; {
		tried[next] = true
		link, hint, err := h.seatAt(ctx, next, hello)
		if err == nil {
			h.suspects.clear(next)
			return link, next, false, nil
		}
		failures = append(failures, fmt.Errorf("on %s: %w", next, err))
		if ctx.Err() != nil {
			break
		}
		var no refusedSeat
		if errors.As(err, &no) {
			again = again || no.leader != "" || no.wait
		} else if !errors.Is(err, ErrNotHere) && next != h.Self.Peer {
			h.suspects.add(next)
		}
		if next = hint; hint == "" || tried[hint] {
			next = h.suspects.first(info, tried)
		}
	}
	return nil, "", again, errors.Join(failures...)
}

// refusedSeat is the answer of a node that has no seat.
type refusedSeat struct {
	why    string
	leader string // who has one; empty if it does not know
	wait   bool   // it is a member
}

func (r refusedSeat) Error() string { return r.why }

// seatAt takes a seat on a node, if it has one. If not, hint is the node that has, as far as it knows.
func (h *Host) seatAt(ctx context.Context, peer string, hello wire.Hello) (link Link, hint string, err error) {
	ctx, cancel := context.WithTimeout(ctx, seatTime)
	defer cancel()
	if peer == h.Self.Peer {
		local, err := h.sit(ctx, hello)
		if err != nil {
			return nil, "", err
		}
		link = local
	} else {
		remote, err := h.connect(ctx, peer, hello)
		if err != nil {
			return nil, "", err
		}
		link = remote
	}
	first, err := link.Receive(ctx)
	if err == nil && first.Closed == "" {
		return link, "", nil
	}
	link.Close() //nolint:errcheck // it is of no use
	if err != nil {
		return nil, "", err
	}
	return nil, first.Leader, refusedSeat{why: first.Closed, leader: first.Leader, wait: first.Tick > 0}
}

// connect opens a link to another node, which answers that it lives, at least.
func (h *Host) connect(ctx context.Context, peer string, hello wire.Hello) (*remoteLink, error) {
	early, cancel := context.WithTimeout(ctx, answerTime)
	defer cancel()
	stream, err := h.Peers.Open(early, peer, LinkProtocol)
	if err != nil {
		return nil, err
	}
	link := newRemoteLink(stream)
	stop := context.AfterFunc(early, link.abort)
	defer stop()
	if err := link.write(hello); err != nil {
		link.abort()
		return nil, err
	}
	if err := link.greeting(); err != nil {
		link.abort()
		return nil, err
	}
	return link, nil
}

// suspects are the nodes that did not answer lately. Any goroutine may use it.
type suspects struct {
	mu struct {
		sync.Mutex
		since map[string]time.Time
	}
}

func (s *suspects) add(peer string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.mu.since == nil {
		s.mu.since = make(map[string]time.Time)
	}
	for old, since := range s.mu.since {
		if time.Since(since) > suspicion {
			delete(s.mu.since, old)
		}
	}
	s.mu.since[peer] = time.Now()
}

func (s *suspects) clear(peer string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.mu.since, peer)
}

// first is the node to be tried next: the leader, the other members, and whoever of them is suspected
// last. It is empty when all have been tried.
func (s *suspects) first(info wire.Region, tried map[string]bool) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	last := ""
	candidates := append([]wire.Member{{Peer: info.Leader}}, info.Members...)
	for _, m := range candidates {
		if m.Peer == "" || tried[m.Peer] {
			continue
		}
		since, suspected := s.mu.since[m.Peer]
		if !suspected || time.Since(since) > suspicion {
			return m.Peer
		}
		if last == "" {
			last = m.Peer
		}
	}
	return last
}

// has tells whether the node did not answer lately.
func (s *suspects) has(peer string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	since, suspected := s.mu.since[peer]
	return suspected && time.Since(since) <= suspicion
}
