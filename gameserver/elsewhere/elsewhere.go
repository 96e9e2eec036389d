// Package elsewhere asks the other gateways of a world about the players there: their names, where one of them is, and
// to show one or all of them a line. It answers the same questions of others. Each gateway asks those that it is
// connected with, and believes their answers, but for who plays under a registered name.
//
// Any goroutine may use it.
package elsewhere

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/voxelpopuli/voxeld/player"
	"github.com/voxelpopuli/voxeld/region/transport"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
	"github.com/voxelpopuli/voxeld/wire/notice"
)

// Protocol is the protocol id of the questions between gateways.
const Protocol = "/players/1"

const (
	// answerTime bounds the wait for the answers of other gateways.
	answerTime = time.Second
	// maxPeers is the number of gateways that are asked.
	maxPeers = 64
	// questionRate and questionBurst are how many questions a second another gateway may ask, and how many at once.
	questionRate, questionBurst = 50, 200
	// lineRate and lineBurst are how many lines for all players another gateway may send a second, and at once: more
	// than its own players may (gameserver/world_chat.go).
	lineRate, lineBurst = 10, 2 * nodemsg.MaxWorldLines
)

// Nodes are the other nodes of the world.
type Nodes interface {
	// Connected returns the peer ids of the nodes that this node is connected with.
	Connected() []string
	// Ask sends a question to one of them.
	Ask(ctx context.Context, peer, protocol string, question []byte) ([]byte, error)
}

// Here is the gateway of this node.
type Here interface {
	// PlayerNames returns the names of the players here, in any order.
	PlayerNames() []string
	// FindPlayer returns the player here whom others see under the name, in any case.
	FindPlayer(name string) (nodemsg.FoundPlayer, bool)
	// ShowLine shows a private line to its player, and reports whether they are here and may be shown it.
	ShowLine(nodemsg.PrivateLine) bool
	// ShowWorldLine shows a line to all players here, if its author may write and the name is theirs.
	ShowWorldLine(nodemsg.WorldLine)
	// OwnerOf returns the player to whom a name is registered, in any case.
	OwnerOf(name string) (player.ID, bool)
}

// Players asks about players elsewhere, and answers about those here.
type Players struct {
	nodes  Nodes
	here   Here
	run    func(task func(context.Context)) bool
	limits *transport.PeerLimits
	lines  *transport.PeerLimits
	queued *queued
}

// New returns Players. Run runs a task in a goroutine of its own until the gateway stops.
func New(nodes Nodes, here Here, run func(task func(context.Context)) bool, r prometheus.Registerer) *Players {
	return &Players{
		nodes: nodes, here: here, run: run, queued: newQueued(r),
		limits: transport.NewPeerLimits(questionRate, questionBurst), lines: transport.NewPeerLimits(lineRate, lineBurst),
	}
}

// found is an answer, and who gave it.
type found struct {
	peer string
	nodemsg.PlayersAnswer
}

// ask returns the answers of all connected gateways that answer in time, in the order of their ids.
func (p *Players) ask(ctx context.Context, r nodemsg.PlayersRequest) (all []found) {
	ctx, cancel := context.WithTimeout(ctx, answerTime)
	defer cancel()
	peers := p.nodes.Connected()
	var wg sync.WaitGroup
	var lock sync.Mutex
	for _, peer := range peers[:min(len(peers), maxPeers)] {
		wg.Go(func() {
			if a, err := p.askOne(ctx, peer, r); err == nil {
				lock.Lock()
				defer lock.Unlock()
				all = append(all, found{peer, a})
			}
		})
	}
	wg.Wait()
	slices.SortFunc(all, func(a, b found) int { return cmp.Compare(a.peer, b.peer) })
	return all
}

func (p *Players) askOne(ctx context.Context, peer string, r nodemsg.PlayersRequest) (nodemsg.PlayersAnswer, error) {
	question, err := nodemsg.EncodePlayersRequest(r)
	if err != nil {
		return nodemsg.PlayersAnswer{}, err
	}
	reply, err := p.nodes.Ask(ctx, peer, Protocol, question)
	if err != nil {
		return nodemsg.PlayersAnswer{}, err
	}
	return nodemsg.DecodePlayersAnswer(reply)
}

