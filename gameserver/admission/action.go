package admission

import (
	"math"
	"time"

	"golang.org/x/time/rate"
)

// Action is something that all clients of an address together may do so often.
type Action int

// The actions.
const (
	Found      Action = iota // request land that may have to be founded, or whose leader is to be asked
	Explore                  // have land founded around an original client's player
	Join                     // join as a player
	Register                 // register in a chunk, as original clients do at each border
	FindPlayer               // ask where a player is who is not here, as original clients do before they register
	Edit                     // change a block
	LogIn                    // try a password or a name, in another game
	Tile                     // request surface tiles, or their hashes
	NewName                  // register a name; see AllowDaily
	NewClaim                 // claim land; see AllowDaily
	AnyCommand               // give another command that changes the policy; see AllowDaily
	send                     // be sent a byte; see Client.Send
	actions
)

// String returns the label of the action in metrics.
func (a Action) String() string {
	return [actions]string{"foundings", "explorations", "joins", "registrations", "player_queries", "edits", "logins", "tiles", "names", "claims", "commands", "bytes"}[a]
}

// sentAtOnce is how many seconds' bytes may be sent at once: players who join are sent the land in view.
const sentAtOnce = 10

// exploreEvery is the time for one region: a player at full speed crosses into the next one every 25 seconds.
const exploreEvery = 10 * time.Second

// allowances are the limiters of an address, one for each action.
type allowances [actions]*rate.Limiter

// secondsADay is the time within which what an address may do a day is full again.
const secondsADay = 24 * 60 * 60

// loopbackFoundings is how many times more foundings loopback may request. Its other actions are not limited.
const loopbackFoundings = 10

// newAllowances returns what an address may do; counted is false for loopback. Those of AllowDaily are nil: the policy
// has their number. Its players may all come at once, and half of them may edit as fast as they can.
func newAllowances(p Settings, counted bool) *allowances {
	players, edits := p.PerAddress, p.Edits()
	all := &allowances{
		Found:      rate.NewLimiter(20, 100),
		Explore:    rate.NewLimiter(rate.Every(exploreEvery), players),
		Join:       rate.NewLimiter(p.joins(), players),
		Register:   rate.NewLimiter(rate.Limit(players)/2, 4*players),
		FindPlayer: rate.NewLimiter(p.joins(), 4*players), // each is two lookups in the network
		Edit:       rate.NewLimiter(edits*rate.Limit(players)/2, max(1, int(edits)*players)),
		LogIn:      rate.NewLimiter(1, players),
		Tile:       rate.NewLimiter(rate.Limit(4*players), 64*players),
		send:       rate.NewLimiter(rate.Limit(p.bytes()), sentAtOnce*p.bytes()),
	}
	if !counted {
		for _, a := range []Action{Found, Explore} {
			all[a] = rate.NewLimiter(loopbackFoundings*all[a].Limit(), loopbackFoundings*all[a].Burst())
		}
	}
	return all
}

// set changes the rates of what an address may do to others. Those of AllowDaily stay.
func (all *allowances) set(to *allowances) {
	for a, l := range to {
		if l != nil {
			all[a] = resized(all[a], l.Limit(), l.Burst())
		}
	}
}

// resized returns a limiter with that rate and burst, of which as much is used as of the limiter; nil is an unused one.
func resized(l *rate.Limiter, limit rate.Limit, burst int) *rate.Limiter {
	if l != nil && l.Limit() == limit && l.Burst() == burst {
		return l
	}
	other, now := rate.NewLimiter(limit, burst), time.Now()
	if l != nil {
		used := math.Ceil(float64(l.Burst()) - l.TokensAt(now))
		other.AllowN(now, int(min(used, float64(burst))))
	}
	return other
}
