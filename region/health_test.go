package region

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/region/actor"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
)

// kinds returns the kinds of findings about a subject, or about all subjects if it is empty.
func kinds(health Health, subject string) []string {
	var all []string
	for _, f := range health.Findings {
		if subject == "" || f.Subject == subject {
			all = append(all, f.Kind)
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// Examine finds nothing wrong with a sound world, awake or hibernating, and finds what is wrong with one that is not.
func TestExamine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, a, b, c := three(t)
		g := a.follow(here)
		g.edit(stone(1))
		<-time.After(20 * time.Second) // the catalog has three members
		if health := b.Examiner.Examine(t.Context()); len(health.Findings)+len(health.Unknown) > 0 || health.Regions != 1 || health.Awake != 1 || health.Nodes != 3 {
			t.Errorf("a healthy world: %+v", health)
		}
		if err := g.Close(); err != nil {
			t.Fatal(err)
		}
		<-time.After(30 * time.Second)
		if health := c.Examiner.Examine(t.Context()); len(health.Findings)+len(health.Unknown) > 0 || health.Awake != 0 {
			t.Errorf("a sleeping world: %+v", health)
		}
		cell := grid.CellAt(here, grid.FoundingLabel).String()
		a.opener.probes.land = func(actor.Tx, []byte) { panic("at every tick") }
		b.refollow()
		<-time.After(10 * time.Second)
		if health := c.Examiner.Examine(t.Context()); !slices.Equal(kinds(health, ""), []string{"quarantined"}) || health.Awake != 1 {
			t.Errorf("with one quarantined copy, without which the others go on: %+v", health)
		}
		a.opener.probes.land = nil
		if _, _, err := a.Release(t.Context(), idHere(t, a)); err != nil {
			t.Fatal(err)
		}
		a.refollow()
		<-time.After(5 * time.Second)
		if health := c.Examiner.Examine(t.Context()); len(health.Findings) > 0 {
			t.Errorf("after the release: %+v", health)
		}

		n.kill(c)
		<-time.After(10 * time.Second)
		health := a.Examiner.Examine(t.Context())
		if found := kinds(health, cell); !slices.Equal(found, []string{"under_replicated"}) {
			t.Errorf("without one node: %v", found)
		}
		if found := kinds(health, "C"); !slices.Equal(found, []string{"unreachable"}) {
			t.Errorf("of the missing node: %v", found)
		}
		if found := kinds(health, "node"); len(found) > 0 {
			t.Errorf("of a node that another one answers: %v", found)
		}
		for _, f := range health.Findings {
			if f.Subject == cell && (!strings.HasSuffix(f.What, "missing is that of C") || !strings.Contains(f.Do, "start those")) {
				t.Errorf("of the region: %+v", f)
			}
		}
		n.kill(b)
		<-time.After(10 * time.Second)
		health = a.Examiner.Examine(t.Context())
		for _, subject := range []string{cell, "catalog"} {
			if found := kinds(health, subject); !slices.Equal(found, []string{"no_quorum"}) {
				t.Errorf("without two nodes, %s: %v", subject, found)
			}
		}
		if found := kinds(health, "node"); !slices.Equal(found, []string{"disconnected"}) {
			t.Errorf("of a node that none answers: %v", found)
		}
	})
}

// A member that answers questions and stores nothing is named, as such, by the others: its disk is full.
func TestExamineFullMember(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b, c, g, info := built(t)
		var full, other *node
		for _, n := range []*node{a, b, c} {
			if n.peer == info.Leader {
				other = n
			} else {
				full = n
			}
		}
		full.disk.setRefuse(errors.New("no space left"))
		g.send(nodemsg.ToRegion{Edits: []nodemsg.Intent{stone(90)}})
		<-time.After(10 * time.Second)
		found := 0
		for _, f := range other.Examiner.Examine(t.Context()).Findings {
			if f.Kind == "under_replicated" && f.Subject != "catalog" { // which may have no third member yet
				found++
				if !strings.Contains(f.What, "missing is that of "+full.peer) || !strings.Contains(f.Do, "run voxeld doctor on "+full.peer) {
					t.Errorf("%+v", f)
				}
			}
		}
		if found == 0 {
			t.Error("the missing copies are not found")
		}
		full.disk.setRefuse(nil)
		<-time.After(5 * time.Second)
	})
}

// A full disk is reported.
func TestExamineStall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newNetwork(t).start("A", newDisk())
		g := a.follow(here)
		g.edit(stone(1))
		a.disk.setRefuse(errors.New("no space left"))
		g.send(nodemsg.ToRegion{Edits: []nodemsg.Intent{stone(2)}})
		<-time.After(2 * time.Second)
		if found := kinds(a.Examiner.Examine(t.Context()), "node"); !slices.Equal(found, []string{"storage"}) {
			t.Errorf("with a full disk: %v", found)
		}
		a.disk.setRefuse(nil)
		<-time.After(5 * time.Second)
		if health := a.Examiner.Examine(t.Context()); len(health.Findings) > 0 {
			t.Errorf("with space again: %+v", health)
		}
	})
}
