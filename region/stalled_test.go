package region

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/region/membership"
	"github.com/voxelpopuli/voxeld/wire"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
	"github.com/voxelpopuli/voxeld/world"
)

var errNoSpace = errors.New("no space left")

// While the disks of all members are full, a region has no leader. Its land is still shown, and edits are refused. When
// there is space again, the region works again.
func TestAllDisksFull(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b, c, g, _ := built(t)
		all := []*node{a, b, c}
		for _, n := range all {
			n.disk.setRefuse(errNoSpace)
		}
		g.send(nodemsg.ToRegion{Edits: []nodemsg.Intent{stone(90)}}) // so that they notice
		<-time.After(5 * time.Second)
		for _, n := range all {
			start := time.Now()
			ctx, cancel := context.WithTimeout(t.Context(), 15*time.Second)
			link, _, err := n.Follow(ctx, here)
			cancel()
			if err != nil {
				t.Fatalf("%s cannot follow the region: %v", n.peer, err)
			}
			t.Logf("%s follows after %v", n.peer, time.Since(start))
			g := gateway{link, t}
			if s := g.state(here); len(s.Edits) != 5 {
				t.Errorf("%s shows %d edits", n.peer, len(s.Edits))
			}
			if r := g.edit(stone(91))[91]; r.Refused != wire.RefusedUnavailable {
				t.Errorf("%s answers an edit %+v", n.peer, r)
			}
			if err := link.Close(); err != nil {
				t.Error(err)
			}
		}
		for _, n := range all {
			n.disk.setRefuse(nil)
		}
		<-time.After(5 * time.Second)
		g = b.refollow()
		if r := g.edit(stone(92))[92]; r.Refused != "" {
			t.Errorf("with room again: %+v", r)
		}
	})
}

// One member's disk is full and another member is gone, so the third cannot become leader. The first shows the land
// soon.
func TestFullDiskWithoutMajority(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b, c, g, _ := built(t)
		b.disk.setRefuse(errNoSpace)
		g.send(nodemsg.ToRegion{Edits: []nodemsg.Intent{stone(90)}})
		<-time.After(time.Second)
		a.net.kill(a)
		start := time.Now()
		for time.Since(start) < 15*time.Second {
			link, _, err := c.Follow(t.Context(), here)
			if err != nil {
				continue
			}
			g := gateway{link, t}
			if s := g.state(here); len(s.Edits) < 5 {
				t.Errorf("shown are %d edits", len(s.Edits))
			}
			t.Logf("seen after %v", time.Since(start))
			if err := link.Close(); err != nil {
				t.Error(err)
			}
			return
		}
		t.Fatal("the land is not shown")
	})
}

// While only the leader's disk is full, the others lead, and the gateways find them instead of staying read-only.
func TestLeadersDiskFull(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b, c, g, info := built(t)
		for _, n := range []*node{a, b, c} {
			if n.peer == info.Leader {
				n.disk.setRefuse(errNoSpace)
			}
		}
		start := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), 2*10*time.Second)
		defer cancel()
		for seq := uint64(91); ; seq++ {
			err := g.Send(nodemsg.ToRegion{Edits: []nodemsg.Intent{stone(seq)}})
			for err == nil {
				var frame nodemsg.FromRegion
				if frame, err = g.Receive(ctx); frame.Closed != "" {
					break
				}
				if len(frame.Results) > 0 && frame.Results[0].Refused == "" {
					t.Logf("accepted after %v", time.Since(start))
					return
				}
			}
			if ctx.Err() != nil {
				t.Fatal("the gateway is kept where edits are refused")
			}
			g = c.refollow()
		}
	})
}

