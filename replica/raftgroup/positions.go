package raftgroup

import "github.com/voxelpopuli/voxeld/internal/kv"

// positions are indexes of the log.
// Invariant: replica.stored.Applied ≤ applied ≤ mailed ≤ advanced ≤ commit ≤ log.Last.
type positions struct {
	applied  uint64 // the owner's tables with the unstored writes contain the entries up to here
	mailed   uint64 // entries up to here were put into the mailbox (or are internal)
	visible  uint64 // the last Committed put into the mailbox, or applied at the start
	reported uint64 // index of the owner's last ReportApplied
	advanced uint64 // entries up to here came out of raft as committed
}

func positionsAt(index uint64) positions {
	return positions{applied: index, mailed: index, visible: index, reported: index, advanced: index}
}

// raiseApplied raises the applied index past internal entries, as soon as the owner has applied everything before them.
func (p *positions) raiseApplied() {
	p.applied = max(p.applied, p.reported)
	if p.applied >= p.visible {
		p.applied = p.mailed
	}
}

// unstoredWrites are the writes that the owner has reported and no commit has stored.
type unstoredWrites struct {
	writes []kv.Write
	size   int // bytes
}

func (u *unstoredWrites) add(writes []kv.Write) {
	for _, w := range writes {
		u.size += len(w.Key) + len(w.Value)
	}
	if u.writes == nil {
		u.writes = writes
	} else {
		u.writes = append(u.writes, writes...)
	}
}
