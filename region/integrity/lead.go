package integrity

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/voxelpopuli/voxeld/region/actor"
)

const (
	// leadTime bounds how long a node waits until it leads a region, and leadEvery is the pause between two attempts.
	leadTime  = 3 * time.Second
	leadEvery = 50 * time.Millisecond
)

// Lead opens a region of which this node is a member, and has it led by this node, unless another one leads it: then
// the error is actor.ErrNotHere.
func (n Node) Lead(ctx context.Context, id uint64) (*actor.Land, error) {
	ctx, cancel := context.WithTimeout(ctx, leadTime)
	defer cancel()
	info, err := n.Regions.Member(id)
	if err != nil {
		return nil, fmt.Errorf("lead region %d: %w", id, err)
	}
	for {
		l, err := n.Regions.Open(ctx, id, info.Cell)
		if err == nil {
			switch status := l.Raft().Status(); {
			case status.Self:
				return l, nil
			case status.Leader != "":
				return nil, fmt.Errorf("lead region %d: %w: %s leads it", id, actor.ErrNotHere, status.Leader)
			}
			l.Raft().Campaign()
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("lead region %d: %w", id, cmp.Or(err, ctx.Err()))
		case <-time.After(leadEvery):
		}
	}
}
