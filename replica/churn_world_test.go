package replica

import (
	"bytes"
	"context"
	"errors"
	"io"
	"slices"
	"strconv"

	"pgregory.net/rapid"

	"github.com/voxelpopuli/voxeld/internal/kv"
	"github.com/voxelpopuli/voxeld/replica/raftlog"
)

// churn is a group whose members change while messages are lost, duplicated and reordered, snapshots fail, and nodes
// crash with their memory. Hosts are stepped by hand, so that a crash can be anywhere. It records what each node was
// told, and compares it with every other node.
type churn struct {
	t     *rapid.T
	nodes map[string]*churnNode
	wire  []packet
	snaps []snapshotPacket

	entries  map[uint64]string   // by index: what any node got as committed
	confs    map[uint64][]Member // by index
	newest   Configured          // the authority that owners ask
	retired  map[uint64]bool     // replica ids that were members once
	restores int
	proposed int
}

type packet struct {
	from, to string
	message  []byte
}

type snapshotPacket struct {
	from, to string
	bytes    []byte
	done     func(error)
}

// churnNode is a node. Its owner's state is every entry by its index, one row each.
type churnNode struct {
	peer    string
	host    *Host
	disk    *disk
	group   *Group
	state   map[uint64]string
	applied uint64
}

var churnPeers = []string{"a", "b", "c", "d", "e"}

var churnTables = []TablePrefix{{Table: "world", Prefix: raftlog.GroupPrefix(5)}}

func (c *churn) boot(n *churnNode) {
	var err error
	n.host, err = NewHost(Options{
		Storage: n.disk, Self: n.peer,
		Send: func(to string, _ uint64, message []byte) { c.wire = append(c.wire, packet{n.peer, to, message}) },
		SendSnapshot: func(to string, _ uint64, write func(io.Writer) error, done func(error)) {
			var b bytes.Buffer
			if err := write(&b); err != nil {
				c.t.Fatal(err)
			}
			c.snaps = append(c.snaps, snapshotPacket{n.peer, to, b.Bytes(), done})
		},
	})
	if err != nil {
		c.t.Fatal(err)
	}
	n.host.node.Limits.KeepEntries = 4
	n.group = nil
	if has, err := n.host.Has(5); err != nil {
		c.t.Fatal(err)
	} else if has {
		c.open(n)
	}
}

func (c *churn) open(n *churnNode) {
	n.host.open(Founding{Group: 5, Members: churnPeers[:3], Tables: churnTables}, func(g *Group, err error) {
		if errors.Is(err, ErrNotMember) {
			c.tombstone(n) // it was removed, and crashed before it reported that
			return
		}
		if err != nil {
			c.t.Fatal(err)
		}
		n.group = g
		c.load(n, g.AppliedIndex())
	})
	pump(n.host)
}

// load reads an owner's state back: it must be the agreed state up to the applied index.
func (c *churn) load(n *churnNode, applied uint64) {
	n.state, n.applied = make(map[uint64]string), applied
	err := n.disk.Scan("world", raftlog.GroupPrefix(5), func(key, value []byte) error {
		index, err := strconv.ParseUint(string(key[8:]), 10, 64)
		n.state[index] = string(value)
		return err
	})
	if err != nil {
		c.t.Fatal(err)
	}
	for index, entry := range c.entries {
		if got := n.state[index]; index <= applied && got != entry {
			c.t.Fatalf("%s has %q at %d, committed was %q; applied %d", n.peer, got, index, entry, applied)
		}
	}
	for index, entry := range n.state {
		if c.entries[index] != entry || index > applied {
			c.t.Fatalf("%s stores %q at %d, which no node was told; applied %d", n.peer, entry, index, applied)
		}
	}
}

func (c *churn) drain(n *churnNode) {
	if n.group == nil {
		return
	}
	for _, d := range n.group.Dequeue() {
		switch d := d.(type) {
		case Committed:
			if have, ok := c.entries[d.Index]; ok && have != string(d.Entry) {
				c.t.Fatalf("entry %d is %q on %s, %q elsewhere", d.Index, d.Entry, n.peer, have)
			}
			if d.Index <= n.applied {
				c.t.Fatalf("%s gets entry %d, it has applied %d", n.peer, d.Index, n.applied)
			}
			c.entries[d.Index] = string(d.Entry)
			n.state[d.Index], n.applied = string(d.Entry), d.Index
			key := append(raftlog.GroupPrefix(5), numbered("", int(d.Index))...)
			n.group.ReportApplied(d.Index, []kv.Write{{Table: "world", Key: key, Value: d.Entry}})
		case Configured:
			c.configured(n, d)
		case Restored:
			c.restores++
			c.load(n, d.Index)
		case Removed:
			c.tombstone(n)
			return
		case Failed:
			if !errors.Is(d.Err, errFull) {
				c.t.Fatal(d.Err)
			}
			n.group = nil // a snapshot arrived on a full disk; followAuthority opens it again
			return
		}
	}
}

