package main

import (
	"flag"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/voxelpopuli/voxeld/chunk"
	"github.com/voxelpopuli/voxeld/grid"
	kit "github.com/voxelpopuli/voxeld/test/testkit/daemon"
	"github.com/voxelpopuli/voxeld/test/testkit/process"
	"github.com/voxelpopuli/voxeld/wire"
)

var realTime = flag.Bool("real-time", false, "TestAnyNodeMayBeLost waits as long as the documents say, with the default of replace_after")

// An operation is one that operators do to a world of running nodes, as the documents describe it.
type operation struct {
	*testing.T
	flags []string  // of all nodes
	nodes []*daemon // of the world
}

// operations are those of docs/operations.md, docs/backup.md and docs/install.md that change which nodes there are, or
// restart them.
var operations = map[string]struct {
	nodes int // before
	run   func(o *operation)
}{
	"retire":     {4, (*operation).retire},
	"replace":    {3, (*operation).replace},
	"start anew": {3, (*operation).startAnew},
	"revoke":     {4, (*operation).revoke},
	"restore":    {3, (*operation).restore},
	"drain":      {3, (*operation).drainEach},
	"join":       {2, (*operation).join},
}

// After any operation a world of three nodes survives the loss of one, whichever that is, as soon as its nodes say that
// they are healthy.
func TestAnyNodeMayBeLost(t *testing.T) {
	for name, op := range operations {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := &operation{T: t}
			if !*realTime {
				o.flags = []string{"--replace-after", "2s"}
			}
			o.nodes = cluster(t, op.nodes, o.flags...)
			healthy(t, o.nodes)
			ann := join(t, o.nodes[0].Game, "ann", 1)
			built := under(ann, 1, 0, 2)
			ann.until("the ground", func() bool { _, ok := ann.at(built); return ok })
			ann.put(built, chunk.Brick)
			ann.leave()
			op.run(o)
			healthy(t, o.nodes)
			survive(t, o.nodes, built)
		})
	}
}

// healthy waits on each node as an operator does.
func healthy(t *testing.T, nodes []*daemon) {
	t.Helper()
	for _, d := range nodes {
		if out, errs, code := voxeld(t, "status", "--wait", "healthy", "--timeout", patience.String(), "--data-dir", d.dir); code != 0 {
			t.Fatalf("voxeld status --wait healthy on %s: exit %d: %s%s", d.ip, code, out, errs)
		}
	}
}

// survive kills each node, one after the other, and starts it again. Through all others players go on to build, land is
// founded, and a ban takes effect.
func survive(t *testing.T, nodes []*daemon, built grid.Pos) {
	t.Helper()
	kinds := []chunk.Block{chunk.Glass, chunk.Planks, chunk.Stone, chunk.Brick}
	last := chunk.Brick
	owner := joinWithKey(t, nodes[0].Game, "keeper", "keeper")
	if said := owner.command("owner " + nodes[0].operate("owner")); !strings.HasPrefix(said, "You own") {
		t.Fatalf("/owner: %s", said)
	}
	owner.leave()
	for i, victim := range nodes {
		victim.kill()
		rest := slices.DeleteFunc(slices.Clone(nodes), func(d *daemon) bool { return d == victim })
		for j, d := range rest {
			ann := join(t, d.Game, "ann", 1)
			ann.sees(built, last)
			last = kinds[(i+j)%len(kinds)]
			ann.putPatiently(built, last)
			ann.leave()
			owner := joinWithKey(t, d.Game, "keeper", "keeper")
			far := grid.Pos{X: 1024 * int32(i+1), Y: 70, Z: 1024 * int32(j+1)} //nolint:gosec // few nodes
			owner.until("the role of an owner", func() bool { return owner.Permissions.Role == "owner" })
			owner.enter(fmt.Sprintf("tp %d %d %d", far.X, far.Y, far.Z))
			owner.until(fmt.Sprintf("new land at %v", far), func() bool { _, founded := owner.at(far); return founded })
			owner.leave()
		}
		name := fmt.Sprintf("eve%d", i)
		eve := joinWithKey(t, rest[1].Game, name, name)
		if said := eve.command("register"); !strings.Contains(said, "is yours") {
			t.Errorf("without node %d: /register: %s", i, said)
		}
		rest[0].operate("ban", name)
		if why := eve.ended(); why != wire.FailBanned {
			t.Errorf("without node %d: who is banned is disconnected with %q", i, why)
		}
		victim.start()
		healthy(t, nodes)
	}
}

