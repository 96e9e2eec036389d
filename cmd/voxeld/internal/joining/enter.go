package joining

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"

	"github.com/voxelpopuli/voxeld/dht/admission"
	"github.com/voxelpopuli/voxeld/internal/config"
	"github.com/voxelpopuli/voxeld/world"
)

// Enter has only nodes with a certificate talk to this one from now on. The gate is nil if the world is open: anybody
// may then.
func (n *Node) Enter(ctx context.Context, g world.Genesis, join config.Bootstrap) (*admission.Gate, error) {
	roots, err := n.roots(g)
	if err != nil {
		return nil, err
	}
	if len(roots) == 0 && join.Secret != nil { // the world was closed since
		if _, err := n.enroll(ctx, join); err != nil {
			return nil, err
		}
		if roots, err = n.roots(g); err != nil {
			return nil, err
		}
	}
	if len(roots) == 0 {
		n.Host.HandleAsk(GenesisProtocol, func(context.Context, string, []byte) ([]byte, error) { return g.Encode(), nil })
		return nil, nil
	}
	o := n.options(worldID(g))
	o.Roots, o.WasOpen, o.Genesis = roots, g.Open(), g.Encode()
	gate, err := admission.Open(o)
	if err != nil {
		return nil, err
	}
	if err := finishReplacement(n.DataDir, gate); err != nil {
		return nil, err
	}
	root, err := n.rootKey()
	switch {
	case err == nil:
		if !slices.Contains(gate.Charter().Roots, root.Key()) {
			return nil, fmt.Errorf("%s is not the root key of world %q, or not any more: move it away, and keep it; if %s beside it is the root key, rename that to %s",
				filepath.Join(n.DataDir, RootKeyFile), g.Name, formerRootKeyFile, RootKeyFile)
		}
		if err := gate.Appoint(founder, root); err != nil {
			return nil, err
		}
	case !errors.Is(err, fs.ErrNotExist):
		return nil, err
	case !gate.Founded(): // a new world, or a restored one
		return nil, fmt.Errorf("%w; the first node of a world needs it: copy it from where it was put, or found another world with voxeld restore --fork", err)
	}
	if appointed := err == nil; !appointed || join.Secret != nil {
		if err := n.certify(ctx, gate, join); err != nil {
			return nil, err
		}
	}
	n.Host.HandleAsk(admission.Protocol, gate.Answer)
	n.Host.SetGate(gate)
	return gate, nil
}

// certify uses a token that is new to this node. The node needs one if it has no valid certificate, nor one that is
// valid but for its date: that is renewed once an issuer is found.
func (n *Node) certify(ctx context.Context, gate *admission.Gate, join config.Bootstrap) error {
	own, without := gate.Own()
	switch {
	case join.Secret == nil && gate.Renewable():
		n.Logger.Warn("the certificate of this node is not valid now: it asks an issuer to renew it", "error", without)
		return nil
	case join.Secret == nil && without != nil:
		return fmt.Errorf("%w: %w: start it with --join and a token that voxeld invite prints on another node", ErrNotAdmitted, without)
	case join.Secret == nil, without == nil && own.Token == join.Secret.ID():
		return nil
	}
	_, err := n.enroll(ctx, join)
	if err == nil {
		return gate.Reload()
	}
	if without == nil {
		n.Logger.Warn("token not used: this node keeps its certificate", "error", err)
		return nil
	}
	return err
}
