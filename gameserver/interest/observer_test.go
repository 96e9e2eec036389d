package interest

import (
	"math"
	"testing"

	"github.com/voxelpopuli/voxeld/wire/sessionmsg"
)

// tierAt returns the tier in which an observer has an avatar's cell.
func (obs *observer) tierAt(a *avatar) lodTier {
	for i := range obs.views {
		if bv := &obs.views[i]; bv.bucket == a.bucket {
			return bv.tiers[a.cell]
		}
	}
	return unseen
}

// allowed returns the maximum error of clients of a tier after a check, along any axis, in 1/128 block: the tier's
// error, a slip or a step, half a unit of a place that was sent when the tier changed, and, the given number of ticks
// after the check, how far the avatar and its prediction may diverge meanwhile.
func allowed(tier lodTier, sinceLook uint64) int32 {
	most := tierRules[tier].error
	if tier != exact {
		most = max(most, slipMost)
	}
	if tier.toleratesSteps() {
		most = max(most, stepError)
	}
	const parting = sessionmsg.TickVelocityUnit / 2 // a tick: 4 blocks/s to and fro, or a step
	return most + fine/2 + parting*int32(sinceLook)
}

// verdict is the result of comparing clients' predictions with the real places, by tier.
type verdict struct {
	looks, wrong [tiers]int
	worst        [tiers]int32 // in 1/128 block
}

// check compares clients' predictions of avatars in view with their places.
func (c *landscape) check(found *verdict) {
	ix := c.ix
	for _, v := range c.tourists {
		if v.asleep || v.missed {
			continue
		}
		places := c.places(v)
		for i := range c.walkers {
			w := &c.walkers[i]
			at := w.Pose.Chunk()
			seen, known := places[w.Player]
			if known != v.sights[at] {
				c.t.Fatalf("the client of %s shows %s: %v; their chunk is in view: %v", c.walkers[v.walker].Name, w.Name, known, v.sights[at])
			}
			a := ix.avatars[w.Player]
			if !known || a.bucket.at != at {
				continue
			}
			tier := v.observer.tierAt(a)
			if tier == unseen {
				continue // it entered this chunk alone, and tiers have not been assigned since
			}
			since := a.bucket.turnOf(ix.frames) % tierRules[tier].every
			truth := a.place.Pose(at)
			off := int32(max(math.Abs(seen.X-truth.X), math.Abs(seen.Y-truth.Y), math.Abs(seen.Z-truth.Z))*sessionmsg.TickVelocityUnit + .5)
			most := allowed(tier, since)
			if off > 2*most { // twice: see avatar.motion, which puts it within its cell
				c.t.Fatalf("tick %d: the client of %s has %s to be at %.2f, %.2f, %.2f, who is at %.2f, %.2f, %.2f: %d/128 block, want at most %d",
					ix.tick, c.walkers[v.walker].Name, w.Name, seen.X, seen.Y, seen.Z, truth.X, truth.Y, truth.Z, off, most)
			}
			found.looks[tier]++
			found.worst[tier] = max(found.worst[tier], off)
			if off > most {
				found.wrong[tier]++
			}
		}
	}
}

// Wherever avatars and sessions walk, come and go, clients predict everybody in view within the error that the avatar's
// tier allows.
func TestClientsAreRightWithinTiers(t *testing.T) {
	var found verdict
	views := []int{1, 1, 2, 4}
	bytes := 0
	for seed, land := range []struct{ chunks, walkers, budget int }{
		{9, 40, defaultBudget}, {9, 90, defaultBudget}, {9, 150, defaultBudget}, {9, 600, defaultBudget}, {4, 100, defaultBudget}, // few to many
		{2, 200, 6000}, {2, 200, 5000}, {2, 200, 3000}, {2, 200, 2000}, // too many
	} {
		c := newLandscape(t, uint64(seed), land.chunks, land.walkers, land.budget)
		for range 400 {
			some := func() *tourist { return c.tourists[c.rng.IntN(len(c.tourists))] }
			switch n := c.rng.IntN(60); {
			case len(c.tourists) < 4 || n == 0 && len(c.tourists) < 12:
				c.join(c.rng.IntN(len(c.walkers)), views[c.rng.IntN(len(views))], new(sessionmsg.AvatarDecoder))
			case n == 1:
				c.quit(some())
			case n == 2:
				v := some()
				v.view = views[c.rng.IntN(len(views))]
				c.updateView(v)
			case n == 3: // it does not read for a while
				v := some()
				v.asleep = !v.asleep
			}
			c.walk()
			c.frame()
			c.read()
			c.check(&found)
			c.ix.account(t)
		}
		for _, v := range c.tourists {
			bytes += v.bytes
		}
	}
	t.Logf("by tier: %d looks, %d of them beyond, the worst by %d/128 block; %d bytes", found.looks, found.wrong, found.worst, bytes)
	for g, n := range found.looks {
		if n == 0 || found.wrong[g]*1000 > n {
			t.Errorf("%d avatars were looked at in tier %d, and %d seen to be elsewhere, want at most one of 1000", n, g, found.wrong[g])
		}
	}
}
