package areacast

import (
	"fmt"

	"github.com/voxelpopuli/voxeld/overlay"
)

// Aging is an interpretation of when the age of a buffered update grows. §2.2 of the areacast paper says only that it
// is "increased every time the update is forwarded".
type Aging uint8

// The interpretations; research/figures/overlays/areacast-readings.csv has figures for all three.
const (
	// AgeByRound: everything in the buffer ages with each gossip, sent or not, as in lpbcast. An age is a number of
	// rounds, and updates that fit into no gossip expire soon.
	AgeByRound Aging = iota
	// AgeBySending: only updates that were part of a gossip age.
	AgeBySending
	// AgeByHop: only the sent copy ages. The buffered update stays as it is until a newer one replaces it.
	AgeByHop
)

// Options are the parameters of a machine. The zero value is not valid: start with Paper.
type Options struct {
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

	Improved Improvements
}

// Improvements are changes to the paper's algorithm. Each works independently.
type Improvements struct {
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
	Leader      overlay.ID
	ReportEvery int
}

// Paper returns the paper's standard: table 1, with fanout-8-1-1, 60 updates a gossip and three hops.
func Paper() Options {
	return Options{
		Interaction: 50, Vision: 200,
		FanoutIR: 8, FanoutVR: 1, FanoutInf: 1,
		MaxUpdatesPerGossip: 60, MaxPositionAge: 3, RemoveAfter: 3,
	}
}

// Improved enables the improvements that cost no freshness and need no leader, under a cap of so many bytes per
// round, counting UDP headers. Set EdgeInterval to send less.
func Improved(limit int) Options {
	o := Paper()
	o.Header, o.MaxUpdatesPerGossip, o.RemoveAfter = overlay.HeaderUDP, 8, 8
	o.Improved = Improvements{Cap: limit, Compact: true, StalestFirst: true}
	return o
}

// Fanout returns the sum of the three fanouts.
func (o *Options) Fanout() int { return o.FanoutIR + o.FanoutVR + o.FanoutInf }

// MaxBytes returns the most bytes that plain areacast sends in a round (§4.4), without reminders.
func (o *Options) MaxBytes() int {
	return o.Fanout() * (o.Header + paperSize(o.MaxUpdatesPerGossip))
}

// Validate returns an error if the options are invalid.
func (o *Options) Validate() error {
	switch {
	case !(o.Interaction >= 0 && o.Vision > o.Interaction && o.Vision <= overlay.MaxCoordinate):
		return fmt.Errorf("check areacast options: interaction range %v, vision range %v", o.Interaction, o.Vision)
	case o.FanoutIR < 0 || o.FanoutVR < 0 || o.FanoutInf < 0 || o.Fanout() < 1 || o.Fanout() > overlay.MaxKnown:
		return fmt.Errorf("check areacast options: fanouts %d-%d-%d", o.FanoutIR, o.FanoutVR, o.FanoutInf)
	case o.MaxUpdatesPerGossip < 1 || o.MaxUpdatesPerGossip > overlay.MaxUpdates:
		return fmt.Errorf("check areacast options: %d updates a gossip, not 1 to %d", o.MaxUpdatesPerGossip, overlay.MaxUpdates)
	case o.MaxPositionAge < 1 || o.MaxPositionAge > overlay.MaxHops:
		return fmt.Errorf("check areacast options: updates travel %d hops, not 1 to %d", o.MaxPositionAge, overlay.MaxHops)
	case o.RemoveAfter < 1 || o.RemoveAfter > forgetAfter:
		return fmt.Errorf("check areacast options: players removed after %d rounds, not 1 to %d", o.RemoveAfter, forgetAfter)
	case o.Aging > AgeByHop || o.Header < 0 || o.RemindEvery < 0:
		return fmt.Errorf("check areacast options: aging %d, header of %d bytes, reminders after %d rounds", o.Aging, o.Header, o.RemindEvery)
	case o.Improved.Cap < 0 || o.Improved.EdgeInterval < 0 || o.Improved.ReportEvery < 0:
		return fmt.Errorf("check areacast options: cap %d, edge interval %d, reports after %d rounds",
			o.Improved.Cap, o.Improved.EdgeInterval, o.Improved.ReportEvery)
	}
	return nil
}

// paperUpdateBits is the size of an update in the paper (§4.4): player id 64, sequence number 64, position 64, age 4,
// node id 64.
const paperUpdateBits = 260

// paperSize returns the paper's size of a gossip of n updates in bytes.
func paperSize(n int) int { return (n*paperUpdateBits + 7) / 8 }

// How long a silent player stays in the update id list, in rounds.
const (
	// forgetAfter: until then, an older update of the player is recognised as old. Afterwards any update counts as new:
	// the player, or another one with the same id, may have restarted their round counter.
	forgetAfter = 128
	// dropAfter: then the player leaves the list. Until then they may receive a reminder.
	dropAfter = 1 << 14
)