// List returns the names of players on other nodes, in order, and how many there are.
func (p *Players) List(ctx context.Context) (names []string, players uint64) {
	for _, a := range p.ask(ctx, nodemsg.PlayersRequest{List: &nodemsg.ListPlayers{}}) {
		names = append(names, a.Names...)
		players += a.Players
	}
	slices.Sort(names)
	return names, players
}

// Find returns the player on another node whom others see under the name, in any case. The error says why none is
// found.
func (p *Players) Find(ctx context.Context, name string) (nodemsg.FoundPlayer, error) {
	_, it, err := p.find(ctx, name)
	return it, err
}

// Known reports whether a name is registered, and whether somebody is playing under it, here or on another node that
// answers.
func (p *Players) Known(ctx context.Context, name string) (registered, playing bool) {
	_, registered = p.here.OwnerOf(name)
	if _, playing = p.here.FindPlayer(name); playing {
		return registered, true
	}
	return registered, slices.ContainsFunc(p.ask(ctx, nodemsg.PlayersRequest{Find: &nodemsg.FindPlayer{Name: name}}), func(a found) bool {
		return a.Found != nil && strings.EqualFold(a.Found.Name, name)
	})
}

// find returns also the node. Of a registered name it believes only answers with its owner, and of no name answers of
// several nodes: one of them lies, or the player has just moved.
func (p *Players) find(ctx context.Context, name string) (peer string, it nodemsg.FoundPlayer, err error) {
	owner, registered := p.here.OwnerOf(name)
	for _, a := range p.ask(ctx, nodemsg.PlayersRequest{Find: &nodemsg.FindPlayer{Name: name}}) {
		switch {
		case a.Found == nil || !strings.EqualFold(a.Found.Name, name) || registered && a.Found.Player != owner:
		case peer != "":
			return "", nodemsg.FoundPlayer{}, notice.New("on_several_nodes", "several nodes say that {name} is playing there: try again in a moment", name)
		default:
			peer, it = a.peer, *a.Found
		}
	}
	if peer == "" {
		return "", it, notice.New("not_playing", "nobody called {name} is playing here, or on the nodes that this node can ask ({most} at most)", name, maxPeers)
	}
	return peer, it, nil
}

// Show shows a line to the player on another node whom others see under the name. Only that node is sent the line. It
// returns the name as the player writes it, and whether they were shown the line; the error says why nobody is found.
func (p *Players) Show(ctx context.Context, name string, line nodemsg.PrivateLine) (as string, shown bool, err error) {
	peer, it, err := p.find(ctx, name)
	if err != nil {
		return "", false, err
	}
	line.To = it.Player
	return it.Name, p.ShowAt(ctx, peer, line), nil
}

// ShowAt shows a line to a player on another node, which is known, and reports whether they were shown it.
func (p *Players) ShowAt(ctx context.Context, peer string, line nodemsg.PrivateLine) bool {
	ctx, cancel := context.WithTimeout(ctx, answerTime)
	defer cancel()
	a, err := p.askOne(ctx, peer, nodemsg.PlayersRequest{Show: &line})
	return err == nil && a.Shown
}

// errBusy is returned to a gateway that asks too much.
var errBusy = errors.New("too many questions")

// Answer answers a question of another gateway. An error means that it gets no answer.
func (p *Players) Answer(_ context.Context, peer string, question []byte) ([]byte, error) {
	if !p.limits.Allow(peer) {
		return nil, errBusy
	}
	r, err := nodemsg.DecodePlayersRequest(question)
	if err != nil {
		return nil, err
	}
	var a nodemsg.PlayersAnswer
	switch {
	case r.List != nil:
		a.Names = p.here.PlayerNames()
		a.Players = uint64(len(a.Names))
		a.Names = a.Names[:min(len(a.Names), nodemsg.MaxListed)]
	case r.Find != nil:
		if it, ok := p.here.FindPlayer(r.Find.Name); ok {
			a.Found = &it
		}
	case r.Show != nil:
		a.Shown = p.here.ShowLine(*r.Show)
	case r.Say != nil:
		if !p.lines.AllowN(peer, len(r.Say.Lines)) {
			return nil, errBusy // the other gateway sends them again
		}
		for _, line := range r.Say.Lines {
			if line.Valid() == nil {
				p.here.ShowWorldLine(line)
			}
		}
	}
	return nodemsg.EncodePlayersAnswer(a)
}
