package backups

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/voxelpopuli/voxeld/internal/backup"
	"github.com/voxelpopuli/voxeld/trust"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
	"github.com/voxelpopuli/voxeld/world"
)

// This file has the members of a group sign what a backup has of it (docs/adr/0043). They sign the rows on their disks,
// beside the ticks. In a region that is in use these change all the time, so its leader puts a barrier into the log
// first, as of which all members store the land. They store the next entries a tick or more later; then the region is
// read again. Members of the catalog, and of regions that hibernate, have the same rows without it.

// barrierTime bounds how long a barrier takes to be committed.
const barrierTime = 5 * time.Second

// commitBarrier commits a barrier in a region that this node leads, and returns its index. In other regions, and if it
// cannot be committed, there is none, and the index is 0.
func (e *Exporter) commitBarrier(ctx context.Context, group uint64) uint64 {
	l := e.Regions.Loaded(group)
	if l == nil || l.Raft() == nil || !l.Raft().Status().Self {
		return 0
	}
	ctx, cancel := context.WithTimeout(ctx, barrierTime)
	defer cancel()
	index, err := l.CommitBarrier(ctx, world.Barrier{Nonce: rand.Uint64(), Backup: true})
	if err != nil {
		e.Logger.Debug("no barrier for a backup", "region", group, "error", err)
		return 0
	}
	return index
}

// attest signs the rows that were read.
func (e *Exporter) attest(records []backup.Record) error {
	g, sum := records[0].Group, records[len(records)-1].End.Sum
	node, signature, certificate, err := e.Attester.Attest(trust.Attestation{
		Group: g.ID, Recovered: g.Position.Recovered, Index: g.Position.Index, Sum: sum,
	})
	if err != nil {
		return fmt.Errorf("sign the rows: %w", err)
	}
	g.Attestations = []backup.Attestation{{Node: node, Index: g.Position.Index, Signature: signature, Certificate: certificate}}
	return nil
}

// vouch adds an issuer's signature of who the catalog's members are: of one among them, or else of this node.
func (e *Exporter) vouch(p plan, g *backup.Group) {
	if g.Voucher = p.voucher; g.Voucher != nil || e.Attester == nil {
		return
	}
	s := nodemsg.RegionStatus{Region: g.ID, Epoch: p.epoch}
	for _, m := range p.members {
		s.Members = append(s.Members, nodemsg.MemberStatus{Replica: m})
	}
	if e.Vouch(&s); s.Voucher != nil {
		g.Voucher = voucherOf(s)
	}
}
