package overlay

// Position is an avatar's position update on its way through the overlay (pSense §3.2 b).
type Position struct {
	Update    Update
	Hops      uint8 // hops travelled on arrival: 1 if it comes from its origin
	Compact   bool  // written in the short form
	Listed    bool  // has a receiver list, so that the receiver may forward it
	Short     bool  // the list's ids are short
	Receivers []ID  // all receivers, sorted
}

// SensorRequest asks for the best sensor node in a sector of the sender's circle (§3.3).
type SensorRequest struct {
	Self    Update // of the sender
	Sector  uint8
	Compact bool
}

// SensorSuggestion answers a SensorRequest.
type SensorSuggestion struct {
	Node    Update // the best node that the sender knows, or the sender
	Sector  uint8
	Compact bool
}

// Report sends an avatar's position to the leader of its region.
type Report struct {
	Update  Update
	Compact bool
}

// Introduction is sent by the leader, and lists avatars around the receiver.
type Introduction struct {
	Updates []Update
	Compact bool
}

// Kind implements Payload.
func (*Position) Kind() Kind { return KindPosition }

// Kind implements Payload.
func (*SensorRequest) Kind() Kind { return KindSensorRequest }

// Kind implements Payload.
func (*SensorSuggestion) Kind() Kind { return KindSensorSuggestion }

// Kind implements Payload.
func (*Report) Kind() Kind { return KindReport }

// Kind implements Payload.
func (*Introduction) Kind() Kind { return KindIntroduction }

// ShortID returns an id as written in a short receiver list. Two avatars of one neighborhood seldom share a short id;
// if they do, an update is not forwarded to one of them.
func ShortID(id ID) ID { return id & 0xffff }

// AgedUpdate is an update in a gossip.
type AgedUpdate struct {
	Update
	Age uint8 // hops travelled before this one, less than MaxHops
}

// Gossip is areacast's message: the sender's own update, and the updates that the sender forwards.
type Gossip struct{ Updates []AgedUpdate }

// Kind implements Payload.
func (*Gossip) Kind() Kind { return KindGossip }
