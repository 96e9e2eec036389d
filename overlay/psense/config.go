package psense

import (
	"fmt"
	"math"

	"github.com/voxelpopuli/voxeld/overlay"
)

// Options are the parameters of a machine. Paper and Improved fill them in.
type Options struct {
	Vision      float64 // radius in which an avatar sees others, in blocks
	Interaction float64 // radius in which it interacts with them; used only by the improvements on the paper
	Header      int     // overhead of a packet in bytes
	Cap         int     // most bytes to send in a round; 0: no cap

	Sectors     int // number of sectors around the avatar, with one sensor node each; at most overlay.MaxSectors
	SensorEvery int // rounds between two requests to a sensor node
	Lifetime    int // hops an update travels: 1 + forwards; the codec supports at most 7
	Forget      int // rounds without a newer update after which a node counts as gone

	// The fields below are improvements on the paper; each works independently.

	// Introductions makes the machine report to Leader every ReportEvery rounds, and accept the avatars that Leader
	// introduces.
	Introductions bool
	Leader        overlay.ID
	ReportEvery   int
	// Lead is the number of rounds by which near nodes are anticipated: a pair is near if it could come into vision
	// range within so many rounds. 0: only vision range counts, as in the paper.
	Lead float64
	// OwnFirst drops forwarded updates before own updates if the cap is too small for both.
	OwnFirst bool
	// Stalest drops the updates that their receivers need least, by age of information and distance, instead of random
	// updates.
	Stalest bool
	// Compact uses quantised positions and short ids (codec.go).
	Compact bool
	// Forwarders is the number of an update's receivers that get its receiver list, and therefore forward it. 0: all,
	// as in the paper.
	Forwarders int
	// ListEvery is the number of rounds between lists to those few. 0 and 1: every round.
	ListEvery int
	// Falling is by how much the mean PQ(p, q) of a distant pair may exceed 1, so that updates are sent less often. 0:
	// it may not exceed 1.
	Falling float64
	// Probe is the number of rounds between two messages to nodes that have long been silent, so that partitions heal.
	// 0: never, as in the paper.
	Probe int
}

// Defaults for what the paper does not specify; research/figures/overlays/psense-open.csv shows how much each matters.
const (
	DefaultSectors  = 8
	DefaultLifetime = 3
	DefaultForget   = 10
)

// Paper returns the paper's parameters, with a header of HeaderPlain.
func Paper(vision float64) Options {
	return Options{
		Vision: vision, Interaction: vision / 4, Header: overlay.HeaderPlain,
		Sectors: DefaultSectors, SensorEvery: 1, Lifetime: DefaultLifetime, Forget: DefaultForget,
	}
}

// Improved returns parameters with all improvements enabled. leader sends the introductions.
func Improved(vision float64, leader overlay.ID) Options {
	c := Paper(vision)
	c.Forget, c.SensorEvery = 24, 4
	c.Introductions, c.Leader, c.ReportEvery = true, leader, 2
	c.Lead = 5
	c.OwnFirst, c.Stalest, c.Compact = true, true, true
	c.Forwarders = 2
	c.Falling = .01
	c.Probe = 16
	return c
}

// Validate returns an error if the parameters are invalid.
func (c *Options) Validate() error {
	switch {
	case !(c.Vision > 0) || c.Interaction < 0 || c.Interaction >= c.Vision:
		return fmt.Errorf("configure psense: vision %v, interaction %v", c.Vision, c.Interaction)
	case c.Sectors < 1 || c.Sectors > overlay.MaxSectors:
		return fmt.Errorf("configure psense: %d sectors: want 1 to %d", c.Sectors, overlay.MaxSectors)
	case c.Lifetime < 1 || c.Lifetime > overlay.MaxPositionHops:
		return fmt.Errorf("configure psense: a lifetime of %d hops: want 1 to %d", c.Lifetime, overlay.MaxPositionHops)
	case c.SensorEvery < 1 || c.Forget < 1 || c.Header < 0 || c.Cap < 0 || c.Probe < 0 || c.Forwarders < 0 || c.ListEvery < 0:
		return fmt.Errorf("configure psense: sensor_every %d, forget %d, header %d, cap %d, probe %d, forwarders %d, list_every %d: too small",
			c.SensorEvery, c.Forget, c.Header, c.Cap, c.Probe, c.Forwarders, c.ListEvery)
	case c.Introductions && c.ReportEvery < 1:
		return fmt.Errorf("configure psense: reports every %d rounds", c.ReportEvery)
	case c.Compact && c.Vision > overlay.CompactReach/2:
		return fmt.Errorf("configure psense: compact updates and a vision range of %v: want at most %d", c.Vision, overlay.CompactReach/2)
	case !(c.Lead >= 0) || !(c.Falling >= 0):
		return fmt.Errorf("configure psense: lead %v, falling %v", c.Lead, c.Falling)
	}
	return nil
}

// reach returns the distance within which two avatars are near: in vision range, or about to come into it.
func (c *Options) reach(v, w overlay.Point) float64 { return overlay.Reach(c.Vision, c.Lead, v, w) }

// mostInterval bounds the rounds between two own updates to a near node.
const mostInterval = 8

// fallingFrom returns for each k, 2 ≤ k ≤ mostInterval, the distance from which an own update every k rounds keeps the
// mean of PQ(p, q) over its ages 1 to k within 1 + falling. PQ(p, q) is age^w, with w falling from 1 at the interaction
// range to 0 at the vision range.
func (c *Options) fallingFrom() (from [mostInterval + 1]float64) {
	for k := 2; k <= mostInterval; k++ {
		low, high := 0., 1.
		for range 30 {
			w, sum := (low+high)/2, 0.
			for age := 1; age <= k; age++ {
				sum += math.Pow(float64(age), w)
			}
			if sum/float64(k) <= 1+c.Falling {
				low = w
			} else {
				high = w
			}
		}
		from[k] = c.Vision - low*(c.Vision-c.Interaction)
	}
	return from
}
