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

// newAllowances returns what an address may do that may have so many players. They may all come at once, and half of them may edit as
// fast as they can.
func newAllowances(players int, edits rate.Limit) *allowances {
	return &allowances{
		Found:    rate.NewLimiter(20, 100),
		Join:     rate.NewLimiter(max(2, rate.Limit(players)/32), players),
		Register: rate.NewLimiter(rate.Limit(players)/2, 4*players),
		Edit:     rate.NewLimiter(edits*rate.Limit(players)/2, max(1, int(edits)*players)),
	}
}
