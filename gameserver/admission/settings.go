package admission

import (
	"cmp"

	"golang.org/x/time/rate"
)

// Settings is who may play at a gateway, and what a player may take.
type Settings struct {
	MaxView int // the largest view distance granted, in chunks; at most wire.MaxView
	// MotionBudget is the number of bytes a second that the motion of avatars may take in one session; see Budget. In a
	// larger crowd, avatars farther away are sent less exactly.
	MotionBudget   int
	Guests         bool // whether players without a key may join
	NoOriginal     bool // whether clients of the original protocol may not
	Map            bool // whether players are shown a map, and who is near
	PublicMap      bool // whether everybody is shown the map of the land, if players are
	EditsPerSecond int  // of one player; see Edits

	// What one IP address (of IPv6, one /64) may have and do here; loopback is not counted. 0 depends on PerAddress;
	// see the methods.
	PerAddress            int // players
	ConnectionsPerAddress int // plain HTTP connections
	JoinsPerAddress       int // players who join, a second
	BytesPerAddress       int // bytes sent to all clients, a second
}

const (
	// defaultBudget is what a crowd of 1,500 in one chunk takes in each session at a precision of a quarter block.
	defaultBudget = 19_200
	defaultEdits  = 20

	// connectionsPerPlayer is the number of HTTP connections for each player: a browser that loads the page opens a few
	// at once.
	connectionsPerPlayer = 4
	// minJoins and playersPerJoin determine how many may join a second.
	minJoins, playersPerJoin = 2, 32
	// minBytes and bytesPerPlayer determine how many bytes are sent a second. A view of 12 chunks in each direction has
	// about 5 MiB.
	minBytes, bytesPerPlayer = 1 << 20, 64 << 10
)

// Budget returns MotionBudget, or the default if it is 0.
func (p Settings) Budget() int { return cmp.Or(p.MotionBudget, defaultBudget) }

// Edits returns EditsPerSecond, or the default if it is 0.
func (p Settings) Edits() rate.Limit { return rate.Limit(cmp.Or(p.EditsPerSecond, defaultEdits)) }

// connections returns ConnectionsPerAddress, or the default if it is 0.
func (p Settings) connections() int {
	return cmp.Or(p.ConnectionsPerAddress, connectionsPerPlayer*p.PerAddress)
}

// joins returns JoinsPerAddress, or the default if it is 0.
func (p Settings) joins() rate.Limit {
	return rate.Limit(cmp.Or(float64(p.JoinsPerAddress), max(minJoins, float64(p.PerAddress)/playersPerJoin)))
}

// bytes returns BytesPerAddress, or the default if it is 0.
func (p Settings) bytes() int {
	return cmp.Or(p.BytesPerAddress, max(minBytes, bytesPerPlayer*p.PerAddress))
}
