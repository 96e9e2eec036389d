package handoff

// Step reports a completed step of a drain.
type Step struct {
	Step     string   `json:"step"`
	Sessions int      `json:"sessions"`           // sessions when the step was done
	Targets  []Target `json:"rooms,omitempty"`    // nodes that take players, once they have answered
	Handed   int      `json:"handed,omitempty"`   // regions that another node leads now
	Kept     int      `json:"kept,omitempty"`     // regions without another eligible leader
	Followed int      `json:"followed,omitempty"` // players who moved to another node
	Cut      int      `json:"cut,omitempty"`      // players who did not leave in time
	NoTarget int      `json:"homeless,omitempty"` // players for whom there was no other node
}

// Counts returns the step's numbers that are not zero, as arguments for a logger.
func (s Step) Counts() []any {
	var counts []any
	add := func(name string, n int) {
		if n > 0 {
			counts = append(counts, name, n)
		}
	}
	add("sessions", s.Sessions)
	add("targets", len(s.Targets))
	add("regions_handed_over", s.Handed)
	add("regions_kept", s.Kept)
	add("followed", s.Followed)
	add("disconnected", s.Cut)
	add("no_target", s.NoTarget)
	return counts
}
