package backups

import (
	"bytes"
	"testing"

	"github.com/voxelpopuli/voxeld/internal/backup"
	"github.com/voxelpopuli/voxeld/internal/kv"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
)

// Of the rows that other nodes send only those that mean something are written, and commands of the policy once, and
// not without end.
func TestTableRows(t *testing.T) {
	var made bytes.Buffer
	out, err := backup.NewWriter(&made, backup.Header{})
	if err != nil {
		t.Fatal(err)
	}
	act := func(seq uint64) []byte {
		row, err := nodemsg.EncodeAct(nodemsg.Act{Key: make([]byte, 32), Seq: seq, Name: "ann", Text: "name ann", Signature: make([]byte, 64)})
		if err != nil {
			t.Fatal(err)
		}
		return row
	}
	row := func(value []byte) kv.Write { return kv.Write{Key: make([]byte, 8), Value: value} }
	rows := &tableRows{out: out, written: make(map[string]bool), newActs: 1}
	for _, c := range []struct {
		what, table string
		row         kv.Write
		want        bool
	}{
		{"no command", backup.PolicyTable, row([]byte("?")), false},
		{"a command", backup.PolicyTable, row(act(1)), true},
		{"the same", backup.PolicyTable, row(act(1)), false},
		{"one too many", backup.PolicyTable, row(act(2)), false},
		{"no player", backup.PlayersTable, row([]byte("?")), false},
		{"no terrain", backup.BasesTable, row([]byte("?")), false},
		{"no content", backup.ContentsTable, row([]byte("?")), false},
	} {
		if rows.wants(c.table, c.row) != c.want {
			t.Errorf("%s: written %v", c.what, !c.want)
		}
	}
	bad := backup.Record{Table: &backup.Table{Name: backup.PlayersTable, Rows: []byte("?")}}
	if err := rows.add(bad); err == nil || rows.failed != nil {
		t.Errorf("rows that cannot be decoded: %v; the backup fails: %v", err, rows.failed)
	}
}
