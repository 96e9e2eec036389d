package backups

import (
	"context"
	"errors"
	"sync"

	"golang.org/x/sync/semaphore"

	"github.com/voxelpopuli/voxeld/region/transport"
)

// This file bounds what other nodes may ask. What is read for them is held in memory until it is sent, and whoever
// receives it may be slow.

const (
	// maxServed bounds the requests that are served at the same time, and maxServedPeer those of one node; the others
	// wait. A node that makes a backup asks for as many.
	maxServed, maxServedPeer = 4, 2
	// maxAsked bounds the requests of one node, with those that wait. The ends of two requests may overlap.
	maxAsked = 8
	// barrierRate and barrierBurst are how many barriers a second a node may have committed, and how many at once.
	// Beyond that its backup may lack signatures.
	barrierRate, barrierBurst = 100, 1000
)

var errTooMany = errors.New("this node asks for too much at the same time")

// requests are those of other nodes.
type requests struct {
	served   *semaphore.Weighted
	barriers *transport.PeerLimits

	mu    sync.Mutex
	peers map[string]*asker // that have asked, and have not been answered
}

// asker is a node that asks.
type asker struct {
	served *semaphore.Weighted
	asked  int // requests, with those that wait
}

func newRequests() *requests {
	return &requests{
		served: semaphore.NewWeighted(maxServed), barriers: transport.NewPeerLimits(barrierRate, barrierBurst), peers: make(map[string]*asker),
	}
}

// enter waits until a request of a node may be served. The caller calls leave after that. The error is errTooMany, or
// that of ctx.
func (r *requests) enter(ctx context.Context, peer string) (leave func(), err error) {
	r.mu.Lock()
	a := r.peers[peer]
	if a == nil {
		a = &asker{served: semaphore.NewWeighted(maxServedPeer)}
		r.peers[peer] = a
	}
	full := a.asked == maxAsked
	if !full {
		a.asked++
	}
	r.mu.Unlock()
	if full {
		return nil, errTooMany
	}
	answered := func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		if a.asked--; a.asked == 0 {
			delete(r.peers, peer)
		}
	}
	if err := a.served.Acquire(ctx, 1); err != nil {
		answered()
		return nil, err
	}
	if err := r.served.Acquire(ctx, 1); err != nil {
		a.served.Release(1)
		answered()
		return nil, err
	}
	return func() {
		r.served.Release(1)
		a.served.Release(1)
		answered()
	}, nil
}
