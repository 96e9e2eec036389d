package main

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/voxelpopuli/voxeld/chunk"
	"github.com/voxelpopuli/voxeld/cmd/voxeld/internal/admin"
	"github.com/voxelpopuli/voxeld/grid"
)

// flipEdit flips a bit of an edit's block, wherever its row lies in the daemon's database.
func (d *daemon) flipEdit(region string, pos grid.Pos) {
	d.t.Helper()
	id, err := strconv.ParseUint(region, 16, 64)
	if err != nil {
		d.t.Fatal(err)
	}
	at := pos.Chunk()
	key := append(binary.BigEndian.AppendUint64(nil, id), 'e')
	key = binary.BigEndian.AppendUint32(key, uint32(at.X))
	key = binary.BigEndian.AppendUint32(key, uint32(at.Z))
	key = binary.BigEndian.AppendUint32(key, uint32(chunk.At(pos)))
	file, err := os.OpenFile(filepath.Join(d.dir, databaseName), os.O_RDWR, 0)
	if err != nil {
		d.t.Fatal(err)
	}
	defer file.Close()
	var image []byte
	eventually(d.t, "the edit is in the tables' file, not only in the journal", patience, func() bool {
		image, err = os.ReadFile(file.Name())
		return err != nil || bytes.Contains(image, key)
	})
	if err != nil {
		d.t.Fatal(err)
	}
	for from := 0; ; {
		i := bytes.Index(image[from:], key)
		if i < 0 {
			break
		}
		from += i + len(key)
		if _, err := file.WriteAt([]byte{image[from+1] ^ 4}, int64(from+1)); err != nil {
			d.t.Fatal(err)
		}
	}
}

// scrub runs the command for a cell.
func (d *daemon) scrub(cell string) (answer admin.Scrub, code int) {
	d.t.Helper()
	out, errs, code := voxeld(d.t, "region", "scrub", "--json", "--data-dir", d.dir, "--", cell)
	var all []admin.Scrub
	if err := json.Unmarshal([]byte(out), &all); err != nil || len(all) != 1 {
		d.t.Fatalf("exit %d: %s%s", code, out, errs)
	}
	return all[0], code
}

// A bit flips in the file of a member, first while it runs and then while it is down. An operator's scrub repairs the
// first; the node replaces its replica by itself after the second. Players always see what was built.
func TestScrubRepairsFlippedBits(t *testing.T) {
	t.Parallel()
	all := cluster(t, 3)
	ann := join(t, all[0].Game, "ann", 1)
	built := under(ann, 1, 0, 2)
	ann.until("the ground", func() bool { _, ok := ann.at(built); return ok })
	ann.put(built, chunk.Brick)
	leader, others := leaderOf(t, all, built.Chunk())
	var r admin.Region
	eventually(t, "the region has three members", patience, func() bool {
		regions := leader.regions()
		i := slices.IndexFunc(regions, func(r admin.Region) bool { return r.Edits > 0 })
		if i >= 0 {
			r = regions[i]
		}
		return i >= 0 && r.Voters == 3
	})
	hurt := others[0]
	if hurt == all[0] {
		hurt = others[1]
	}
	if answer, code := leader.scrub(r.Cell); code != 0 || answer.Reported != 3 || answer.Parts < 2 || answer.Damaged != 0 {
		t.Errorf("a sound region: exit %d: %+v", code, answer)
	}
	if answer, code := hurt.scrub(r.Cell); code != exitFailed || !strings.Contains(answer.Error, leader.Status.Peer) {
		t.Errorf("asked at another member: exit %d: %+v", code, answer)
	}
	if _, errs, code := voxeld(t, "region", "scrub", "--data-dir", leader.dir); code != exitUsage {
		t.Errorf("without a cell: exit %d: %s", code, errs)
	}

	hurt.flipEdit(r.ID, built)
	start := time.Now()
	if answer, code := leader.scrub(r.Cell); code != 0 || answer.Damaged != 1 || answer.Repaired != 1 || len(answer.Open) != 0 {
		t.Errorf("after a flip: exit %d: %+v", code, answer)
	}
	t.Logf("a flipped bit was found and repaired by a scrub of %v", time.Since(start))
	if n := hurt.metric("voxeld_scrub_repaired_total"); n != 1 {
		t.Errorf("the damaged node counts %v repairs", n)
	}
	if answer, code := leader.scrub(r.Cell); code != 0 || answer.Damaged != 0 {
		t.Errorf("afterwards: exit %d: %+v", code, answer)
	}

	if code := hurt.terminate(); code != 0 {
		t.Errorf("exit %d", code)
	}
	hurt.flipEdit(r.ID, built)
	hurt.start()
	start = time.Now()
	eventually(t, "the copy is replaced", patience, func() bool {
		var s admin.Status
		hurt.ask("status", &s)
		return len(s.Unusable) == 0 && hurt.metric("voxeld_replicas_discarded_total", "reason", "damaged") == 1
	})
	eventually(t, "three copies are sound again", patience, func() bool {
		answer, code := leader.scrub(r.Cell)
		return code == 0 && answer.Reported == 3 && answer.Members == 3 && answer.Damaged == 0
	})
	t.Logf("a copy with a flipped bit was replaced %v after its node was up", time.Since(start))
	bob := join(t, hurt.Game, "bob", 1)
	bob.sees(built, chunk.Brick)
	if out, errs, code := voxeld(t, "region", "scrub", "--all", "--data-dir", leader.dir); code != 0 || !strings.Contains(out, "3 of 3") {
		t.Errorf("scrub --all: exit %d: %s%s", code, out, errs)
	}
}
