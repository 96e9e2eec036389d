package overlay

// Position is an avatar's position update on its way through the overlay (pSense §3.2 b).
type Position struct {
	Update    Update
	Hops      uint8 // travelled when it arrives: 1 if it comes from its origin
	Compact   bool  // written in the short form
	Listed    bool  // has a receiver list: who gets it may forward it
	Short     bool  // the list's ids are short
	Receivers []ID  // who gets it too, sorted
}

// SensorRequest asks for the best sensor node in a sector of the sender's circle (§3.3).
type SensorRequest struct {
	Self    Update // of the sender
	Sector  uint8
	Compact bool
}

// SensorSuggestion answers a SensorRequest.
type SensorSuggestion struct {
	Node    Update // whom the sender thinks best, or the sender
	Sector  uint8
	Compact bool
}

// Report tells the leader of a region where an avatar is.
type Report struct {
	Update  Update
	Compact bool
}

// Introduction is the leader's, and names avatars that came near the receiver.
type Introduction struct {
	Updates []Update
	Compact bool
}

// Crowd is the leader's, and says where those in the receiver's vision range are (relay).
type Crowd struct {
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

// Kind implements Payload.
func (*Crowd) Kind() Kind { return KindCrowd }

// short is an id in the receiver list of the short form. Two avatars of one neighborhood seldom have the same; then one
// of them is not forwarded to.
func short(id ID) ID { return id & 0xffff }
