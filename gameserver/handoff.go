package gameserver

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/voxelpopuli/voxeld/wire"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
)

// This file implements how a gateway that shuts down finds other gateways for its players.

// ShelterProtocol is the protocol id of the query between gateways of a world; AnswerShelter answers it.
const ShelterProtocol = "/gateway/1"

const (
	// handoffTimeout bounds the wait for the answers of other gateways.
	handoffTimeout = time.Second
	// handoffPeers is the number of gateways that are queried.
	handoffPeers = 64
)

// Nodes are the other nodes of the world.
type Nodes interface {
	// Connected returns the peer ids of the nodes that this node is connected with.
	Connected() []string
	// Ask sends a query to one of them.
	Ask(ctx context.Context, peer, protocol string, question []byte) ([]byte, error)
}

// AnswerShelter answers another gateway's query whether this one would take its sessions. An error means that the query is
// malformed.
func (g *Gateway) AnswerShelter(_ context.Context, _ string, question []byte) ([]byte, error) {
	if _, err := nodemsg.DecodeHandoffRequest(question); err != nil {
		return nil, err
	}
	return nodemsg.EncodeHandoffOffer(nodemsg.HandoffOffer{
		HTTP: g.HTTP, Game: g.Game, Sessions: uint64(len(g.placedSessions())), Ready: g.Ready() == nil, Draining: g.shuttingDown(),
	})
}

// Room is another gateway that takes sessions of this one.
type Room struct {
	Peer     string `json:"peer"`
	URL      string `json:"url"`      // the URL for players
	Sessions uint64 `json:"sessions"` // that it has, including those redirected there
	home     wire.Gateway
}

// findHandoffTargets queries the connected nodes concurrently which of them would take that many sessions.
func (g *Gateway) findHandoffTargets(ctx context.Context, sessions int) *handoffTargets {
	ctx, cancel := context.WithTimeout(ctx, handoffTimeout)
	defer cancel()
	var found handoffTargets
	question, err := nodemsg.EncodeHandoffRequest(nodemsg.HandoffRequest{Sessions: uint64(sessions)})
	if err != nil {
		panic(err) // every Shelter is valid
	}
	var crew sync.WaitGroup
	peers := g.Nodes.Connected()
	for _, peer := range peers[:min(len(peers), handoffPeers)] {
		crew.Go(func() {
			offer, err := g.askHandoff(ctx, peer, question)
			if err != nil {
				g.Logger.Debug("gateway takes no players", "peer", peer, "error", err)
				return
			}
			found.add(Room{Peer: peer, URL: offer.HTTP, Sessions: offer.Sessions, home: offer.Gateway()})
		})
	}
	crew.Wait()
	return &found
}

var errNoTarget = errors.New("gateway takes no players now")

func (g *Gateway) askHandoff(ctx context.Context, peer string, question []byte) (nodemsg.HandoffOffer, error) {
	reply, err := g.Nodes.Ask(ctx, peer, ShelterProtocol, question)
	if err != nil {
		return nodemsg.HandoffOffer{}, err
	}
	offer, err := nodemsg.DecodeHandoffOffer(reply)
	if err == nil && (offer.Draining || !offer.Ready) {
		err = errNoTarget
	}
	return offer, err
}

// handoffTargets distributes players over other gateways.
type handoffTargets struct {
	mu struct {
		sync.Mutex
		list []Room // by load, the least first; then by peer
	}
}

func (r *handoffTargets) add(target Room) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.mu.list = append(r.mu.list, target)
	r.sort()
}

func (r *handoffTargets) sort() {
	slices.SortFunc(r.mu.list, func(a, b Room) int { return cmp.Or(cmp.Compare(a.Sessions, b.Sessions), cmp.Compare(a.Peer, b.Peer)) })
}

// assign returns the targets for one player, the least loaded first, and counts the player there.
func (r *handoffTargets) assign() []wire.Gateway {
	r.mu.Lock()
	defer r.mu.Unlock()
	homes := make([]wire.Gateway, 0, wire.MaxGateways)
	for _, target := range r.mu.list[:min(len(r.mu.list), wire.MaxGateways)] {
		homes = append(homes, target.home)
	}
	if len(r.mu.list) > 0 {
		r.mu.list[0].Sessions++
		r.sort()
	}
	return homes
}

// snapshot returns a copy of the current list.
func (r *handoffTargets) snapshot() []Room {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.mu.list)
}
