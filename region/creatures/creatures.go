// Package creatures is what the creatures of a node's regions need of other regions: it asks whether one may cross a
// border, carries those that have left to where they go, and has creatures born (docs/adr/0122). Any goroutine may call a
// Keeper.
package creatures

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"golang.org/x/time/rate"

	"github.com/voxelpopuli/voxeld/chunk"
	"github.com/voxelpopuli/voxeld/creature"
	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/motion"
	"github.com/voxelpopuli/voxeld/region/actor"
	"github.com/voxelpopuli/voxeld/region/integrity"
	"github.com/voxelpopuli/voxeld/region/transport"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
)

const (
	// aheadTime bounds a question whether a creature may cross a border, and carryTime an attempt to carry some over.
	aheadTime, carryTime = time.Second, 4 * time.Second
	// retryPause is the pause before a region is asked again whose leader is not known.
	retryPause = 100 * time.Millisecond
	// birthPause and birthBurst bound the births that a node may ask for.
	birthPause, birthBurst = time.Second / 5, 300
	// arrivalPause and arrivalBurst bound the creatures that a node may send into regions that others lead.
	arrivalPause, arrivalBurst = time.Second / 200, 4000
)

var (
	errTooOften = fmt.Errorf("a node may have %d creatures born at once, then %d a second", birthBurst, time.Second/birthPause)
	errFlood    = errors.New("too many creatures arrive from that node; send them later")
)

// Keeper does it for one node.
type Keeper struct {
	integrity.Node
	Bases *integrity.Bases

	births, arrivals *transport.PeerLimits
}

// New returns a keeper.
func New(n integrity.Node, bases *integrity.Bases) *Keeper {
	return &Keeper{
		Node: n, Bases: bases, births: transport.NewPeerLimits(rate.Every(birthPause), birthBurst),
		arrivals: transport.NewPeerLimits(rate.Every(arrivalPause), arrivalBurst),
	}
}

// Options are what regions need of the keeper.
func (k *Keeper) Options() actor.CreatureOptions {
	return actor.CreatureOptions{Ground: k.ground, Ahead: k.ahead, Carry: k.carry}
}

// ground finds a chunk's terrain beside the caller.
func (k *Keeper) ground(pos grid.ChunkPos, pinned *[32]byte, found func(*chunk.Chunk, error)) {
	k.Tasks.Start(func(ctx context.Context) { found(k.Bases.Terrain(ctx, pos, pinned)) })
}

// ahead asks whether a creature may cross a border, beside the caller. Land that is not founded is no way.
func (k *Keeper) ahead(one creature.Creature, answer func(motion.Pose, bool, error)) {
	k.Tasks.Start(func(ctx context.Context) {
		ctx, cancel := context.WithTimeout(ctx, aheadTime)
		defer cancel()
		info, err := k.Directory.Find(ctx, one.Pose.Chunk())
		var a nodemsg.CreaturesAnswer
		if err == nil {
			a, err = k.ask(ctx, info, nodemsg.CreaturesRequest{Ahead: &one})
		}
		if a.Pose == nil {
			answer(motion.Pose{}, false, err)
			return
		}
		answer(*a.Pose, true, nil)
	})
}

// carry offers departures to the regions where they go, beside the caller.
func (k *Keeper) carry(all []nodemsg.Departure, accepted func([]nodemsg.Passage)) {
	k.Tasks.Start(func(ctx context.Context) {
		ctx, cancel := context.WithTimeout(ctx, carryTime)
		defer cancel()
		var done []nodemsg.Passage
		for len(all) > 0 && ctx.Err() == nil {
			info, err := k.Directory.Locate(ctx, all[0].Creature.Pose.Chunk())
			if err != nil {
				k.Logger.Debug("region of a creature not found", "error", err)
				all = all[1:]
				continue
			}
			there := slices.Collect(func(yield func(nodemsg.Departure) bool) {
				for _, d := range all {
					if info.Cell.Contains(d.Creature.Pose.Chunk()) && !yield(d) {
						return
					}
				}
			})
			all = slices.DeleteFunc(all, func(d nodemsg.Departure) bool { return info.Cell.Contains(d.Creature.Pose.Chunk()) })
			a, err := k.ask(ctx, info, nodemsg.CreaturesRequest{Arrivals: there})
			if err != nil {
				k.Logger.Debug("creatures not carried over", "cell", info.Cell.String(), "error", err)
				continue
			}
			done = append(done, a.Accepted...)
		}
		accepted(done)
	})
}

