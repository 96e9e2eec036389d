package overlay

// Limits of what a machine keeps, sends and takes in. They bound memory against strangers; the papers' worlds stay far
// below them.
const (
	// MaxCoordinate is how far from the origin an avatar may be, in blocks (grid.Limit chunks).
	MaxCoordinate = 1 << 31
	// MaxKnown is how many other avatars a machine keeps in mind.
	MaxKnown = 4096
	// MaxReceivers is how many ids the receiver list of a position may have.
	MaxReceivers = 1024
	// MaxUpdates is how many updates one message may have.
	MaxUpdates = 1024
	// MaxHops is how many hops any update may travel.
	MaxHops = 15
	// MaxInbox is how many messages a machine takes in a round; what exceeds it is dropped, the newest first.
	MaxInbox = 8192
)
