package overlay

import "fmt"

// Aging is a reading of when the age of a buffered update grows. §2.2 of the areacast paper says only that it is
// "increased every time the update is forwarded".
type Aging uint8

// The readings; docs/overlays-areacast.md has figures for all three.
const (
	// AgeByRound: all that is buffered grows older with each gossip, sent or not, as in lpbcast. An age is a number of
	// rounds, and what found no place in a gossip is soon gone.
	AgeByRound Aging = iota
	// AgeBySending: only what a gossip took along grows older.
	AgeBySending
	// AgeByHop: only the copy that is sent is older. What is buffered stays so until a newer update replaces it.
	AgeByHop
)

// AreacastOptions are the parameters of an areacast machine. The zero value is not valid: begin with PaperAreacast.
type AreacastOptions struct {
	Interaction, Vision float64 // radii of the ranges IR and VR, in blocks

	// FanoutIR, FanoutVR and FanoutInf are to how many players of each view a gossip is sent in a round.
	FanoutIR, FanoutVR, FanoutInf int
	// MaxUpdatesPerGossip is how many updates a gossip has at most, the own one included.
	MaxUpdatesPerGossip int
	// MaxPositionAge is how many hops an update travels at most.
	MaxPositionAge int
	// RemoveAfter is the age in rounds past which the newest update of a player no longer keeps him in a view.
	RemoveAfter int

	Aging Aging
	// NoSpill lets fanout that its view cannot fill go unused, instead of passing it to the next wider view. Nobody has
	// ten players in interaction range, so the paper's figures cannot be reached with it.
	NoSpill bool
	// Header is the bytes that each packet costs besides its gossip. The paper counts none.
	Header int

	// RemindEvery is after how many rounds one more gossip goes to a player who is in no view any more: without it,
	// halves of a world that lost each other for longer than RemoveAfter stay apart. 0: never, as in the paper.
	RemindEvery int

	Better AreacastSwitches
}

// AreacastSwitches are what improves on the paper. Each works alone.
type AreacastSwitches struct {
	// Cap is how many bytes may be sent in a round. With it the fanouts are shares: as many gossips are sent as fit.
	// 0: the fanouts are counts.
	Cap int
	// Compact has updates quantised and encoded as DecodeGossip reads them, in place of the paper's 260 bits each.
	Compact bool
	// StalestFirst chooses receivers by how much they lose with the age of what they know, in place of random ones of the
	// views IR and VR, and fills each one's gossip with what lies in his vision range.
	StalestFirst bool
	// EdgeInterval is every how many rounds players at the edge of the vision range are told; the rate falls evenly
	// from each round, at the interaction range, to that. 0 and 1: everybody in each round.
	EdgeInterval int
	// Leader is whom to report to, so that he introduces players who come near; ReportEvery is after how many rounds.
	// 0 rounds: no leader.
	Leader      ID
	ReportEvery int
}

// PaperAreacast is the paper's standard: table 1, with fanout-8-1-1, 60 updates a gossip and three hops.
func PaperAreacast() AreacastOptions {
	return AreacastOptions{
		Interaction: 50, Vision: 200,
		FanoutIR: 8, FanoutVR: 1, FanoutInf: 1,
		MaxUpdatesPerGossip: 60, MaxPositionAge: 3, RemoveAfter: 3,
	}
}

// BetterAreacast has the switches on that cost no freshness and need no leader, under a cap of so many bytes a round, with
// the headers of UDP. EdgeInterval is for who would rather send less.
func BetterAreacast(limit int) AreacastOptions {
	o := PaperAreacast()
	o.Header, o.MaxUpdatesPerGossip, o.RemoveAfter = HeaderUDP, 8, 8
	o.Better = AreacastSwitches{Cap: limit, Compact: true, StalestFirst: true}
	return o
}

// Fanout is the three fanouts together.
func (o *AreacastOptions) Fanout() int { return o.FanoutIR + o.FanoutVR + o.FanoutInf }

// MaxBytes is the most that plain areacast sends in a round (§4.4), reminders not counted.
func (o *AreacastOptions) MaxBytes() int {
	return o.Fanout() * (o.Header + paperSize(o.MaxUpdatesPerGossip))
}

// Validate returns an error if the options are invalid.
func (o *AreacastOptions) Validate() error {
	switch {
	case !(o.Interaction >= 0 && o.Vision > o.Interaction && o.Vision <= MaxCoordinate):
		return fmt.Errorf("check areacast options: interaction range %v, vision range %v", o.Interaction, o.Vision)
	case o.FanoutIR < 0 || o.FanoutVR < 0 || o.FanoutInf < 0 || o.Fanout() < 1 || o.Fanout() > MaxKnown:
		return fmt.Errorf("check areacast options: fanouts %d-%d-%d", o.FanoutIR, o.FanoutVR, o.FanoutInf)
	case o.MaxUpdatesPerGossip < 1 || o.MaxUpdatesPerGossip > MaxUpdates:
		return fmt.Errorf("check areacast options: %d updates a gossip, not 1 to %d", o.MaxUpdatesPerGossip, MaxUpdates)
	case o.MaxPositionAge < 1 || o.MaxPositionAge > MaxHops:
		return fmt.Errorf("check areacast options: updates travel %d hops, not 1 to %d", o.MaxPositionAge, MaxHops)
	case o.RemoveAfter < 1 || o.RemoveAfter > forgetAfter:
		return fmt.Errorf("check areacast options: players removed after %d rounds, not 1 to %d", o.RemoveAfter, forgetAfter)
	case o.Aging > AgeByHop || o.Header < 0 || o.RemindEvery < 0:
		return fmt.Errorf("check areacast options: aging %d, header of %d bytes, reminders after %d rounds", o.Aging, o.Header, o.RemindEvery)
	case o.Better.Cap < 0 || o.Better.EdgeInterval < 0 || o.Better.ReportEvery < 0:
		return fmt.Errorf("check areacast options: cap %d, edge interval %d, reports after %d rounds",
			o.Better.Cap, o.Better.EdgeInterval, o.Better.ReportEvery)
	}
	return nil
}
