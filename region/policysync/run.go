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
	unused := time.NewTicker(expireEvery)
	defer unused.Stop()
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
		case <-unused.C:
			c.endUnused(ctx)
		case <-ctx.Done():
			return
		}
	}
}

// endOpen enters a command under a charter if the world was open, and there is none yet: commands without a charter
// that are entered after it count for nothing. It changes nothing else. Any issuer does so.
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

// expireEvery is how often an issuer looks for names and claims that have come to their end.
const expireEvery = time.Hour

// endUnused ends names and claims that were not used, if this node is an issuer, and its clock is settled. The leader
// of the catalog has to find the same by its own clock.
func (c *Copy) endUnused(ctx context.Context) {
	due := false
	c.Read(func(s *policy.State) { due = c.Settled() && s.Expires(c.Now()) })
	if !due {
		return
	}
	if issuer, err := c.Issued(c.Operator.Charter(), c.Operator.Key); err != nil || !issuer {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	done, err := c.Operate(ctx, policy.ExpireCommand)
	if err != nil {
		c.Logger.Warn("names and claims that were not used cannot be ended", "error", err)
		return
	}
	c.Logger.Info("names and claims that were not used have ended", "ended", done)
}
