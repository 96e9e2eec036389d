package backups

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"slices"
	"time"

	"github.com/dustin/go-humanize/english"

	"github.com/voxelpopuli/voxeld/internal/backup"
	"github.com/voxelpopuli/voxeld/internal/kv"
	"github.com/voxelpopuli/voxeld/policy"
	"github.com/voxelpopuli/voxeld/region/policysync"
	"github.com/voxelpopuli/voxeld/replica"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
	"github.com/voxelpopuli/voxeld/world"
)

// acts are those of a backup, by number: what nodes have, mostly one.
type acts map[uint64][]nodemsg.Act

// add adds a row of the policy's table. Rows that are no acts are left out.
func (a acts) add(row kv.Write) {
	act, err := nodemsg.DecodeAct(row.Value)
	if err != nil || len(row.Key) != 8 {
		return
	}
	number := binary.BigEndian.Uint64(row.Key)
	a[number] = append(a[number], act)
}

// inOrder returns the acts with valid signatures, in the order of their numbers, and the numbers under which nodes have
// different ones. If there are such numbers, a node lies, or has those from before an earlier restore. It cannot change
// what others have signed, only give it another number. So the order is then that of the signed times, and no act is
// lost.
func (a acts) inOrder(world string, issued policy.Issued) (all []nodemsg.Act, disputed []uint64) {
	for number := uint64(1); len(a[number]) > 0; number++ {
		valid := slices.DeleteFunc(a[number], func(act nodemsg.Act) bool { return policy.Verify(world, act, issued) != nil })
		slices.SortStableFunc(valid, bySignedTime)
		valid = slices.CompactFunc(valid, func(a, b nodemsg.Act) bool { return bySignedTime(a, b) == 0 })
		if len(valid) > 1 {
			disputed = append(disputed, number)
		}
		all = append(all, valid...)
	}
	if len(disputed) > 0 {
		slices.SortStableFunc(all, bySignedTime)
	}
	return all, disputed
}

// bySignedTime orders acts by their signed times. It returns 0 for the same act, whatever the catalog's leader has
// added.
func bySignedTime(a, b nodemsg.Act) int {
	return cmp.Or(cmp.Compare(a.Seq, b.Seq), bytes.Compare(a.Key, b.Key))
}

// policyOf returns what the policy was.
func policyOf(all []nodemsg.Act) *policy.State {
	state := policy.New()
	for _, act := range all {
		state.Apply(act) //nolint:errcheck // one that was refused then is refused now
	}
	return state
}

// imports returns rows of what the policy was at the time of the backup, which the node enters anew when it runs first:
// signatures of before do not count in a fork, nor do the operators of before, whose charters are gone.
func imports(state *policy.State, at time.Time) (rows []kv.Write) {
	if state.Acts() == 0 {
		return nil
	}
	urgent, names := state.Commands(at)
	add := func(prefix string, texts []string) {
		for i, text := range texts {
			key := binary.BigEndian.AppendUint64([]byte(prefix), uint64(i))
			rows = append(rows, kv.Write{Table: policysync.ImportTable, Key: key, Value: []byte(text)})
		}
	}
	add(policysync.ImportUrgent, urgent)
	add(policysync.ImportNames, names)
	return rows
}

// unfinished describes the rollbacks that were not complete in all of their regions when the backup was made. Nothing
// carries them out any more: the commands of before count no more.
func unfinished(db replica.Reader, state *policy.State, chain backup.Chain) (all []string, err error) {
	var orders []policy.Rollback
	for _, order := range state.Rollbacks() {
		if !order.Aborted {
			orders = append(orders, order)
		}
	}
	if len(orders) == 0 {
		return nil, nil
	}
	left := make(map[int]int) // regions by order
	for _, g := range chain.Latest() {
		if g.ID == world.CatalogID || g.File < 0 || chain.Last().Splits[g.ID] != 0 {
			continue // without land
		}
		complete, err := world.RolledBackIn(db.Get, g.ID)
		structure, other := world.StructureIn(db.Get, g.ID)
		if err = cmp.Or(err, other); err != nil {
			return nil, err
		}
		if !structure.Edited {
			continue // without a history
		}
		for _, order := range orders {
			if order.Number > complete && g.Cell.Area().Overlaps(order.Box.Area()) {
				left[order.ID]++
			}
		}
	}
	for _, order := range orders {
		if n := left[order.ID]; n > 0 {
			text := order.Line().Text
			if order.Undoes == 0 {
				text += ", since " + time.UnixMilli(order.Since).Local().Format(time.DateTime)
			}
			all = append(all, text+": not complete in "+english.Plural(n, "region", ""))
		}
	}
	return all, nil
}
