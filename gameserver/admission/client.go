package admission

import (
	"context"
	"net"
	"net/netip"

	"golang.org/x/time/rate"
)

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

// Local reports whether the client is on this machine.
func (c Client) Local() bool { return !c.counted }

// Allow reports whether the clients of the address may do that now, and counts it.
func (c Client) Allow(a Action) bool {
	l := c.limiter(a)
	if l == nil || l.Allow() {
		return true
	}
	c.of.reached.WithLabelValues(a.String()).Inc()
	return false
}

// bits6 is the length of the IPv6 networks that have a quota for all their /64 together, siteQuotas how many times that
// of one /64 it is: whoever rents one server can have so large a network, and every /64 in it.
const bits6, siteQuotas = 48, 8

// AllowDaily reports whether the clients of the address may do that now, if they may do it n times a day, and counts
// it. If n is another one than before, what they have done counts on. It fills again within a day of monotonic time.
func (c Client) AllowDaily(a Action, n int) bool {
	if !c.counted {
		return true
	}
	allowed := c.of.daily(c, a, n).Allow()
	if around, err := c.site.Addr().Prefix(bits6); err == nil && c.site.Addr().Is6() {
		allowed = allowed && c.of.daily(Client{c.of, around, true}, a, siteQuotas*n).Allow()
	}
	if !allowed {
		c.of.reached.WithLabelValues(a.String()).Inc()
	}
	return allowed
}

// daily returns the limiter of what a client may do n times a day.
func (l *Limits) daily(c Client, a Action, n int) *rate.Limiter {
	l.mu.Lock()
	defer l.mu.Unlock()
	all := l.allowances(c)
	all[a] = resized(all[a], rate.Limit(float64(n)/secondsADay), n)
	return all[a]
}

// Wait waits until the clients of the address may do that, and counts it.
func (c Client) Wait(ctx context.Context, a Action) error { return c.wait(ctx, a, 1) }

// Send waits until the clients of the address may be sent so many bytes, and counts them.
func (c Client) Send(ctx context.Context, bytes int) error { return c.wait(ctx, send, bytes) }

func (c Client) wait(ctx context.Context, a Action, n int) error {
	l := c.limiter(a)
	if l == nil {
		return nil
	}
	n = min(n, l.Burst())
	if l.Tokens() < float64(n) {
		c.of.reached.WithLabelValues(a.String()).Inc()
	}
	return l.WaitN(ctx, n)
}

// limiter returns the limiter of an action; nil if it is not limited.
func (c Client) limiter(a Action) *rate.Limiter {
	if !c.counted && a != Found && a != Explore {
		return nil
	}
	l := c.of
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.allowances(c)[a]
}

// allowances returns the limiters of a client. The caller holds the lock.
func (l *Limits) allowances(c Client) *allowances {
	all, known := l.mu.actions.Get(c.site)
	if !known {
		all = newAllowances(l.mu.settings, c.counted)
		l.mu.actions.Add(c.site, all)
	}
	return all
}
