package overlay

// ID is an avatar's number, assigned by the owner of the machines. At any time it is unique within a world. It takes 4
// bytes on the wire, as in the pSense paper. IDs from FirstServer on are leaders of regions.
type ID uint32

// FirstServer is the lowest id of a region's leader.
const FirstServer ID = 1 << 31

// Server reports whether the id is a leader's.
func (id ID) Server() bool { return id >= FirstServer }

// Update is a past position of an avatar.
type Update struct {
	Origin   ID
	Round    uint32 // the origin's own round, which is also the sequence number; comparable only between updates of one origin
	At       Point
	Velocity Point  // blocks a round
	GameData uint64 // data of the game, such as height and yaw; opaque to machines
}

// Newer reports whether u replaces v, an update of the same origin. Round counters wrap around.
func (u Update) Newer(v Update) bool { return int32(u.Round-v.Round) > 0 }

// Valid reports whether the update's numbers are within limits.
func (u Update) Valid() bool { return u.At.Valid() && u.Velocity.Valid() }

// Kind is the kind of a payload. It is the first byte of its encoding.
type Kind uint8

// The kinds of payloads, and their senders.
const (
	KindPosition         Kind = 1 + iota // psense: one avatar's position, with its receiver list
	KindSensorRequest                    // psense: who is the best sensor node for this sector?
	KindSensorSuggestion                 // psense: this one
	KindGossip                           // areacast: updates with their ages
	KindReport                           // to the leader of the region: own position
	_
	KindIntroduction // from the leader: avatars around the receiver
	KindBundle       // improved psense: updates and introductions in one packet
)

// Payload is the content of a message. Payloads are pointers to structs of this package. A sent payload must never be
// changed, because many messages may share it.
type Payload interface {
	Kind() Kind
}

// Message is one packet from one machine to another.
type Message struct {
	From, To ID
	Bytes    int // size on the wire, with the header; counts against a cap
	Payload  Payload
}

// Header sizes, in bytes per packet.
const (
	HeaderPlain = 12 // what the pSense paper's figures fit best (research/measured.md)
	HeaderUDP   = 28 // IPv4 and UDP
)

// mostAhead bounds the rounds of extrapolation by a velocity.
const mostAhead = 8

// Ahead returns the avatar's position extrapolated to the round.
func (u *Update) Ahead(round uint32) Point {
	rounds := min(max(int32(round-u.Round), 0), mostAhead)
	return u.At.Add(u.Velocity.Times(float64(rounds)))
}
