package overlay

import "fmt"

// Aging is an interpretation of when the age of a buffered update grows. §2.2 of the areacast paper says only that it
// is "increased every time the update is forwarded".
type Aging uint8

// The interpretations; docs/overlays-areacast.md has figures for all three.
const (
	// AgeByRound: everything in the buffer ages with each gossip, sent or not, as in lpbcast. An age is a number of
	// rounds, and updates that fit into no gossip expire soon.
	AgeByRound Aging = iota
	// AgeBySending: only updates that were part of a gossip age.
	AgeBySending
	// AgeByHop: only the sent copy ages. The buffered update stays as it is until a newer one replaces it.
	AgeByHop
)

// AreacastOptions are the parameters of an areacast machine. The zero value is not valid: start with PaperAreacast.
type AreacastOptions struct {
	Interaction, Vision float64 // radii of the ranges IR and VR, in blocks

	// FanoutIR, FanoutVR and FanoutInf are the numbers of players of each view to whom a gossip is sent per round.
	FanoutIR, FanoutVR, FanoutInf int
	// MaxUpdatesPerGossip is the most updates in a gossip, the sender's own included.
	MaxUpdatesPerGossip int
	// MaxPositionAge is the most hops that an update travels.
	MaxPositionAge int
	// RemoveAfter is the age in rounds beyond which a player's newest update no longer keeps them in a view.
	RemoveAfter int

	Aging Aging
	// NoSpill leaves fanout unused that its view cannot fill, instead of passing it to the next wider view. Few players
	// have ten others in interaction range, so the paper's figures cannot be reproduced with it.
	NoSpill bool
	// Header is the overhead of each packet in bytes. The paper counts none.
	Header int

	// RemindEvery is the number of rounds between additional gossips to players outside of all views. Without them,
	// parts of a world that were partitioned for longer than RemoveAfter stay apart. 0: never, as in the paper.
	RemindEvery int

	Better AreacastSwitches
}

// AreacastSwitches are improvements on the paper. Each works independently.
type AreacastSwitches struct {
	// Cap is the most bytes to send in a round. With a cap the fanouts are shares: as many gossips are sent as fit. 0:
	// no cap; the fanouts are counts.
	Cap int
	// Compact quantises and encodes updates as DecodeGossip reads them, instead of the paper's 260 bits each.
	Compact bool
	// StalestFirst chooses the receivers whose information suffers most from its age, instead of random ones of the
	// views IR and VR. Each receiver's gossip holds updates from their own vision range.
	StalestFirst bool
	// EdgeInterval is the number of rounds between gossips to players at the edge of the vision range. Between the
	// interaction range, with one gossip per round, and the edge the rate falls evenly. 0 and 1: one gossip per round
	// for everybody.
	EdgeInterval int
	// Leader receives a report every ReportEvery rounds, and introduces players who come near. 0 rounds: no leader.
	Leader      ID
	ReportEvery int
}

// PaperAreacast returns the paper's standard: table 1, with fanout-8-1-1, 60 updates a gossip and three hops.
func PaperAreacast() AreacastOptions {
	return AreacastOptions{
		Interaction: 50, Vision: 200,
		FanoutIR: 8, FanoutVR: 1, FanoutInf: 1,
		MaxUpdatesPerGossip: 60, MaxPositionAge: 3, RemoveAfter: 3,
	}
}

// BetterAreacast enables the improvements that cost no freshness and need no leader, under a cap of so many bytes per
// round, counting UDP headers. Set EdgeInterval to send less.
func BetterAreacast(limit int) AreacastOptions {
	o := PaperAreacast()
	o.Header, o.MaxUpdatesPerGossip, o.RemoveAfter = HeaderUDP, 8, 8
	o.Better = AreacastSwitches{Cap: limit, Compact: true, StalestFirst: true}
	return o
}

// Fanout returns the sum of the three fanouts.
func (o *AreacastOptions) Fanout() int { return o.FanoutIR + o.FanoutVR + o.FanoutInf }

// MaxBytes returns the most bytes that plain areacast sends in a round (§4.4), without reminders.
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
