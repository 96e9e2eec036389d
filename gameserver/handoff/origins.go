package handoff

import (
	"context"
	"slices"
	"sync"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"

	"github.com/voxelpopuli/voxeld/gameserver/weborigin"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
)

const (
	// askEvery is how often connected nodes of which nothing is known are asked for the origins of their pages,
	// askAllEvery how often all are, since one that was started again may have others, and askAgain how soon all are
	// for an origin that is not known.
	askEvery, askAllEvery, askAgain = time.Minute, 5 * time.Minute, 2 * time.Second
	// maxKnown is the number of nodes whose origins are remembered: of those that answered last.
	maxKnown = 256
)

// Origins are the origins of other nodes' pages. A page goes on at this node after its own one was stopped, so what a
// node has answered stays known when it is gone. Any goroutine may use it.
type Origins struct {
	nodes Nodes

	mu struct {
		sync.Mutex                              // held while nodes are asked: whoever waits needs the answers, too
		asked      time.Time                    // when all were, last
		known      *lru.Cache[string, []string] // by peer
	}
}

// NewOrigins returns Origins that know of no node yet.
func NewOrigins(nodes Nodes) *Origins {
	o := &Origins{nodes: nodes}
	known, err := lru.New[string, []string](maxKnown)
	if err != nil {
		panic(err) // the size is positive
	}
	o.mu.known = known
	return o
}

// Run keeps what is known up to date until ctx ends.
func (o *Origins) Run(ctx context.Context) {
	every := time.NewTicker(askEvery)
	defer every.Stop()
	for {
		o.mu.Lock()
		if time.Since(o.mu.asked) < askAllEvery {
			o.ask(ctx, slices.DeleteFunc(o.nodes.Connected(), o.mu.known.Contains))
		} else {
			o.askAll(ctx)
		}
		o.mu.Unlock()
		select {
		case <-ctx.Done():
			return
		case <-every.C:
		}
	}
}

// Known reports whether an origin is that of a node's pages. If none is known to have it, the connected nodes are
// asked, unless they have been just now.
func (o *Origins) Known(ctx context.Context, origin string) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.has(origin) {
		return true
	}
	if time.Since(o.mu.asked) < askAgain {
		return false
	}
	o.askAll(ctx)
	return o.has(origin)
}

func (o *Origins) has(origin string) bool {
	return slices.ContainsFunc(o.mu.known.Values(), func(all []string) bool { return slices.Contains(all, origin) })
}

// askAll asks all connected nodes.
func (o *Origins) askAll(ctx context.Context) {
	o.ask(ctx, o.nodes.Connected())
	o.mu.asked = time.Now()
}

// ask asks nodes, for answerTimeout at most.
func (o *Origins) ask(ctx context.Context, peers []string) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), answerTimeout) // others use the answers, too
	defer cancel()
	question, err := nodemsg.EncodeHandoffRequest(nodemsg.HandoffRequest{})
	if err != nil {
		panic(err) // every request is valid
	}
	var wg sync.WaitGroup
	for _, peer := range peers[:min(len(peers), maxPeers)] {
		wg.Go(func() {
			reply, err := o.nodes.Ask(ctx, peer, Protocol, question)
			if err != nil {
				return // it is not connected any more
			}
			if offer, err := nodemsg.DecodeHandoffOffer(reply); err == nil {
				origin, _ := weborigin.Of(offer.HTTP)
				o.mu.known.Add(peer, append(offer.Origins, origin))
			}
		})
	}
	wg.Wait()
}
