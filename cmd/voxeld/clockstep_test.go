package main

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/voxelpopuli/voxeld/chunk"
	"github.com/voxelpopuli/voxeld/cmd/voxeld/internal/historycmd"
	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/test/testkit/clockstep"
)

// clockStep is a step of the wall clocks of some nodes of three, and back.
type clockStep struct {
	who    string // leader, issuer, majority or all
	offset time.Duration
	lasts  time.Duration
}

// afterStep is how long after a step all must be as before.
const afterStep = time.Minute

// The wall clocks of running nodes are set wrongly, and back: nothing that lasts is another than before, and nobody is
// locked out. Players edit and moderators give commands meanwhile. With -clocks each step of 30 s, an hour, 40 and 400
// days lasts 40 to 130 s: old history is dropped once a minute.
func TestClockSteps(t *testing.T) {
	t.Parallel()
	if why := clockstep.Missing(); why != "" {
		t.Skip(why)
	}
	const day = 24 * time.Hour
	if !*clocks {
		newSteppedWorld(t).run(t, []clockStep{{"all", 2 * time.Hour, 0}, {"issuer", 400 * day, 0}, {"leader", -40 * day, 0}})
		return
	}
	for _, offset := range []time.Duration{30 * time.Second, time.Hour, 40 * day, 400 * day} {
		t.Run(offset.String(), func(t *testing.T) {
			t.Parallel()
			var steps []clockStep
			for _, who := range []string{"leader", "issuer", "majority", "all"} {
				steps = append(steps, clockStep{who, offset, 65 * time.Second}, clockStep{who, -offset, 40 * time.Second})
			}
			steps[len(steps)-1].lasts = 130 * time.Second
			newSteppedWorld(t).run(t, steps)
		})
	}
}

func (w *steppedWorld) run(t *testing.T, steps []clockStep) {
	for _, s := range steps {
		t.Run(fmt.Sprintf("%s %v", s.who, s.offset), func(t *testing.T) { w.step(t, s) })
	}
}

// steppedWorld is a world of three nodes with an owner, a builder, and somebody who is banned for some hours.
type steppedWorld struct {
	all     []*daemon
	built   grid.Pos // with a history
	rounds  int
	expires []time.Time // of the nodes' certificates
	command uint64
	kept    []historycmd.Change // the history of what was built
}

// changes returns the history of a block.
func (w *steppedWorld) changes(t *testing.T, at grid.Pos, flags ...string) []historycmd.Change {
	t.Helper()
	var found historycmd.Changes
	out := w.all[1].operate(append([]string{"history", "--at", at.String(), "--last", "1000", "--json"}, flags...)...)
	if err := json.Unmarshal([]byte(out), &found); err != nil {
		t.Fatal(err)
	}
	return found.Changes
}

func newSteppedWorld(t *testing.T) *steppedWorld {
	t.Helper()
	w := &steppedWorld{all: cluster(t, 3)}
	for _, d := range w.all {
		eventually(t, "everybody knows everybody", patience, func() bool { return d.connected() == 2 })
		w.expires = append(w.expires, d.expires())
	}
	threefold(t, w.all)
	ada := joinWithKey(t, w.all[0].Game, "ada", "ada's key")
	ada.command("register")
	ada.command("owner " + w.all[0].operate("owner"))
	w.command = ada.commands
	bob := joinWithKey(t, w.all[1].Game, "bob", "bob's key")
	bob.command("register")
	w.built = under(bob, 1, 2, 2)
	bob.until("the ground", func() bool { _, ok := bob.at(w.built); return ok })
	eventually(t, "history is kept", patience, func() bool { // once all members are known to have a version that does
		w.rounds++
		bob.putPatiently(w.built, []chunk.Block{chunk.Brick, chunk.Glass}[w.rounds%2])
		w.kept = w.changes(t, w.built)
		return len(w.kept) > 0
	})
	eve := joinWithKey(t, w.all[2].Game, "eve", "eve's key")
	eve.command("register")
	w.all[2].operate("ban", "eve", "90h", "griefing")
	agree(t, w.all...)
	for _, p := range []*tester{ada, bob, eve} {
		p.Leave()
	}
	return w
}