// Add has creatures born where their poses are, all in one region, and returns how many were.
func (k *Keeper) Add(ctx context.Context, all []creature.Creature) (born int, err error) {
	return k.count(ctx, all[0].Pose, nodemsg.CreaturesRequest{Births: all})
}

// Remove has those creatures end that are near a place, in its region, and returns how many did.
func (k *Keeper) Remove(ctx context.Context, near nodemsg.Removal) (removed int, err error) {
	return k.count(ctx, near.At, nodemsg.CreaturesRequest{Removal: &near})
}

func (k *Keeper) count(ctx context.Context, at motion.Pose, q nodemsg.CreaturesRequest) (int, error) {
	ctx, cancel := context.WithTimeout(ctx, carryTime)
	defer cancel()
	for {
		info, err := k.Directory.Locate(ctx, at.Chunk())
		if err != nil {
			return 0, err
		}
		a, err := k.ask(ctx, info, q)
		if err == nil || !strings.Contains(err.Error(), actor.ErrNotHere.Error()) { // of other nodes it is only a text
			return a.Count, err
		}
		select { // a leader is being elected, and nothing was proposed
		case <-ctx.Done():
			return 0, err
		case <-time.After(retryPause):
		}
	}
}

// ask asks the leader of a region, or whichever of its members comes to lead it.
func (k *Keeper) ask(ctx context.Context, info nodemsg.Region, q nodemsg.CreaturesRequest) (a nodemsg.CreaturesAnswer, err error) {
	q.Region = info.ID
	err = actor.ErrNotHere
	tried := make(map[string]bool)
	for peer := k.Detector.First(info, tried); peer != "" && err != nil && ctx.Err() == nil; peer = k.Detector.First(info, tried) {
		tried[peer] = true
		if peer == k.Self.Peer {
			a, err = k.here(ctx, q)
		} else {
			a, err = k.askPeer(ctx, peer, q)
		}
	}
	if err != nil && ctx.Err() == nil {
		k.Directory.Invalidate(info) // it may have been split or merged
	}
	return a, err
}

func (k *Keeper) askPeer(ctx context.Context, peer string, q nodemsg.CreaturesRequest) (nodemsg.CreaturesAnswer, error) {
	answer, err := k.Questions.Ask(ctx, peer, nodemsg.Question{Creatures: &q})
	if err == nil && answer.Creatures == nil {
		err = fmt.Errorf("%s: reply does not match the request", peer)
	}
	if err != nil {
		return nodemsg.CreaturesAnswer{}, err
	}
	return *answer.Creatures, nil
}

// Answer answers a question of another node.
func (k *Keeper) Answer(ctx context.Context, peer string, q nodemsg.CreaturesRequest) nodemsg.Answer {
	ctx, cancel := context.WithTimeout(ctx, carryTime)
	defer cancel()
	var a nodemsg.CreaturesAnswer
	var err error
	switch {
	case !allow(k.births, peer, len(q.Births)):
		err = errTooOften
	case !allow(k.arrivals, peer, len(q.Arrivals)):
		err = errFlood
	default:
		a, err = k.here(ctx, q)
	}
	if err != nil {
		return nodemsg.Answer{Error: transport.Clip(err)}
	}
	return nodemsg.Answer{Creatures: &a}
}

func allow(limits *transport.PeerLimits, peer string, n int) bool {
	for range n {
		if !limits.Allow(peer) {
			return false
		}
	}
	return true
}

// here answers a question about a region that this node leads, or comes to lead.
func (k *Keeper) here(ctx context.Context, q nodemsg.CreaturesRequest) (a nodemsg.CreaturesAnswer, err error) {
	if q.Ahead != nil { // a region that is not open is not watched
		l := k.Regions.Loaded(q.Region)
		if l == nil {
			return a, actor.ErrNotHere
		}
		at, can, err := l.Stands(ctx, *q.Ahead)
		if can {
			a.Pose = &at
		}
		return a, err
	}
	l, err := k.Lead(ctx, q.Region)
	switch {
	case err != nil:
	case len(q.Births) > 0:
		a.Count, err = l.AddCreatures(ctx, q.Births)
	case q.Removal != nil:
		a.Count, err = l.RemoveCreatures(ctx, *q.Removal)
	default:
		a.Accepted, err = l.AcceptCreatures(ctx, q.Arrivals)
	}
	return a, err
}
