package policysync

import (
	"context"
	"fmt"
	"time"

	"github.com/voxelpopuli/voxeld/policy"
)

// Run keeps the copy up to date until ctx ends.
func (c *Copy) Run(ctx context.Context) {
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	failing := false
	for {
		err := c.Update(ctx)
		if ctx.Err() != nil {
			return
		}
		if err == nil {
			c.metrics.updated.SetToCurrentTime()
			c.endOpen(ctx)
		} else if !failing {
			c.Logger.Warn("the policy cannot be brought up to date: bans and roles that are new elsewhere have no effect here yet", "error", err)
		}
		failing = err != nil
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return
		}
	}
}

// endOpen enters a command under a charter if the world was open, and there is none yet: commands without a charter that are entered after it
// count for nothing. It changes nothing else. Any issuer does so.
func (c *Copy) endOpen(ctx context.Context) {
	var done bool
	var players policy.Role
	c.Read(func(s *policy.State) { done, players = s.Charter() > 0, s.Settings().Players })
	if !c.Operator.WasOpen || done {
		return
	}
	if issuer, err := c.Issued(c.Operator.Charter(), c.Operator.Key); err != nil || !issuer {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	if _, err := c.Operate(ctx, fmt.Sprintf("set players %v", players)); err != nil {
		c.Logger.Debug("the first command under a charter is not entered yet", "error", err)
	}
}
