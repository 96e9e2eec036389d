package admission

import "golang.org/x/time/rate"

// Action is something that all clients of an address together may do so often.
type Action int

// The actions.
const (
	Found    Action = iota // request land that may have to be founded
	Join                   // join as a player
	Register               // register in a chunk, as original clients do at each border
	Edit                   // change a block
	actions
)

// allowances are the limiters of an address, one for each action.
type allowances [actions]*rate.Limiter

// idle reports whether the address may do everything at once again.
func (all *allowances) idle() bool {
	for _, l := range all {
		if l.Tokens() < float64(l.Burst()) {
			return false
		}
	}
	return true
}

// newAllowances returns what an address with so many players may do. They may all come at once; a player's burst of edits is left to
// their own limit.
func newAllowances(players int, edits rate.Limit) *allowances {
	return &allowances{
		Found:    rate.NewLimiter(20, 100),
		Join:     rate.NewLimiter(2, players),
		Register: rate.NewLimiter(rate.Limit(players)/2, 4*players),
		Edit:     rate.NewLimiter(10*edits, int(20*edits)),
	}
}
