package replica

import (
	"errors"
	"io"

	"go.etcd.io/raft/v3"

	"github.com/voxelpopuli/voxeld/internal/kv"
	"github.com/voxelpopuli/voxeld/replica/raftframe"
)

// This file exports what the simulation (package replica_test) needs beside the API: a host that an external loop
// drives, and calls that answer later where the API's would block.

type (
	Alarm = alarm
	Event = event
)

const (
	Woken   = woken
	Ticked  = ticked
	Flushed = flushed
	Retried = retried
)

func (h *Host) Step(what Event) (more bool) { return h.step(what) }

// Signalled reports whether input has arrived since the last call.
func (h *Host) Signalled() bool {
	select {
	case <-h.input.wake:
		return true
	default:
		return false
	}
}

func (h *Host) SetAlarms(flush, retry Alarm) { h.committer.flush, h.committer.retry = flush, retry }

// KeepEntries makes logs short, so that snapshots are needed.
func (h *Host) KeepEntries(n uint64) { h.node.Limits.KeepEntries = n }

// ShutDown does what Run does at its end.
func (h *Host) ShutDown() error { return h.shutDown() }

func (h *Host) PostOpen(f Founding, reply func(*Group, error)) {
	h.input.post(func() { h.open(f, reply) })
}

func (h *Host) PostJoin(j JoinInfo, reply func(*Group, error)) {
	h.input.post(func() { h.join(j, reply) })
}

func (h *Host) PostClose(g *Group) <-chan error {
	reply := make(chan error, 1)
	h.input.post(func() { h.closeGroup(g, reply) })
	return reply
}

func (h *Host) PostRemove(group uint64, also []kv.Write, reply func(error)) {
	h.input.post(func() { reply(h.rewriteNow(group, h.removal(group, also))) })
}

func (h *Host) PostDiscard(group, id uint64, also []kv.Write, reply func(error)) {
	h.input.post(func() { reply(h.rewriteNow(group, h.discarding(group, id, also))) })
}

func (h *Host) PostSnapshot(peer string, group uint64, r io.Reader, reply func(error)) {
	taken := 0
	taken, err := h.unpack(peer, group, r, func(err error) {
		h.receiving.add(peer, -taken)
		reply(err)
	})
	if err != nil {
		h.receiving.add(peer, -taken)
		reply(err)
	}
}

// Leads visits the replicas that raft considers leaders, in no order.
func (h *Host) Leads(visit func(group, id, term uint64)) {
	for group, r := range h.groups.replicas {
		if term, leads := r.RaftLeader(); leads {
			visit(group, r.ID(), term)
		}
	}
}

// ReplicaID returns this node's replica id in an open group.
func (h *Host) ReplicaID(group uint64) uint64 {
	if r := h.groups.replicas[group]; r != nil {
		return r.ID()
	}
	return 0
}

// Describe returns the contents of a message as text.
func Describe(message []byte) string {
	m, err := raftframe.Decode(message)
	if err != nil {
		return errors.Join(errors.New("no message"), err).Error()
	}
	return raft.DescribeMessage(m, func(b []byte) string { return "" })
}