// clearFullDisk ends the period in which a node's disk was full.
func (c *churn) clearFullDisk(n *churnNode) {
	if n.disk.refuse == nil {
		return
	}
	n.disk.refuse = nil
	n.host.committer.retryStorage()
	pump(n.host)
}

func (c *churn) configured(n *churnNode, d Configured) {
	if have, ok := c.confs[d.Index]; ok && !slices.Equal(have, d.Members) {
		c.t.Fatalf("configuration %d is %v on %s, %v elsewhere", d.Index, d.Members, n.peer, have)
	}
	c.confs[d.Index] = d.Members
	if d.Index <= c.newest.Index {
		return
	}
	for _, m := range c.newest.Members {
		if !slices.ContainsFunc(d.Members, func(o Member) bool { return o.ID == m.ID && o.Peer == m.Peer }) {
			c.retired[m.ID] = true
		}
	}
	for _, m := range d.Members {
		if c.retired[m.ID] {
			c.t.Fatalf("replica id %d is used again: %v", m.ID, d.Members)
		}
	}
	c.newest = d
}

// tombstone removes a replica, as its owner does.
func (c *churn) tombstone(n *churnNode) {
	c.clearFullDisk(n)
	if n.group != nil {
		n.host.closeGroup(n.group, make(chan error, 1))
		pump(n.host)
		n.group = nil
	}
	var rows []kv.Write
	if err := n.disk.Scan("world", raftlog.GroupPrefix(5), func(key, _ []byte) error {
		rows = append(rows, kv.Write{Table: "world", Key: key})
		return nil
	}); err != nil {
		c.t.Fatal(err)
	}
	if err := n.host.rewriteNow(5, n.host.removal(5, rows)); err != nil {
		c.t.Fatal(err)
	}
}

// followAuthority follows the authority: a new member joins, a removed one leaves, and all nodes trust the newest
// members.
func (c *churn) followAuthority(n *churnNode) {
	c.drain(n) // it may have failed
	i := slices.IndexFunc(c.newest.Members, func(m Member) bool { return m.Peer == n.peer })
	if n.group != nil {
		if own := n.host.groups.replicas[5].ID(); i < 0 || c.newest.Members[i].ID != own {
			if c.retired[own] {
				c.tombstone(n)
			}
		} else if err := n.group.TrustMembers(c.newest); err != nil {
			c.t.Fatal(err)
		}
		return
	}
	has, err := n.host.Has(5)
	if err != nil {
		c.t.Fatal(err)
	}
	if has {
		c.open(n)
		return
	}
	if i < 0 {
		return
	}
	c.clearFullDisk(n)
	j := JoinInfo{Group: 5, ID: c.newest.Members[i].ID, Members: c.newest.Members, Tables: churnTables}
	n.host.join(j, func(g *Group, err error) {
		if errors.Is(err, ErrTombstone) {
			return // it was removed after that
		}
		if err != nil {
			c.t.Fatal(err)
		}
		n.group = g
		c.load(n, g.AppliedIndex())
	})
	pump(n.host)
}

// receive delivers a snapshot.
func (c *churn) receive(s snapshotPacket) {
	n := c.nodes[s.to]
	s.done(await(n.host, func() error { return n.host.ReceiveSnapshot(context.Background(), s.from, 5, bytes.NewReader(s.bytes)) }))
}

func (c *churn) ship(p packet) {
	_ = c.nodes[p.to].host.Receive(p.from, 5, p.message) // refused ones count as lost
}

// change requests a random change from a node that believes to be the leader.
func (c *churn) change(t *rapid.T) {
	peer := rapid.SampledFrom(churnPeers).Draw(t, "whom")
	what := rapid.IntRange(0, 3).Draw(t, "what")
	for _, name := range churnPeers {
		g := c.nodes[name].group
		if g == nil {
			continue
		}
		voters := 0
		for _, m := range g.Configuration().Members {
			if !m.Learner {
				voters++
			}
		}
		switch {
		case what == 0:
			_ = g.AddLearner(peer) // refused for any reason, here and below
		case what == 1:
			_ = g.Promote(peer)
		case what == 2 && voters > 2: // see package doc on the removal from a group of two
			_ = g.Remove(peer)
		case what == 3:
			_ = g.Transfer(peer)
		}
	}
}
