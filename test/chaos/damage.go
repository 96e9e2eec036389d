package chaos

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/voxelpopuli/voxeld/test/chaos/history"
	"github.com/voxelpopuli/voxeld/test/chaos/machine"
	"github.com/voxelpopuli/voxeld/test/chaos/players"
	"github.com/voxelpopuli/voxeld/test/testkit/process"
)

// This file makes disks full, and flips bits in databases.

// fill fills the disk of one node, or in every third event of all, and frees it again.
func (d *driver) fill(ctx context.Context) error {
	const hold = 10 * time.Second
	kind, victims := "disk full: one node", d.drawNodes(1)
	if d.report.Events%3 == 0 {
		kind, victims = "disk full: all nodes", d.Nodes
	}
	d.log(kind, victims)
	d.report.Fault(kind)
	said := d.writers.Unavailable.Load()
	for _, n := range victims {
		if err := n.disk.Fill(); err != nil {
			return err
		}
	}
	pause(ctx, hold/2)
	mark, full := d.ledger.Count(), d.ledger.Now()
	if _, err := players.ReadAll(ctx, gatewaysOf(victims), d.ledger, players.ReadLimit/4); err != nil && ctx.Err() == nil {
		d.report.Problem("event %d, %s: reads stopped: %v", d.report.Events, kind, err)
	}
	pause(ctx, hold/2)
	acked := 0
	for _, e := range d.ledger.Since(mark) {
		if e.Outcome == history.Acknowledged && e.Invoked > full {
			acked++
		}
	}
	d.report.Count(kind+": edits accepted while it was", "", acked)
	d.report.Count(kind+": answers “unavailable, try again”", "", int(d.writers.Unavailable.Load()-said))
	for _, n := range victims {
		if err := n.disk.MakeRoom(); err != nil {
			return err
		}
	}
	room := d.ledger.Now()
	mark = d.ledger.Count()
	slowest := time.Duration(0)
	for _, at := range d.accepted(ctx, mark, room, d.writers.Cells()) {
		slowest = max(slowest, at-room)
	}
	d.report.Time(kind+": all regions accept edits, since there is room", "", slowest)
	return ctx.Err()
}

// flip flips bits in the database of one node while it is stopped. The node may refuse the database, at once or later: then it
// is wiped, as an operator would, and joins as a new node. Or it continues, because no used page was hit, or because it repairs
// itself. It must not show wrong blocks: it is read when it is back, and all nodes are read at the end.
func (d *driver) flip(ctx context.Context) error {
	n := d.drawNodes(1)[0]
	bits := []int{1, 8, 64}[d.rng.IntN(3)]
	d.log("bits flipped", []*Node{n}, "bits", bits)
	d.report.Fault(fmt.Sprintf("bits flipped: %d", bits))
	d.mayDie.Store(n)
	defer d.mayDie.Store(nil)
	if err := n.kill(); err != nil {
		return err
	}
	if err := machine.FlipBits(filepath.Join(n.dir, "voxeld.db"), bits, d.rng); err != nil {
		return err
	}
	if err := d.startFlipped(ctx, n); err != nil {
		return err
	}
	pause(ctx, 2*time.Second)
	if _, died := n.exitedUnexpectedly(); died || !n.Serves() {
		d.report.Count("flips: database refused while the node ran", "", 1)
		if err := d.replace(ctx, n, n.logTail()); err != nil {
			return err
		}
	}
	if err := d.waitHealthy(ctx); err != nil {
		return err
	}
	if !n.Serves() {
		d.report.Count("flips: database refused while the node ran", "", 1)
		if err := d.replace(ctx, n, n.logTail()); err != nil {
			return err
		}
	}
	// A second node must not be damaged before the first has recovered: that would be more than a minority.
	if _, err := d.expect(ctx, healLimit, func() string { return d.missing(ctx) }); err != nil {
		return errHurt
	}
	return nil
}

// startFlipped starts a node with a damaged database. If it refuses the database, it is replaced by a new node.
func (d *driver) startFlipped(ctx context.Context, n *Node) error {
	err := d.startAll(ctx, []*Node{n})
	if err == nil {
		d.report.Count("flips: node started", "", 1)
		return nil
	}
	if !errors.Is(err, process.ErrEnded) {
		return err
	}
	d.report.Count("flips: database refused at the start", "", 1)
	return d.replace(ctx, n, err.Error())
}

// exitData is voxeld's exit code for an unusable data directory.
const exitData = 3

// replace wipes a node that refused its database, and starts it as a new one. The end of its log must state the
// reason.
func (d *driver) replace(ctx context.Context, n *Node, words string) error {
	if code, _ := n.exitCode(); code != exitData || !strings.Contains(words, "damaged") {
		d.report.Problem("event %d: node %d did not report a damaged database: exit code %d, %s", d.report.Events, n.Number, code, words)
	}
	if err := errors.Join(n.kill(), n.wipe()); err != nil {
		return err
	}
	return d.startAll(ctx, []*Node{n})
}
