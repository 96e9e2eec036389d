package replica

import (
	"encoding/binary"
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/voxelpopuli/voxeld/internal/kv"
	"github.com/voxelpopuli/voxeld/replica/raftlog"
)

// ledger represents the outside world: it records what was promised to it.
type ledger struct {
	acknowledged []string // in the order of their delivery, each once
	proposed     int
}

// owner stands in for a region: its state is the list of entries, stored one row each, with a count.
type owner struct {
	group   *Group
	log     []string // its state in memory
	leading bool
}

func (o *owner) load(t *rapid.T, d *disk, id uint64) {
	o.log = nil
	err := d.Scan("world", raftlog.GroupPrefix(id), func(_, value []byte) error {
		o.log = append(o.log, string(value))
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func (o *owner) step(t *rapid.T, id uint64, l *ledger) {
	var writes []kv.Write
	index := uint64(0)
	for _, d := range o.group.Dequeue() {
		switch d := d.(type) {
		case Committed:
			at := len(o.log)
			o.log = append(o.log, string(d.Entry))
			if at < len(l.acknowledged) {
				if l.acknowledged[at] != string(d.Entry) {
					t.Fatalf("entry %d is %q, was acknowledged as %q", at, d.Entry, l.acknowledged[at])
				}
			} else {
				l.acknowledged = append(l.acknowledged, string(d.Entry))
			}
			key := binary.BigEndian.AppendUint32(raftlog.GroupPrefix(id), uint32(at))
			writes = append(writes, kv.Write{Table: "world", Key: key, Value: d.Entry})
			index = d.Index
		case Leadership:
			o.leading = d.Self
		case Failed:
			t.Fatalf("group %d failed: %v", id, d.Err)
		}
	}
	if index > 0 {
		o.group.ReportApplied(index, writes)
	}
}

// TestNothingAcknowledgedIsLost runs random schedules of proposals, crashes at any point, refusals and reopenings,
// against an external ledger: what was acknowledged comes back, in order, and the owner's tables match the applied
// index exactly.
func TestNothingAcknowledgedIsLost(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const groups = 3
		d := newDisk()
		ledgers := [groups]ledger{}
		owners := [groups]owner{}
		var h *Host

		openGroup := func(i int) {
			var failure error
			id := uint64(i + 1)
			owners[i] = owner{}
			h.input.post(func() {
				h.open(alone(id), func(g *Group, err error) { owners[i].group, failure = g, err })
			})
			pump(h)
			if failure != nil {
				owners[i].group = nil
				if h.committer.stall == nil && d.refuse == nil {
					t.Fatal(failure)
				}
				return
			}
			owners[i].load(t, d, id)
			if n := len(owners[i].log); n > len(ledgers[i].acknowledged) {
				t.Fatalf("the tables hold %d entries, %d were acknowledged", n, len(ledgers[i].acknowledged))
			}
			if !slices.Equal(owners[i].log, ledgers[i].acknowledged[:len(owners[i].log)]) {
				t.Fatalf("the tables hold %q, acknowledged were %q", owners[i].log, ledgers[i].acknowledged)
			}
		}
		boot := func() {
			var err error
			h, err = NewHost(Options{Storage: d, Self: "me"})
			if err != nil {
				t.Fatal(err)
			}
			h.node.Limits.KeepEntries = 5
			h.node.Limits.Mailbox = 600
			h.node.Limits.Outstanding = 2000
			for i := range owners {
				openGroup(i)
			}
		}
		boot()

		pick := func() int { return rapid.IntRange(0, groups-1).Draw(t, "group") }
		t.Repeat(map[string]func(*rapid.T){
			"propose": func(t *rapid.T) {
				i := pick()
				if owners[i].group == nil {
					return
				}
				for range rapid.IntRange(1, 30).Draw(t, "n") {
					ledgers[i].proposed++
					text := fmt.Sprintf("g%d-%d", i, ledgers[i].proposed)
					if owners[i].group.Propose([]byte(text)) != nil {
						break // overloaded, not leading, or no space: all are possible here
					}
				}
			},
			"take":  func(t *rapid.T) { h.processInput() },
			"turn":  func(t *rapid.T) { h.processInput(); h.commitRound() },
			"pump":  func(t *rapid.T) { pump(h) },
			"flush": func(t *rapid.T) { h.committer.flushDue = true; pump(h) },
			"tick":  func(t *rapid.T) { h.tick(); pump(h) },
			"own": func(t *rapid.T) {
				if i := pick(); owners[i].group != nil {
					owners[i].step(t, uint64(i+1), &ledgers[i])
				}
			},
			"disk full": func(t *rapid.T) {
				d.torn = rapid.Bool().Draw(t, "torn")
				d.refuse = full
			},
			"disk free": func(t *rapid.T) {
				d.refuse = nil
				h.committer.retryStorage()
				pump(h)
				for i := range owners {
					if owners[i].group == nil {
						openGroup(i)
					}
				}
			},
			"retry": func(t *rapid.T) { h.committer.retryStorage(); pump(h) },
			"reopen": func(t *rapid.T) {
				i := pick()
				if owners[i].group == nil {
					return
				}
				reply := make(chan error, 1)
				g := owners[i].group
				h.input.post(func() { h.closeGroup(g, reply) })
				pump(h)
				if err := <-reply; err != nil && d.refuse == nil {
					t.Fatal(err)
				}
				openGroup(i)
			},
			"crash": func(t *rapid.T) {
				d.refuse = nil
				boot()
			},
		})

		// In the end everything works again: all acknowledged entries must be there.
		d.refuse = nil
		boot()
		for i := range owners {
			for range 200 {
				owners[i].step(t, uint64(i+1), &ledgers[i])
				pump(h)
			}
			if !owners[i].leading {
				t.Fatalf("group %d does not lead in the end", i+1)
			}
			if !slices.Equal(owners[i].log, ledgers[i].acknowledged) {
				t.Fatalf("group %d recovered %q, acknowledged were %q", i+1, owners[i].log, ledgers[i].acknowledged)
			}
		}
	})
}

// TestLostCommitWouldBeNoticed: with a disk that loses its last commit at a crash, the test above must fail.
func TestLostCommitWouldBeNoticed(t *testing.T) {
	d := newDisk()
	h := newTestHost(t, d)
	g := openNow(t, h, alone(1))
	g.Dequeue()
	forgetful := &disk{tables: d.tables.Clone()} // from before the entry's commit
	if err := g.Propose([]byte("edit")); err != nil {
		t.Fatal(err)
	}
	pump(h)
	if !slices.Equal(texts(g.Dequeue()), []string{"edit"}) {
		t.Fatal("not acknowledged")
	}
	h = newTestHost(t, forgetful)
	if got := texts(openNow(t, h, alone(1)).Dequeue()); got != nil {
		t.Fatalf("recovered %v from a disk that has it not", got)
	}
}