// nodes returns whose clocks a step concerns.
func (w *steppedWorld) nodes(t *testing.T, who string) []*daemon {
	t.Helper()
	switch who {
	case "leader":
		leader, _ := leaderOf(t, w.all, w.built.Chunk())
		return []*daemon{leader}
	case "issuer":
		return w.all[:1]
	case "majority":
		return w.all[:2]
	}
	return w.all
}

func set(t *testing.T, nodes []*daemon, offset time.Duration) {
	t.Helper()
	for _, d := range nodes {
		if err := clockstep.Step(d.PID(), offset); err != nil {
			t.Fatal(err)
		}
	}
}

func (w *steppedWorld) step(t *testing.T, s clockStep) {
	w.rounds++
	began, nodes := time.Now(), w.nodes(t, s.who)
	set(t, nodes, s.offset)
	defer set(t, nodes, 0)
	edited := w.play(t, nodes[0], 70, "during the step")
	if rest := s.lasts - time.Since(began); rest > 0 {
		<-time.After(rest)
	}
	set(t, nodes, 0)

	corrected := time.Now()
	for _, d := range w.all {
		w.play(t, d, 3, "after the step")
	}
	for i, d := range w.all {
		eventually(t, "everybody is connected", patience, func() bool { return d.connected() == 2 })
		if now := d.expires(); now.Sub(w.expires[i]).Abs() > time.Hour {
			t.Errorf("the certificate of %s ends at %v, before the step %v", d.ip, now, w.expires[i])
		}
		out := d.operate("bans")
		if !strings.Contains(out, "eve") {
			t.Errorf("on %s nobody is banned any more: %s", d.ip, out)
		}
	}
	if now := w.changes(t, w.built); !slices.Equal(now, w.kept) {
		t.Errorf("the history of a block is %+v, before the step %+v", now, w.kept)
	}
	late := w.changes(t, edited, "--since", "10m")
	for _, c := range late {
		if time.Until(c.Time) > time.Minute {
			t.Errorf("an edit of now was made at %v, by the history", c.Time)
		}
	}
	if len(late) < 70 {
		t.Errorf("by the history there were %d changes of late, want at least 70", len(late))
	}
	took := time.Since(corrected)
	t.Logf("all is as before %v after the step", took)
	if took > afterStep {
		t.Errorf("that is more than %v", afterStep)
	}
}

// play has players edit and give a command at a node, and returns where the last of them edited.
func (w *steppedWorld) play(t *testing.T, d *daemon, edits int, when string) (edited grid.Pos) {
	t.Helper()
	for _, p := range []*tester{join(t, d.Game, "guest", 1), joinWithKey(t, d.Game, "bob", "bob's key")} {
		pos := under(p, 1, 2, int32(3+len(p.key)%2))
		if p.key != nil {
			pos = above(pos, 1)
		}
		p.until("the ground", func() bool { _, ok := p.at(pos); return ok })
		for i := range edits {
			p.putPatiently(pos, []chunk.Block{chunk.Brick, chunk.Glass}[(i+w.rounds)%2])
		}
		p.Leave()
		edited = pos
	}
	ada := joinWithKey(t, d.Game, "ada", "ada's key")
	ada.commands = w.command
	if got := ada.command(fmt.Sprintf("say %s, in round %d", when, w.rounds)); !strings.HasPrefix(got, "ada: ") {
		t.Errorf("a command %s is answered %q", when, got)
	}
	w.command = ada.commands
	ada.Leave()
	if got := d.operate("mute", "guest", "1m"); !strings.Contains(got, "muted") {
		t.Errorf("a command of the operator %s is answered %q", when, got)
	}
	d.operate("unmute", "guest")
	return edited
}
