package backups

import (
	"crypto/ed25519"
	"encoding/binary"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/internal/backup"
	"github.com/voxelpopuli/voxeld/internal/kv"
	"github.com/voxelpopuli/voxeld/player"
	"github.com/voxelpopuli/voxeld/policy"
	"github.com/voxelpopuli/voxeld/region/policysync"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
	"github.com/voxelpopuli/voxeld/world"
)

var (
	genesis = world.Genesis{Name: "Test", Sections: 4, Terrain: 1, Placement: grid.PlacementWalkad}
	start   = time.Now().Add(-time.Hour)
)

func keyOf(name string) ed25519.PrivateKey {
	seed := make([]byte, ed25519.SeedSize)
	copy(seed, name)
	return ed25519.NewKeyFromSeed(seed)
}

func idOf(name string) player.ID { return player.IDOf(keyOf(name).Public().(ed25519.PublicKey)) }

// sign returns an act of a moment; by "" is an operator.
func sign(by string, at time.Time, text string) nodemsg.Act {
	key := keyOf(by)
	act := nodemsg.Act{At: at.UnixMilli(), Key: key.Public().(ed25519.PublicKey), Seq: uint64(at.UnixMicro()), Name: by, Operator: by == "", Text: text}
	act.Signature = ed25519.Sign(key, policy.SignedText(genesis.ID(), act))
	return act
}

func row(t *testing.T, number int, act nodemsg.Act) kv.Write {
	t.Helper()
	value, err := nodemsg.EncodeAct(act)
	if err != nil {
		t.Fatal(err)
	}
	return kv.Write{Key: binary.BigEndian.AppendUint64(nil, uint64(number)), Value: value}
}

// rows returns the table of a node that has these acts.
func rows(t *testing.T, acts ...nodemsg.Act) (table []kv.Write) {
	t.Helper()
	for i, act := range acts {
		table = append(table, row(t, i+1, act))
	}
	return table
}

// file writes a backup of one region, in which the rollback with that number is the last that is complete, and of the
// policy.
func file(t *testing.T, base backup.Chain, complete int64, acts []kv.Write) string {
	t.Helper()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	out, err := os.Create(filepath.Join(t.TempDir(), "world.voxback"))
	must(err)
	h := backup.Header{Genesis: genesis.Encode(), Begun: start.Add(10 * time.Minute).UnixMilli()}
	if len(base) > 0 {
		id := base.Last().ID
		h.Base = &id
	}
	w, err := backup.NewWriter(out, h)
	must(err)
	group := func(g backup.Group, rows ...kv.Write) {
		must(w.Write(backup.Record{Group: &g}))
		if g.Same != nil {
			return
		}
		table := backup.NewRowsWriter(w.Write)
		for _, row := range rows {
			must(table.Add(row.Key, row.Value))
		}
		must(table.Close())
	}
	cell := grid.CellAt(grid.ChunkPos{}, grid.FoundingLabel)
	info, err := nodemsg.EncodeRegion(nodemsg.Region{ID: 7, Cell: cell, Epoch: 1, Members: []nodemsg.Member{{Peer: "a", Game: "h:1"}}})
	must(err)
	group(backup.Group{ID: world.CatalogID, Position: backup.Position{Index: 5, Term: 1, Next: 2}}, kv.Write{Key: []byte(cell.String()), Value: info})
	g := backup.Group{ID: 7, Cell: cell, Position: backup.Position{Index: 9, Term: 1, Next: 2}}
	if len(base) > 0 {
		sum := base.Last().Sums[7]
		g.Same = &sum
	}
	rolledBack := kv.Write{Key: append(binary.BigEndian.AppendUint64(nil, 7), 'r'), Value: binary.BigEndian.AppendUint64(nil, uint64(complete))}
	group(g, rolledBack, world.StructureRow(7, world.Structure{Edited: true}))
	table := backup.TableWriter{Name: backup.PolicyTable, Emit: w.Write}
	for _, row := range acts {
		must(table.Add(row.Key, row.Value))
	}
	w.AddRows(len(acts))
	must(table.Flush())
	must(w.Close())
	must(out.Close())
	return out.Name()
}

// restore restores the world of the files, and returns the commands that the node is to enter.
func restore(t *testing.T, files ...string) (commands []string, report RestoreReport) {
	t.Helper()
	chain, err := backup.VerifyFiles(t.Context(), files, nil)
	if err != nil {
		t.Fatal(err)
	}
	db := make(kv.Tables)
	report, err = Restore(db, chain, RestoreOptions{Self: nodemsg.Member{Peer: "b", Game: "h:1"}})
	if err != nil {
		t.Fatal(err)
	}
	for _, key := range slices.Sorted(maps.Keys(db[policysync.ImportTable])) {
		commands = append(commands, string(db[policysync.ImportTable][key]))
	}
	return commands, report
}

