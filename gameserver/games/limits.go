package games

import "golang.org/x/time/rate"

const (
	// PacketsPerSecond is how many packets of a client are handled. Clients send a few for each frame that they draw.
	PacketsPerSecond = 400
	// PacketsAtOnce is how many are handled at once.
	PacketsAtOnce = 1000
	// LooksPerSecond is how often a client has the land looked at. Clients place, or break, at most 20 blocks a second.
	LooksPerSecond = 40
	// LooksAtOnce is how often at once.
	LooksAtOnce = 80
)

// NewPackets returns the limit of a client's packets.
func NewPackets() *rate.Limiter { return rate.NewLimiter(PacketsPerSecond, PacketsAtOnce) }

// NewLooks returns the limit of a client's looks at the land.
func NewLooks() *rate.Limiter { return rate.NewLimiter(LooksPerSecond, LooksAtOnce) }