// without waits, as the documents say, until nodes that were stopped or lost count no longer.
func (o *operation) without(gone ...*daemon) {
	o.Helper()
	o.nodes = slices.DeleteFunc(o.nodes, func(d *daemon) bool { return slices.Contains(gone, d) })
	if *realTime {
		if err := process.Pause(o.Context(), 2*time.Minute); err != nil {
			o.Fatal(err)
		}
		return
	}
	eventually(o.T, "no group has the nodes that are gone as members", patience, func() bool {
		for _, d := range o.nodes {
			if d.metric("voxeld_catalog_members") != float64(len(o.nodes)) {
				return false
			}
			for _, r := range d.regions() {
				if slices.ContainsFunc(gone, func(d *daemon) bool { return slices.Contains(r.Members, d.Status.Peer) }) {
					return false
				}
			}
		}
		return true
	})
}

// add starts another node.
func (o *operation) add(token string, at kit.Options) {
	o.Helper()
	at.Args = append([]string{"--join", token}, o.flags...)
	d := newDaemon(o.T, at)
	d.start()
	o.nodes = append(o.nodes, d)
}

// retire stops one of four nodes for good.
func (o *operation) retire() {
	last := o.nodes[3]
	if code := last.terminate(); code != 0 {
		o.Errorf("the retired node exits with %d", code)
	}
	o.without(last)
}

// replace starts another node for one whose machine is lost.
func (o *operation) replace() {
	lost := o.nodes[1]
	lost.kill()
	o.add(o.nodes[0].operate("invite"), kit.Options{})
	o.without(lost)
}

// startAnew has a node join again with an empty data directory.
func (o *operation) startAnew() {
	old := o.nodes[2]
	token := o.nodes[0].operate("invite")
	if code := old.terminate(); code != 0 {
		o.Errorf("the node exits with %d", code)
	}
	o.add(token, kit.Options{IP: old.ip})
	o.without(old)
}

// revoke excludes one of four nodes. It goes on to run.
func (o *operation) revoke() {
	last := o.nodes[3]
	o.nodes[0].operate("peers", "revoke", last.Status.Peer, "--reason", "its token has leaked")
	o.nodes = o.nodes[:3]
	eventually(o.T, "the nodes are not connected to the excluded one", revocationTime, func() bool {
		return !slices.ContainsFunc(o.nodes, func(d *daemon) bool { return d.connected() != 2 })
	})
	o.without(last)
}

// restore makes a backup, stops the world, restores it on one node, and has two others join.
func (o *operation) restore() {
	agree(o.T, o.nodes...)
	file := o.nodes[1].backUp()
	key := o.nodes[0].rootKey()
	for _, d := range o.nodes {
		d.terminate()
	}
	first := newDaemon(o.T, kit.Options{Dir: filepath.Join(o.TempDir(), "data"), Args: o.flags})
	if out, errs, code := voxeld(o.T, "restore", file, "--data-dir", first.dir, "--root-key", key); code != 0 {
		o.Fatalf("voxeld restore: exit %d: %s%s", code, out, errs)
	}
	first.start()
	o.nodes = []*daemon{first}
	token := first.operate("invite", "--uses", "2", "--issuer")
	o.add(token, kit.Options{})
	o.add(token, kit.Options{})
}

// drainEach restarts all nodes, one after the other.
func (o *operation) drainEach() {
	for _, d := range o.nodes {
		d.drain()
		d.start()
		healthy(o.T, o.nodes)
	}
}

// join adds a third node.
func (o *operation) join() { o.add(o.nodes[0].operate("invite"), kit.Options{}) }