// The policy is that of the newest backup of a chain, and of its time: the clock may be wrong where it is restored. The
// world was restored between the two, and commands have other numbers since.
func TestPolicyOfTheNewestBackup(t *testing.T) {
	first := file(t, nil, 0, rows(t, sign("", start, "mute bob"), sign("", start.Add(time.Second), "ban ann"), sign("", start.Add(2*time.Second), "set players none")))
	chain, err := backup.VerifyFiles(t.Context(), []string{first}, nil)
	if err != nil {
		t.Fatal(err)
	}
	second := file(t, chain, 0, rows(t, sign("", start.Add(time.Minute), "ban eve 30m"), sign("", start.Add(2*time.Minute), "set guests none")))
	commands, report := restore(t, first, second)
	text := strings.Join(commands, "\n")
	if len(report.Disputed) > 0 || !strings.Contains(text, "sanction ban eve") || strings.Contains(text, "bob") || strings.Contains(text, "ann") {
		t.Errorf("%+v, and these commands:\n%s", report, text)
	}
	if !strings.Contains(text, "set guests none") || strings.Contains(text, "set players none") {
		t.Errorf("settings of another backup:\n%s", text)
	}
}

// A node that lies cannot make a command of others disappear by what it has in its place.
func TestDisputedActs(t *testing.T) {
	acts := []nodemsg.Act{
		sign("", start, "role "+idOf("mod").String()+" moderator"), sign("mod", start.Add(time.Second), "mute eve"),
		sign("mod", start.Add(2*time.Second), "ban eve"), sign("ada", start.Add(3*time.Second), "register"), sign("mod", start.Add(4*time.Second), "ban gus"),
	}
	forged, later := acts[2], acts[2]
	forged.Text = "ban ada"
	later.At++
	for name, c := range map[string]struct {
		lies     []kv.Write
		disputed int
	}{
		"nothing":                    {nil, 0},
		"an earlier command":         {[]kv.Write{row(t, 3, acts[1])}, 1},
		"a later command":            {[]kv.Write{row(t, 3, acts[3])}, 1},
		"a later one of the author":  {[]kv.Write{row(t, 2, acts[4])}, 1},
		"all one number further":     {rows(t, acts[1:]...), 4},
		"all in the reverse order":   {rows(t, acts[4], acts[3], acts[2], acts[1], acts[0]), 4},
		"a command of somebody else": {[]kv.Write{row(t, 3, sign("mallory", start.Add(time.Minute), "register"))}, 1},
		"a forged command":           {[]kv.Write{row(t, 3, forged)}, 0},
		"another time":               {[]kv.Write{row(t, 3, later)}, 0},
		"another end":                {[]kv.Write{row(t, 3, acts[3]), row(t, 6, acts[2])}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			commands, report := restore(t, file(t, nil, 0, append(c.lies, rows(t, acts...)...)))
			text := strings.Join(commands, "\n")
			for _, want := range []string{"sanction mute eve", "sanction ban eve", idOf("mod").String(), " moderator", " ada"} {
				if !strings.Contains(text, want) {
					t.Errorf("nothing of %q in these commands:\n%s", want, text)
				}
			}
			if strings.Contains(text, "ban ada") || len(report.Disputed) != c.disputed {
				t.Errorf("the numbers %v are disputed, want %d, and these commands:\n%s", report.Disputed, c.disputed, text)
			}
		})
	}
}

// Rollbacks that were not complete are named: nothing carries them on.
func TestUnfinishedRollbacks(t *testing.T) {
	near, far := grid.BoxOf(grid.Pos{}, grid.Pos{X: 9, Y: 9, Z: 9}), grid.BoxOf(grid.Pos{X: 90_000}, grid.Pos{X: 90_009, Y: 9, Z: 9})
	long := start.Add(-31 * 24 * time.Hour)
	revert := func(at time.Time, box grid.Box) nodemsg.Act {
		return sign("", at, policy.RevertText("eve", at.UnixMilli(), box))
	}
	for name, c := range map[string]struct {
		acts     []nodemsg.Act
		complete time.Time
		want     string
	}{
		"left":         {[]nodemsg.Act{revert(start, near)}, start.Add(-time.Minute), "not complete in 1 region"},
		"paused":       {[]nodemsg.Act{revert(start, near), sign("", start.Add(time.Second), "pause")}, start.Add(-time.Minute), "(paused)"},
		"complete":     {[]nodemsg.Act{revert(start, near)}, start, ""},
		"aborted":      {[]nodemsg.Act{revert(start, near), sign("", start.Add(time.Second), "abort")}, start.Add(-time.Minute), ""},
		"elsewhere":    {[]nodemsg.Act{revert(start, far)}, start.Add(-time.Minute), ""},
		"long ago":     {[]nodemsg.Act{revert(long, near)}, long.Add(-time.Minute), "not complete in 1 region"},
		"the last one": {[]nodemsg.Act{revert(start, near), revert(start.Add(time.Second), near)}, start, "2: an operator undoes changes of eve"},
	} {
		t.Run(name, func(t *testing.T) {
			_, report := restore(t, file(t, nil, c.complete.UnixMilli(), rows(t, c.acts...)))
			text := strings.Join(report.Unfinished, "\n")
			if len(report.Unfinished) > 1 || (text == "") != (c.want == "") || !strings.Contains(text, c.want) {
				t.Errorf("%q, want %q", text, c.want)
			}
		})
	}
}
