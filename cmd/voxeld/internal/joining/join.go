package joining

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/voxelpopuli/voxeld/dht/admission"
	"github.com/voxelpopuli/voxeld/dht/transport"
	"github.com/voxelpopuli/voxeld/internal/config"
	"github.com/voxelpopuli/voxeld/trust"
	"github.com/voxelpopuli/voxeld/world"
)

const (
	// GenesisProtocol serves the genesis of an open world to new nodes. It has no world prefix, which a new node does
	// not have yet.
	GenesisProtocol = "/voxeld/genesis/1"
	// joinTimeout is how long a new node tries to reach the world that it joins.
	joinTimeout = 30 * time.Second
)

var (
	// ErrOtherWorld reports that the data directory belongs to another world than the one to join.
	ErrOtherWorld = errors.New("the data directory belongs to another world")
	// ErrNotAdmitted reports that the world admits nodes with a token only.
	ErrNotAdmitted = errors.New("this node is not admitted to the world")
)

// Genesis asks the nodes to join for the genesis of their world until one answers. With the secret of a token it also
// obtains a certificate.
func (n *Node) Genesis(ctx context.Context, join config.Bootstrap) (world.Genesis, error) {
	if join.Secret != nil {
		return n.enroll(ctx, join)
	}
	var g world.Genesis
	err := untilJoined(ctx, join.Addrs, func(ctx context.Context, addr string) (err error) {
		g, err = AskGenesis(ctx, n.Host, addr)
		if errors.Is(err, transport.ErrNotServed) {
			return &finalError{fmt.Errorf("%w: %s admits nodes with a token only: voxeld invite prints one there", ErrNotAdmitted, addr)}
		}
		if err != nil {
			return err
		}
		if join.World != "" && g.ID() != join.World {
			return notTheWorld(addr, g, join.World)
		}
		return nil
	})
	return g, err
}

// enroll obtains a certificate and the genesis with the secret of a token.
func (n *Node) enroll(ctx context.Context, join config.Bootstrap) (g world.Genesis, err error) {
	raw, err := hex.DecodeString(join.World)
	if err != nil || len(raw) != len(trust.World{}) {
		return g, fmt.Errorf("the token is for world %s, which is no world id: get a new token", join.World)
	}
	err = untilJoined(ctx, join.Addrs, func(ctx context.Context, addr string) error {
		peer, err := n.Host.Connect(ctx, addr)
		if err != nil {
			return err
		}
		if !slices.Contains(join.Peers, peer) {
			return &finalError{fmt.Errorf("the node at %s is not the one that made the token", addr)}
		}
		err = admission.Enroll(ctx, n.options(trust.World(raw)), peer, *join.Secret, func(genesis []byte, named []trust.Key) ([]trust.Key, error) {
			if g, err = world.DecodeGenesis(genesis); err != nil {
				return nil, err
			}
			if g.ID() != join.World {
				return nil, notTheWorld(addr, g, join.World)
			}
			if known, err := n.roots(g); err != nil || len(known) > 0 {
				return known, err
			}
			return named, admission.Close(n.Storage, named) // the world was open; the node that made the token is believed
		})
		var refused *transport.AnswerError
		if errors.As(err, &refused) {
			return &finalError{fmt.Errorf("%w: %s says: %s", ErrNotAdmitted, addr, refused.Text)}
		}
		return err
	})
	return g, err
}

// finalError is an answer that another attempt to join would not change.
type finalError struct{ error }

func (e *finalError) Unwrap() error { return e.error }

func notTheWorld(addr string, g world.Genesis, want string) error {
	return &finalError{fmt.Errorf("%s is a node of world %s, but the token is for world %s: get a new token", addr, g.ID()[:12], want[:min(12, len(want))])}
}

// untilJoined tries the addresses one after the other, again and again, until one succeeds, or joinTimeout is over.
func untilJoined(ctx context.Context, addrs []string, try func(ctx context.Context, addr string) error) error {
	trying, cancel := context.WithTimeout(ctx, joinTimeout)
	defer cancel()
	for {
		var errs []error
		final := 0
		for _, addr := range addrs {
			err := try(trying, addr)
			if err == nil {
				return nil
			}
			if errors.As(err, new(*finalError)) {
				final++
			}
			errs = append(errs, err)
		}
		if final == len(addrs) {
			return errors.Join(errs...)
		}
		select {
		case <-trying.Done():
			if ctx.Err() != nil {
				return ctx.Err()
			}
			return fmt.Errorf("no node of the world to join answered within %v; check the address, and that a node runs there: %w", joinTimeout, errors.Join(errs...))
		case <-time.After(time.Second):
		}
	}
}

// AskGenesis asks the node of an open world at an address for its genesis.
func AskGenesis(ctx context.Context, host *transport.Host, addr string) (world.Genesis, error) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	peer, err := host.Connect(ctx, addr)
	if err != nil {
		return world.Genesis{}, err
	}
	answer, err := host.Ask(ctx, peer, GenesisProtocol, nil)
	if err != nil {
		return world.Genesis{}, fmt.Errorf("get the genesis from %s: %w", addr, err)
	}
	return world.DecodeGenesis(answer)
}

// RunsWorld reports whether a peer is a node of the world. One that does not answer is taken for one.
func RunsWorld(ctx context.Context, host *transport.Host, peer, id string) bool {
	if answer, err := host.Ask(ctx, peer, GenesisProtocol, nil); err == nil { // of an open world
		g, err := world.DecodeGenesis(answer)
		return err == nil && g.ID() == id
	}
	world, err := admission.World(ctx, host, peer)
	if err != nil {
		return !errors.Is(err, transport.ErrNotServed)
	}
	return hex.EncodeToString(world[:]) == id
}

// Check returns an error if the data directory belongs to another world than the one to join. It ignores nodes
// that it cannot reach: the network may be starting.
func Check(ctx context.Context, host *transport.Host, j config.Bootstrap, own world.Genesis) error {
	if j.World != "" && j.World != own.ID() {
		return fmt.Errorf("%w: it holds %q (%s), but the token is for world %s; choose another --data-dir", ErrOtherWorld, own.Name, own.ID()[:12], j.World[:min(12, len(j.World))])
	}
	for _, addr := range j.Addrs {
		if g, err := AskGenesis(ctx, host, addr); err == nil && g.ID() != own.ID() {
			return fmt.Errorf("%w: it holds %q (%s), but %s is a node of %q (%s); choose another --data-dir", ErrOtherWorld, own.Name, own.ID()[:12], addr, g.Name, g.ID()[:12])
		}
	}
	return nil
}
