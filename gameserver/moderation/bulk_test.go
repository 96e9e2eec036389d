package moderation

import (
	"testing"
	"time"

	"github.com/voxelpopuli/voxeld/player"
	"github.com/voxelpopuli/voxeld/policy"
)

// Players may change as many blocks in an hour as their role says, whichever sessions they have.
func TestBulks(t *testing.T) {
	var b bulks
	limits, now := policy.BulkLimits{AtOnce: 4096, Hour: 36_000}, time.Unix(1e9, 0)
	ann, bob := player.GuestID("ann"), player.GuestID("bob")
	for _, c := range []struct {
		of    player.ID
		later time.Duration
		n     int
		want  bool
	}{
		{ann, 0, 36_000, true},
		{ann, 0, 1, false},
		{bob, 0, 36_001, false},
		{bob, 0, 1000, true},
		{ann, 99 * time.Second, 1000, false},
		{ann, time.Second, 1000, true}, // ten a second
		{bob, time.Hour, 36_000, true},
	} {
		if now = now.Add(c.later); b.allow(c.of, limits, c.n, now) != c.want {
			t.Errorf("%v blocks at %v: %v", c.n, now, !c.want)
		}
	}
	if b.allow(player.GuestID("eve"), limits, 1, now.Add(time.Hour)); len(b.mu.byPlayer) != 1 {
		t.Errorf("%d players are remembered", len(b.mu.byPlayer))
	}
	if limits.Hour = 100; b.allow(bob, limits, 101, now.Add(time.Hour)) {
		t.Error("a smaller limit has no effect")
	}
}
