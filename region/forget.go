package region

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/voxelpopuli/voxeld/internal/background"
	"github.com/voxelpopuli/voxeld/region/directory"
	"github.com/voxelpopuli/voxeld/region/health"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
)

// This file gives up nodes that do not come back, because an operator says so. No rule can know that.

// Cost is what the loss of some nodes costs.
type Cost = health.Cost

// maxNamed bounds the regions that NamesOf lists.
const maxNamed = 8

// NamesOf lists the names of regions for people.
func NamesOf(names []string) string {
	listed := strings.Join(names[:min(len(names), maxNamed)], ", ")
	if more := len(names) - maxNamed; more > 0 {
		listed += fmt.Sprintf(" and %d more", more)
	}
	return listed
}

// forgetTime bounds how long a node is asked to forget another one.
const forgetTime = 2 * time.Second

// errForgets is returned to a node that may not have others forget a node.
var errForgets = errors.New("only issuers may have a node given up")

// Forget has all connected nodes give up a node that does not come back: it leaves the groups of which it is a member
// wherever the others are the majority, however short it has been silent. It returns of how many it is a voter, and the
// nodes that were not reached. It fails if the node is connected, or a group would lose its majority.
func (h *Host) Forget(ctx context.Context, peer string) (regions int, missed []string, err error) {
	if err := h.absent(peer); err != nil {
		return 0, nil, err
	}
	cost, err := h.Examiner.Cost(ctx, func(other string) bool { return other == peer })
	switch {
	case err != nil:
		return 0, nil, err
	case len(cost.Majority) > 0:
		return 0, nil, fmt.Errorf("without %s most members of %s do not answer: start them, or first recover these (voxeld region recover)",
			peer, NamesOf(cost.Majority))
	}
	h.forget(peer)
	connected := h.Peers.Connected()
	var mu sync.Mutex
	var refused error
	background.Several(directory.MaxQuestions, len(connected), func(i int) {
		ctx, cancel := context.WithTimeout(ctx, forgetTime)
		defer cancel()
		answer, err := h.questions.Ask(ctx, connected[i], nodemsg.Question{Forget: &nodemsg.Forget{Peer: peer}})
		mu.Lock()
		defer mu.Unlock()
		switch {
		case err == nil:
		case answer.Error != "":
			refused = errors.Join(refused, fmt.Errorf("%s: %s", connected[i], answer.Error))
		default:
			missed = append(missed, connected[i])
		}
	})
	return cost.Regions, missed, refused
}

// absent returns an error if a node is this one, or connected to it.
func (h *Host) absent(peer string) error {
	if peer == h.Self.Peer || slices.Contains(h.Peers.Connected(), peer) {
		return fmt.Errorf("%s is connected: stop it first, or exclude it with voxeld peers revoke", peer)
	}
	return nil
}

// forget has this node give up another one.
func (h *Host) forget(peer string) {
	h.detector.MarkForgotten(peer)
	if h.Forgotten != nil {
		h.Forgotten(peer)
	}
	h.Logger.Info("node given up on an operator's command", "peer", peer)
}

// forgetFor is forget for another node, which must be an issuer.
func (h *Host) forgetFor(asker, peer string) error {
	if h.Issuer != nil && !h.Issuer(asker) {
		return errForgets
	}
	if err := h.absent(peer); err != nil {
		return err
	}
	h.forget(peer)
	return nil
}
