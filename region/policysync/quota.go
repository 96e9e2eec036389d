package policysync

import (
	"sync"

	"golang.org/x/time/rate"

	"github.com/voxelpopuli/voxeld/player"
	"github.com/voxelpopuli/voxeld/policy"
	"github.com/voxelpopuli/voxeld/region/transport"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
)

// secondsADay is the time within which a quota is full again.
const secondsADay = 24 * 60 * 60

// gatewayQuotas count what the players of each gateway add to the policy, on the leader of the catalog. Each fills
// again within a day of monotonic time; a new leader begins with full ones. So a gateway that lies, or has many
// addresses at its door, cannot fill the world in a day.
type gatewayQuotas struct {
	mu struct {
		sync.Mutex
		of     policy.Quota
		limits [policy.QuotaKinds]*transport.PeerLimits // made for it
	}
}

// allow counts a command of a kind, and reports whether the gateway may enter it.
func (q *gatewayQuotas) allow(peer string, of policy.Quota, kind policy.Kind) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.mu.of != of || q.mu.limits[kind] == nil {
		q.mu.of = of
		for k := range q.mu.limits {
			n := of.Of(policy.Kind(k))
			q.mu.limits[k] = transport.NewPeerLimits(rate.Limit(float64(n)/secondsADay), n)
		}
	}
	return q.mu.limits[kind].Allow(peer)
}

// chargeGateway counts an act that would have an effect against the quota of the gateway that enters it, and returns
// why it may not.
func (c *Copy) chargeGateway(peer string, act nodemsg.Act) error {
	if act.Operator {
		return nil
	}
	var kind policy.Kind
	var quota policy.Quota
	c.Read(func(s *policy.State) {
		kind, quota = policy.QuotaKind(act.Text, s.RoleOf(player.IDOf(act.Key))), s.Settings().GatewayQuota
	})
	if kind == policy.Free || c.quotas.allow(peer, quota, kind) {
		return nil
	}
	c.metrics.exceeded.WithLabelValues(kind.String()).Inc()
	return quota.GatewayExceeded(kind)
}
