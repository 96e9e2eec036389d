package overlay

// Limits of a machine's memory, output and input. They bound memory against untrusted input; the papers' worlds stay
// far below them.
const (
	// MaxCoordinate is how far from the origin an avatar may be, in blocks (grid.Limit chunks).
	MaxCoordinate = 1 << 31
	// MaxKnown is the most other avatars that a machine keeps.
	MaxKnown = 4096
	// MaxReceivers is the most ids in the receiver list of a position.
	MaxReceivers = 1024
	// MaxUpdates is the most updates in one message.
	MaxUpdates = 1024
	// MaxSectors is the most sectors around a pSense avatar.
	MaxSectors = 32
	// MaxHops is the most hops that any update may travel.
	MaxHops = 15
	// MaxInbox is the most messages that a machine accepts in a round; beyond it the newest are dropped.
	MaxInbox = 8192
)
