package integrity

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"sync"
	"time"

	"github.com/voxelpopuli/voxeld/wire/nodemsg"
)

// IncarnationsProtocol names the streams on which nodes show each other their lineages, without the world's prefix.
const IncarnationsProtocol = "/incarnation/1"

const (
	// raiseEvery is how often a node counts that it has promised something. A snapshot of the disk of a running node is
	// noticed if the node ran on for that long.
	raiseEvery = 10 * time.Second
	// exchangeTime bounds one exchange.
	exchangeTime = 10 * time.Second
	// greetTime bounds how long a starting node waits for the nodes that it knows.
	greetTime = 4 * time.Second
	// maxRounds is how often two nodes show each other their lineages in one exchange: at most twice more if both are
	// refused.
	maxRounds = 4
	// maxExchanges is how many peers are asked at the same time.
	maxExchanges = 16
)

// ErrRefused means that one of two nodes shows an earlier state than the other one remembers.
var ErrRefused = errors.New("its data, or this node's, was put back to an earlier state")

// errAbandoned means that the peer has just abandoned its replicas.
var errAbandoned = errors.New("its data was put back to an earlier state: what it has sent until now does not count")

// Answer answers another node's question of Protocol.
func (k *Incarnations) Answer(ctx context.Context, peer string, question []byte) ([]byte, error) {
	shown, err := nodemsg.DecodeLineage(question)
	if err != nil {
		return nil, fmt.Errorf("lineage of %s: %w", peer, err)
	}
	answer, err := k.Receive(ctx, peer, shown)
	if err != nil {
		return nil, err
	}
	return nodemsg.EncodeLineage(answer)
}

// Exchange shows this node's lineage to a peer and judges the peer's. It returns nil if each accepts the other. If this
// node is refused, its replicas are abandoned, and it shows its lineage again. If the peer was, Exchange returns an
// error: the replicas that it has abandoned may have sent something before.
func (k *Incarnations) Exchange(ctx context.Context, peer string) error {
	ctx, cancel := context.WithTimeout(ctx, exchangeTime)
	defer cancel()
	question, refused := k.Show(), false
	for range maxRounds {
		shown := question.Running().Incarnation
		text, err := nodemsg.EncodeLineage(question)
		if err != nil {
			return err
		}
		reply, err := k.Ask(ctx, peer, text)
		if err != nil {
			return err
		}
		answer, err := nodemsg.DecodeLineage(reply)
		if err != nil {
			return fmt.Errorf("lineage of %s: %w", peer, err)
		}
		if question, err = k.Receive(ctx, peer, answer); err != nil {
			return err
		}
		if answer.Remembered == nil && question.Remembered == nil {
			k.accepted(peer, shown)
			if refused {
				return fmt.Errorf("%s: %w", peer, errAbandoned)
			}
			return nil
		}
		refused = refused || question.Remembered != nil
	}
	k.Logger.Warn("a node shows an earlier state of its data than before: an old copy was put back, or two copies of it run; "+
		"its replicas do not count here", "peer", peer)
	return fmt.Errorf("%s: %w", peer, ErrRefused)
}

// accepted records that a peer remembers what this node has shown to it.
func (k *Incarnations) accepted(peer string, shown nodemsg.Incarnation) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.mu.shown[peer] = shown
}

// Greet exchanges lineages with the nodes that this one knows, before it takes part in anything. It waits for greetTime
// at most.
func (k *Incarnations) Greet(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, greetTime)
	defer cancel()
	k.mu.Lock()
	known := maps.Clone(k.mu.groupPeers)
	for peer := range k.mu.seen {
		known[peer] = struct{}{}
	}
	k.mu.Unlock()
	slots := make(chan struct{}, maxExchanges)
	var all sync.WaitGroup
	defer all.Wait()
	for peer := range known {
		select {
		case slots <- struct{}{}:
		case <-ctx.Done():
			return
		}
		all.Go(func() {
			defer func() { <-slots }()
			k.tryExchange(ctx, peer)
		})
	}
}

func (k *Incarnations) tryExchange(ctx context.Context, peer string) {
	if err := k.Exchange(ctx, peer); err != nil {
		k.Logger.Debug("lineages not exchanged", "peer", peer, "error", err)
	}
}

// Run counts what the node promises, and announces that to the other members of its groups, until ctx ends.
func (k *Incarnations) Run(ctx context.Context) error {
	every := time.NewTicker(raiseEvery)
	defer every.Stop()
	var all sync.WaitGroup
	defer all.Wait()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-every.C:
		}
		if _, err := k.Count(); err != nil {
			k.Logger.Warn("promises not counted", "error", err)
		}
		for _, peer := range k.uninformed() {
			all.Go(func() {
				k.tryExchange(ctx, peer)
				k.mu.Lock()
				defer k.mu.Unlock()
				delete(k.mu.asking, peer)
			})
		}
	}
}

// uninformed returns nodes that do not remember the newest incarnation of this one, and are to be asked now: members of
// groups together with this one, also those that have never sent it a raft message. It must not depend on who leads, or
// who was elected last, whether a member can notice that this node was put back.
func (k *Incarnations) uninformed() (peers []string) {
	open := k.OpenGroupPeers()
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, peer := range open {
		k.mu.groupPeers[peer] = struct{}{}
	}
	running := k.mu.own.running()
	for peer := range k.mu.groupPeers {
		if _, asking := k.mu.asking[peer]; !asking && k.mu.shown[peer] != running && len(k.mu.asking) < maxExchanges {
			k.mu.asking[peer] = struct{}{}
			peers = append(peers, peer)
		}
	}
	return peers
}

// Count raises the count of the incarnation that runs, durably, if the node has promised something since the last time.
// It reports whether that was so. An idle node writes nothing.
func (k *Incarnations) Count() (counted bool, err error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	promised := k.Promised()
	if promised == k.mu.counted {
		return false, nil
	}
	if err := k.storePromised(k.mu.own.raise()); err != nil {
		return false, err
	}
	k.mu.counted = promised
	return true, nil
}
