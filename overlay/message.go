package overlay

// ID is an avatar's number. The owner of the machines gives it; no two avatars of a world have the same at one time.
// It takes 4 bytes on the wire, as in the pSense paper. IDs from FirstServer on are leaders of regions.
type ID uint32

// FirstServer is the least id of a leader of a region.
const FirstServer ID = 1 << 31

// Server reports whether the id is a leader's.
func (id ID) Server() bool { return id >= FirstServer }

// Update says where an avatar was.
type Update struct {
	Origin   ID
	Round    uint32 // the origin's own count of rounds; it is the update's sequence number too. Compare for one origin only
	At       Point
	Velocity Point  // blocks a round
	Body     uint64 // what the game adds, such as height and yaw; machines carry it and do not look at it
}

// Newer reports whether u replaces v, an update of the same origin. Counts of rounds wrap around.
func (u Update) Newer(v Update) bool { return int32(u.Round-v.Round) > 0 }

// Valid reports whether the update's numbers are within limits.
func (u Update) Valid() bool { return u.At.Valid() && u.Velocity.Valid() }

// Kind says what a payload is. It is the first byte of its encoding.
type Kind uint8

// The kinds of payloads, and who says them.
const (
	KindPosition         Kind = 1 + iota // psense: one avatar's position, with its receiver list
	KindSensorRequest                    // psense: who is the best sensor node for this sector?
	KindSensorSuggestion                 // psense: this one
	KindGossip                           // areacast: updates with their ages
	KindReport                           // to the leader of the region: I am here
	KindCrowd                            // from the leader: updates of those around you
	KindIntroduction                     // from the leader: who came near you
	KindBundle                           // improved psense: updates and introductions in one packet
)

// Payload is what a message says. Payloads are pointers to structs of this package. A payload that was sent is never
// changed again, by nobody: the same one may be on its way to many.
type Payload interface {
	Kind() Kind
}

// Message is one packet from one machine to another.
type Message struct {
	From, To ID
	Bytes    int // on the wire, with the header; what counts against a cap
	Payload  Payload
}

// Header sizes, in bytes a packet.
const (
	HeaderPlain = 12 // what the pSense paper's figures fit best (docs/overlays.md)
	HeaderUDP   = 28 // IPv4 and UDP
)
