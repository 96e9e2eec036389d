package admission

import (
	"context"
	"net"
	"net/netip"

	"golang.org/x/time/rate"
)

// loopbackFoundings is how many times more foundings loopback may request. Its other actions are not limited.
const loopbackFoundings = 10

// Client is the address of a client.
type Client struct {
	of      *Limits
	site    netip.Prefix
	counted bool
}

// Client returns the client at the other end of a connection.
func (l *Limits) Client(remote net.Addr) Client {
	site, counted := siteOf(remote)
	return Client{l, site, counted}
}

// Allow reports whether the clients of the address may do that now, and counts it.
func (c Client) Allow(a Action) bool {
	l := c.limiter(a)
	return l == nil || l.Allow()
}

// Wait waits until the clients of the address may do that, and counts it.
func (c Client) Wait(ctx context.Context, a Action) error {
	l := c.limiter(a)
	if l == nil {
		return nil
	}
	return l.Wait(ctx)
}

// limiter returns the limiter of an action; nil if it is not limited.
func (c Client) limiter(a Action) *rate.Limiter {
	if !c.counted && a != Found {
		return nil
	}
	l := c.of
	l.mu.Lock()
	defer l.mu.Unlock()
	all, known := l.mu.actions.Get(c.site)
	if !known {
		all = newAllowances(l.mu.perAddress, l.mu.edits)
		if !c.counted {
			all[Found] = rate.NewLimiter(loopbackFoundings*all[Found].Limit(), loopbackFoundings*all[Found].Burst())
		}
		l.mu.actions.Add(c.site, all)
	}
	return all[a]
}
