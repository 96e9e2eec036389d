package region

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
)

const (
	// answerTime bounds how long a live node takes to answer a hello.
	answerTime = time.Second
	// subscribeTime bounds how long a node takes to accept or refuse a subscriber; loading and pendingTime are included.
	subscribeTime = pendingTime + 2*time.Second
	// followRounds is how often all members of a region are tried while some of them are alive. followPause is the time between
	// two rounds. Together they are longer than an election takes.
	followRounds = 8
	followPause  = 250 * time.Millisecond
	// readOnlyRound is the first round in which a member whose disk refuses writes may show the land; it also may once
	// pendingTime is over. Until then the members with working disks have time to elect a leader.
	readOnlyRound = 6
	// unresponsiveFor is how long a node that did not answer is tried after the others.
	unresponsiveFor = 5 * time.Second
)

// Follow links the caller with the region that covers the chunk, wherever it is led. If the region does not exist, it is founded
// first. Follow first tries the node that is believed to lead, then the leader that the tried nodes name, then the other members.
// If none of them accepts, the route is dropped and the next Follow asks the catalog.
func (h *Host) Follow(ctx context.Context, pos grid.ChunkPos) (Link, nodemsg.Region, error) {
	info, err := h.Directory.Locate(ctx, pos)
	if err != nil {
		return nil, nodemsg.Region{}, err
	}
	var failed error
	began := time.Now()
	for round := range followRounds {
		reading := round >= readOnlyRound || time.Since(began) >= pendingTime
		link, leader, again, err := h.followRound(ctx, info, reading)
		if err == nil {
			if leader != info.Leader {
				h.Directory.moved(info, leader)
				info.Leader = leader
			}
			return routedLink{Link: link, host: h, info: info}, info, nil
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
		h.Directory.invalidate(info)
	}
	return nil, info, fmt.Errorf("follow %v: %w", info.Cell, failed)
}

// followRound tries all members once, and the leaders that they name. Again reports whether another round may help: at least one
// node is alive and has not refused the region altogether.
func (h *Host) followRound(ctx context.Context, info nodemsg.Region, reading bool) (link Link, leader string, again bool, err error) {
	hello := nodemsg.Hello{Region: info.ID, Cell: info.Cell, Reading: reading}
	tried := make(map[string]bool)
	var failures []error
	for next := h.unresponsive.first(info, tried); next != ""; {
		tried[next] = true
		link, hint, err := h.subscribeAt(ctx, next, hello)
		if err == nil {
			h.unresponsive.clear(next)
			return link, next, false, nil
		}
		failures = append(failures, fmt.Errorf("on %s: %w", next, err))
		if ctx.Err() != nil {
			break
		}
		var no refusedSubscription
		if errors.As(err, &no) {
			again = again || no.leader != "" || no.wait
		} else if !errors.Is(err, ErrNotHere) && next != h.Self.Peer {
			h.unresponsive.add(next)
		}
		if next = hint; hint == "" || tried[hint] {
			next = h.unresponsive.first(info, tried)
		}
	}
	return nil, "", again, errors.Join(failures...)
}

// refusedSubscription is the answer of a node that does not accept a subscriber.
type refusedSubscription struct {
	why    string
	leader string // the leader; empty if unknown
	wait   bool   // the node is a member
}

func (r refusedSubscription) Error() string { return r.why }

// subscribeAt subscribes to the region on a node. If the node refuses, hint is the leader that it named, if any.
func (h *Host) subscribeAt(ctx context.Context, peer string, hello nodemsg.Hello) (link Link, hint string, err error) {
	ctx, cancel := context.WithTimeout(ctx, subscribeTime)
	defer cancel()
	if peer == h.Self.Peer {
		local, err := h.subscribe(ctx, hello)
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
	return nil, first.Leader, refusedSubscription{why: first.Closed, leader: first.Leader, wait: first.Tick > 0}
}

// connect opens a link to another node and waits for the node's greeting.
func (h *Host) connect(ctx context.Context, peer string, hello nodemsg.Hello) (*remoteLink, error) {
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

// unresponsiveNodes is the set of nodes that did not answer lately. Any goroutine may use it.
type unresponsiveNodes struct {
	mu struct {
		sync.Mutex
		since map[string]time.Time
	}
}

func (s *unresponsiveNodes) add(peer string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.mu.since == nil {
		s.mu.since = make(map[string]time.Time)
	}
	for old, since := range s.mu.since {
		if time.Since(since) > unresponsiveFor {
			delete(s.mu.since, old)
		}
	}
	s.mu.since[peer] = time.Now()
}

func (s *unresponsiveNodes) clear(peer string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.mu.since, peer)
}

// first returns the node to try next: the leader, then the other members, and last the ones that did not answer lately. It
// returns "" when all have been tried.
func (s *unresponsiveNodes) first(info nodemsg.Region, tried map[string]bool) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	last := ""
	candidates := append([]nodemsg.Member{{Peer: info.Leader}}, info.Members...)
	for _, m := range candidates {
		if m.Peer == "" || tried[m.Peer] {
			continue
		}
		since, suspected := s.mu.since[m.Peer]
		if !suspected || time.Since(since) > unresponsiveFor {
			return m.Peer
		}
		if last == "" {
			last = m.Peer
		}
	}
	return last
}

// has reports whether the node did not answer lately.
func (s *unresponsiveNodes) has(peer string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	since, suspected := s.mu.since[peer]
	return suspected && time.Since(since) <= unresponsiveFor
}
