package restore

import (
	"encoding/binary"
	"slices"
	"time"

	"github.com/voxelpopuli/voxeld/kv"
	"github.com/voxelpopuli/voxeld/policy"
	"github.com/voxelpopuli/voxeld/region/policysync"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
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

// imports returns rows of what the policy was, which the node enters anew when it runs first: signatures of before do not count in a fork, nor
// do the operators of before, whose charters are gone.
func (a acts) imports(world string, issued policy.Issued) (rows []kv.Write) {
	state := policy.New()
	for number := uint64(1); len(a[number]) > 0; number++ {
		valid := slices.IndexFunc(a[number], func(act nodemsg.Act) bool { return policy.Verify(world, act, issued) == nil })
		if valid >= 0 {
			state.Apply(a[number][valid]) //nolint:errcheck // one that was refused then is refused now
		}
	}
	if state.Acts() == 0 {
		return nil
	}
	urgent, names := state.Commands(time.Now())
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