// The leader's disk hangs: a write neither fails nor ends. Gateways are dismissed, find the leader that the others have
// elected, and their edits wait for 3 s at most. The node itself sends them on at once. When the disk answers again, it
// does not take the leadership back.
func TestLeadersDiskHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b, c, g, info := built(t)
		var hung *node
		for _, n := range []*node{a, b, c} {
			if n.peer == info.Leader {
				hung = n
			}
		}
		first := g.Link.(routedLink)
		elsewhere := func(link routedLink) bool {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			return link.LedElsewhere(ctx)
		}
		if elsewhere(first) {
			t.Error("a sound region is led elsewhere")
		}
		answer := hung.disk.block()
		start := time.Now()
		var accepted time.Duration
		for err := g.Send(nodemsg.ToRegion{Edits: []nodemsg.Intent{stone(91)}}); accepted == 0; {
			var frame nodemsg.FromRegion
			for err == nil && frame.Closed == "" && len(frame.Results) == 0 {
				frame, err = g.Receive(t.Context())
			}
			if len(frame.Results) > 0 {
				accepted = time.Since(start)
				break
			}
			g = c.refollow()
			err = g.Send(nodemsg.ToRegion{Edits: []nodemsg.Intent{stone(91)}})
		}
		t.Logf("accepted after %v", accepted)
		if accepted > 3*time.Second {
			t.Errorf("an edit was accepted after %v", accepted)
		}
		if !elsewhere(first) || elsewhere(g.Link.(routedLink)) {
			t.Error("the link with the deposed leader should be led elsewhere, the one with its successor should not")
		}
		start = time.Now()
		link, found, err := hung.Follow(t.Context(), here)
		if err != nil || found.Leader == hung.peer || time.Since(start) > time.Second {
			t.Errorf("after %v the node whose disk hangs follows %q: %v", time.Since(start), found.Leader, err)
		} else if s := (gateway{link, t}).state(here); len(s.Edits) != 6 {
			t.Errorf("it shows %d edits", len(s.Edits))
		}
		answer()
		for range 60 {
			<-time.After(time.Second)
			if led, err := b.Locate(t.Context(), here); err == nil && led.Leader == hung.peer {
				t.Fatal("the node whose disk hung leads again")
			}
		}
	})
}

// A region that is closed while the disk hangs waits for it. The list of the loaded regions, which voxeld status shows,
// does not.
func TestRegionsAreListedWhileOneCannotBeClosed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, _, _, g, info := built(t)
		answer := a.disk.block()
		defer answer()
		g.send(nodemsg.ToRegion{Edits: []nodemsg.Intent{stone(90)}})
		<-time.After(2 * time.Second) // the edit waits for the disk
		if !a.regions.Loaded(info.ID).Close("as the test wants it") {
			t.Fatal("the region has ended before")
		}
		<-time.After(time.Second)
		if a.regions.Loaded(info.ID) == nil {
			t.Fatal("the region was closed without the disk")
		}
		start := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		a.Regions(ctx)
		if took := time.Since(start); took > time.Second {
			t.Errorf("the regions were listed after %v", took)
		}
	})
}

// The disks of all members hang. Nobody can lead, so the land is shown as it was; when they answer again, edits are
// accepted.
func TestAllDisksHang(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b, c, g, _ := built(t)
		var answer []func()
		for _, n := range []*node{a, b, c} {
			answer = append(answer, n.disk.block())
		}
		g.send(nodemsg.ToRegion{Edits: []nodemsg.Intent{stone(90)}}) // so that they notice
		<-time.After(3 * time.Second)
		if link, _, err := a.Follow(t.Context(), here); err != nil {
			t.Errorf("the land is not shown: %v", err)
		} else if s := (gateway{link, t}).state(here); len(s.Edits) != 5 {
			t.Errorf("shown are %d edits", len(s.Edits))
		} else {
			reader := gateway{link, t}
			reader.send(nodemsg.ToRegion{Confirm: 1})
			asOf := until(reader, func(f nodemsg.FromRegion) (int64, bool) { return f.AsOf, f.Confirmed == 1 })
			if age := time.Since(time.UnixMilli(asOf)); age < time.Second || age > 10*time.Second {
				t.Errorf("shown as of %v ago", age)
			}
		}
		for _, again := range answer {
			again()
		}
		<-time.After(5 * time.Second)
		g = b.refollow()
		if r := g.edit(stone(92))[92]; r.Refused != "" {
			t.Errorf("when the disks answer again: %+v", r)
		}
	})
}

