// Package handoff finds other gateways for the players of a gateway that shuts down: it queries the connected nodes
// whether they take players, and distributes players over those that do. Its types may be used by any goroutine.
package handoff

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/voxelpopuli/voxeld/wire"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
)

// Protocol is the protocol id of the query between gateways of a world.
const Protocol = "/gateway/1"

const (
	// answerTimeout bounds the wait for the answers of other gateways, and firstTimeout the wait for the first that
	// takes players.
	answerTimeout, firstTimeout = time.Second, 3 * time.Second
	// maxPeers is the number of gateways that are queried.
	maxPeers = 64
)

// Nodes are the other nodes of the world.
type Nodes interface {
	// Connected returns the peer ids of the nodes that this node is connected with.
	Connected() []string
	// Ask sends a query to one of them.
	Ask(ctx context.Context, peer, protocol string, question []byte) ([]byte, error)
}

// Target is another gateway that takes sessions of this one.
type Target struct {
	Peer     string `json:"peer"`
	URL      string `json:"url"`      // the URL for players
	Sessions uint64 `json:"sessions"` // that it has, including those redirected there
	offer    nodemsg.HandoffOffer
}

// Find queries the connected nodes concurrently which of them would take that many sessions. It returns within
// answerTimeout if one of them would, else when the first has said so, or after firstTimeout.
func Find(ctx context.Context, nodes Nodes, sessions int, log *slog.Logger) *Targets {
	ctx, cancel := context.WithTimeout(ctx, firstTimeout)
	defer cancel()
	var found Targets
	begun := time.Now()
	enough := time.AfterFunc(answerTimeout, func() {
		if len(found.Snapshot()) > 0 {
			cancel()
		}
	})
	defer enough.Stop()
	question, err := nodemsg.EncodeHandoffRequest(nodemsg.HandoffRequest{Sessions: uint64(sessions)})
	if err != nil {
		panic(err) // every request is valid
	}
	var wg sync.WaitGroup
	peers := nodes.Connected()
	for _, peer := range peers[:min(len(peers), maxPeers)] {
		wg.Go(func() {
			offer, err := ask(ctx, nodes, peer, question)
			if err != nil {
				log.Debug("gateway accepts no players", "peer", peer, "error", err)
				return
			}
			found.add(Target{Peer: peer, URL: offer.HTTP, Sessions: offer.Sessions, offer: offer})
			if time.Since(begun) >= answerTimeout {
				cancel()
			}
		})
	}
	wg.Wait()
	return &found
}

var errNoTarget = errors.New("gateway takes no players now")

func ask(ctx context.Context, nodes Nodes, peer string, question []byte) (nodemsg.HandoffOffer, error) {
	reply, err := nodes.Ask(ctx, peer, Protocol, question)
	if err != nil {
		return nodemsg.HandoffOffer{}, err
	}
	offer, err := nodemsg.DecodeHandoffOffer(reply)
	if err == nil && (offer.Draining || !offer.Ready) {
		err = errNoTarget
	}
	return offer, err
}

// Targets distributes players over other gateways.
type Targets struct {
	mu struct {
		sync.Mutex
		list []Target // by load, the least first; then by peer
	}
}

func (t *Targets) add(target Target) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.mu.list = append(t.mu.list, target)
	t.sort()
}

func (t *Targets) sort() {
	slices.SortFunc(t.mu.list, func(a, b Target) int { return cmp.Or(cmp.Compare(a.Sessions, b.Sessions), cmp.Compare(a.Peer, b.Peer)) })
}

// Assign returns the targets for one player, the least loaded first, and counts the player there. For the client of
// another game they are those that serve the game.
func (t *Targets) Assign(game string) []wire.Gateway {
	t.mu.Lock()
	defer t.mu.Unlock()
	addresses, first := make([]wire.Gateway, 0, wire.MaxGateways), 0
	for i, target := range t.mu.list {
		address, served := target.offer.Gateway(game)
		if !served || len(addresses) == wire.MaxGateways {
			continue
		}
		if len(addresses) == 0 {
			first = i
		}
		addresses = append(addresses, address)
	}
	if len(addresses) > 0 {
		t.mu.list[first].Sessions++
		t.sort()
	}
	return addresses
}

// Snapshot returns a copy of the current list.
func (t *Targets) Snapshot() []Target {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Clone(t.mu.list)
}
