package backups

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/voxelpopuli/voxeld/internal/backup"
	"github.com/voxelpopuli/voxeld/region/transport"
	"github.com/voxelpopuli/voxeld/trust"
	"github.com/voxelpopuli/voxeld/wire"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
)

// This file fetches copies of groups, and what their members sign about them.

// gather adds the signatures of the members that have answered to that of the source, if there is one. Signed reports
// whether most of the voters have signed these rows, and again whether that may be had if the group is read again.
func (e *Exporter) gather(ctx context.Context, source string, p plan, records []backup.Record) (signed, again bool) {
	g, sum := records[0].Group, records[len(records)-1].End.Sum
	if source != "" && !e.keepSigned(source, records) {
		return false, false
	}
	members := p.sources
	if source == "" {
		members = p.peers()
	}
	others := slices.DeleteFunc(slices.Clone(members), func(peer string) bool { return peer == source })
	answers := make([]backup.Attestation, len(others))
	var wg sync.WaitGroup
	for i, peer := range others {
		wg.Go(func() {
			var err error
			if answers[i], err = e.askAttestation(ctx, peer, g, sum); err != nil {
				e.Logger.Debug("rows of a backup not signed", "region", g.ID, "peer", peer, "error", err)
			}
		})
	}
	wg.Wait()
	same, moved := len(g.Attestations), false
	var differ []string
	for i, a := range answers {
		switch {
		case a.Signature == nil:
			continue
		case a.Sum == nil:
			same++
		case a.Index != g.Position.Index:
			moved = moved || a.Index > g.Position.Index
		default:
			differ = append(differ, others[i])
		}
		g.Attestations = append(g.Attestations, a)
	}
	if 2*same <= p.voters {
		return false, moved
	}
	for _, peer := range differ {
		e.Contradicted(peer, fmt.Sprintf("its copy of %s as of log entry %d is another one than %d members have signed", g.Name(), g.Position.Index, same))
	}
	return true, false
}

// keepSigned removes what a source says that others have signed, and reports whether it has signed what it sent.
func (e *Exporter) keepSigned(source string, records []backup.Record) bool {
	g, sum := records[0].Group, records[len(records)-1].End.Sum
	if e.Attester == nil || len(g.Attestations) != 1 || g.Attestations[0].Sum != nil || e.check(source, g, sum, g.Attestations[0]) != nil {
		g.Attestations = nil
	}
	return g.Attestations != nil
}

// askAttestation asks a member to sign its copy of a group.
func (e *Exporter) askAttestation(ctx context.Context, peer string, g *backup.Group, sum backup.ID) (backup.Attestation, error) {
	q := nodemsg.Export{Group: g.ID, Cell: g.Cell, Index: g.Position.Index, Attest: true, NoRows: true}
	records, err := e.request(ctx, peer, q, backup.MaxRecord)
	if err != nil {
		return backup.Attestation{}, err
	}
	if len(records) != 2 || records[1].End == nil || len(records[0].Group.Attestations) != 1 {
		return backup.Attestation{}, errors.New("it has not signed")
	}
	a := records[0].Group.Attestations[0]
	if a.Sum = nil; records[1].End.Sum != sum {
		a.Sum = &records[1].End.Sum
	}
	return a, e.check(peer, g, sum, a)
}

// request asks a node, possibly this one, for a group, which has so many bytes at most. The first record is the group,
// the others are its rows and tables, and an End.
func (e *Exporter) request(ctx context.Context, peer string, q nodemsg.Export, most int) (records []backup.Record, err error) {
	if peer == e.Self.Peer {
		return e.read(ctx, peer, q)
	}
	err = transport.FetchExport(ctx, e.Questions.Peers, peer, q, func(in *bufio.Reader) error {
		return readRecords(in, most, func(r backup.Record) error {
			records = append(records, r)
			first, rest := records[0].Group, len(records) > 1
			if first == nil || first.ID != q.Group || first.Cell != q.Cell || !first.HasRows() || rest && r.Rows == nil && r.Table == nil && r.End == nil {
				return errors.New("it sent something else")
			}
			return nil
		})
	})
	return records, err
}

// readRecords reads records up to an End.
func readRecords(in *bufio.Reader, most int, each func(backup.Record) error) error {
	for size := 0; size <= most; {
		r, err := wire.ReadFrame[backup.Record](in, backup.MaxRecord)
		if err != nil {
			return err
		}
		size += len(r.Rows) + 64
		if r.Table != nil {
			size += len(r.Table.Rows)
		}
		if err := each(r); err != nil || r.End != nil {
			return err
		}
	}
	return fmt.Errorf("it is larger than %d bytes", most)
}

// check checks what a member has signed of its copy of a group, whose rows have the sum.
func (e *Exporter) check(peer string, g *backup.Group, sum backup.ID, a backup.Attestation) error {
	if a.Sum != nil {
		sum = *a.Sum
	}
	signed := trust.Attestation{Group: g.ID, Recovered: g.Position.Recovered, Index: a.Index, Sum: sum}
	return e.Attester.Check(peer, signed, a.Signature, a.Certificate)
}