// A member whose disk hangs for longer than the grace period is replaced, although it answers questions: its vote is
// missing. Until then it is given nothing more, and afterwards it counts as missing. When the disk answers again, it is
// a node as any other.
func TestHungMemberIsReplaced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork(t)
		n.copies = 3
		n.near("A", "B", "C", "D")
		a := n.start("A", newDisk())
		n.start("B", newDisk())
		c := n.start("C", newDisk())
		<-time.After(time.Minute)
		g := a.follow(here)
		g.edit(stone(1))
		id := idHere(t, a)
		<-time.After(time.Minute)
		end := c.disk.block()
		g.edit(stone(2)) // so that it notices
		<-time.After(2 * time.Minute)
		if got := a.voters(id); got != "A B C" {
			t.Errorf("without a substitute the members are %s", got)
		}
		if all := a.States().Node; all[membership.UnderReplicated] != all.Total() {
			t.Errorf("the regions are %v", all.Named())
		}
		n.start("D", newDisk())
		<-time.After(2 * time.Minute)
		for _, group := range []uint64{world.CatalogID, id} {
			if got := a.voters(group); got != "A B D" {
				t.Errorf("with a substitute the members of %d are %s", group, got)
			}
		}
		if all := a.States().Node; all[membership.Healthy] != all.Total() {
			t.Errorf("with a substitute the regions are %v", all.Named())
		}
		if r := g.edit(stone(3))[3]; r.Refused != "" {
			t.Errorf("an edit: %+v", r)
		}
		far := grid.ChunkPos{X: 1000}
		a.follow(far)
		if found, err := a.Locate(t.Context(), far); err != nil || slices.ContainsFunc(found.Members, func(m nodemsg.Member) bool { return m.Peer == "C" }) {
			t.Errorf("new land is founded on %+v, %v", found.Members, err)
		}
		end()
		<-time.After(2 * time.Minute)
		if got := a.voters(id); got != "A B C" {
			t.Errorf("when it answers again the members are %s", got)
		}
	})
}

// slowDown makes every Commit take about as long as a stall, until the returned function is called.
func (d *disk) slowDown(stall time.Duration) (end func()) {
	over, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		for running := true; running; {
			release := d.block()
			<-time.After(stall)
			release()
			select {
			case <-over:
				running = false
			case <-time.After(time.Millisecond):
			}
		}
	}()
	return func() { close(over); <-ended }
}

// The leader's disk takes 0.6 s for each commit, so that it never hangs. It has only just become leader. Another member
// leads soon, because each edit waits for several commits of the leader.
func TestLeadersDiskIsSlow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b, c, g, _ := built(t)
		slow := leaderAmong(a, b, c)
		others := slices.DeleteFunc([]*node{a, b, c}, func(n *node) bool { return n == slow })
		defer slow.disk.slowDown(600 * time.Millisecond)()
		start := time.Now()
		for seq := uint64(91); leaderAmong(others...) == nil; seq++ {
			if time.Since(start) > 5*time.Second {
				t.Fatal("it still leads")
			}
			if err := g.Send(nodemsg.ToRegion{Edits: []nodemsg.Intent{stone(seq)}}); err != nil {
				g = c.refollow()
			}
			<-time.After(50 * time.Millisecond)
		}
		t.Logf("it led for %v", time.Since(start))
	})
}

// All disks are slow, those of the followers more than the leader's, and edits keep them busy. A gateway is accepted
// once the leader has asked the others whether it still leads, however late they answer.
func TestFollowWhileAllDisksAreSlow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b, c, g, _ := built(t)
		leader := leaderAmong(a, b, c)
		for i, n := range []*node{a, b, c} {
			<-time.After(time.Duration(i) * 100 * time.Millisecond)
			stall := 900 * time.Millisecond
			if n == leader {
				stall /= 2
			}
			defer n.disk.slowDown(stall)()
		}
		over, ended := make(chan struct{}), make(chan struct{})
		go func() {
			defer close(ended)
			for seq, sends := uint64(100), true; ; seq++ {
				select {
				case <-over:
					return
				case <-time.After(50 * time.Millisecond):
				}
				sends = sends && g.Send(nodemsg.ToRegion{Edits: []nodemsg.Intent{stone(seq)}}) == nil
			}
		}()
		defer func() { close(over); <-ended }()
		worst := time.Duration(0)
		for range 40 {
			start := time.Now()
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			link, _, err := c.Follow(ctx, here)
			cancel()
			worst = max(worst, time.Since(start))
			if err != nil {
				t.Fatal(err)
			}
			if err := link.Close(); err != nil {
				t.Error(err)
			}
			<-time.After(150 * time.Millisecond)
		}
		if t.Logf("a gateway is accepted after %v at most", worst); worst > 1500*time.Millisecond {
			t.Error("too slow")
		}
		if leaderAmong(a, b, c) != leader {
			t.Error("another member leads: the test shows nothing")
		}
	})
}
