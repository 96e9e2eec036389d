package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/voxelpopuli/voxeld/chunk"
	"github.com/voxelpopuli/voxeld/cmd/voxeld/internal/admin"
	"github.com/voxelpopuli/voxeld/grid"
	kit "github.com/voxelpopuli/voxeld/test/testkit/daemon"
	"github.com/voxelpopuli/voxeld/test/testkit/objectstore"
	"github.com/voxelpopuli/voxeld/test/testkit/process"
)

// startWithTarget starts a node of a new world that copies its backups to a target.
func startWithTarget(t *testing.T, target string, args ...string) *daemon {
	t.Helper()
	d := newDaemon(t, kit.Options{
		Args:    append([]string{"--backup-every", "1h", "--backup-incremental", "5", "--backup-target", target}, args...),
		Options: process.Options{Env: objectstore.Env()},
	})
	d.init()
	d.start()
	return d
}

// voxeldWithStore runs voxeld with the credentials of the object store. It fails the test if the command leaves
// anything of what it fetched.
func voxeldWithStore(t *testing.T, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	temp := t.TempDir()
	stdout, stderr, code = voxeldWithEnv(t, append(append(os.Environ(), objectstore.Env()...), "TMPDIR="+temp), args...)
	if left, err := os.ReadDir(temp); len(left) > 0 || err != nil {
		t.Errorf("voxeld %s has left %v: %v", args[0], left, err)
	}
	return stdout, stderr, code
}

func (d *daemon) backups() admin.Backups {
	d.t.Helper()
	var s admin.Status
	d.ask("status", &s)
	return s.Backups
}

// backUpNow has the node make its next scheduled backup.
func (d *daemon) backUpNow() (stderr string, code int) {
	d.t.Helper()
	_, errs, code := voxeld(d.t, "backup", "--data-dir", d.dir)
	return errs, code
}

// A world's scheduled backups go to an object store, a full one and incremental ones; they are verified from there, and
// after all machines are lost the world is restored from there on three new ones, with everything that was acknowledged
// before the last backup.
func TestBackupsInAnObjectStore(t *testing.T) {
	t.Parallel()
	store := objectstore.Start(t)
	first := startWithTarget(t, store.URL("world"))
	token := first.invite()
	all := []*daemon{first, startDaemon(t, "--join", token), startDaemon(t, "--join", token)}
	agree(t, all...)
	ann := join(t, all[1].Game, "ann", 1)
	places := []grid.Pos{under(ann, 1, 0, 2), under(ann, 1, 1, 2), under(ann, -1, 1, 2)}
	blocks := []chunk.Block{chunk.Brick, chunk.Glass, chunk.Planks}
	ann.until("the ground", func() bool { _, ok := ann.at(places[0]); return ok })
	var sizes []int64
	for x := range int32(8) { // regions that do not change
		if locate(t, all[0].Game, grid.ChunkPos{X: 1000 + 16*x, Z: 2000}) == "" {
			t.Fatal("no land founded")
		}
	}
	for i, pos := range places {
		ann.putPatiently(pos, blocks[i])
		eventually(t, "all regions have all their members", patience, func() bool { return complete(all) }) // a newcomer does not sign yet
		before := store.Sent()
		if errs, code := first.backUpNow(); code != 0 {
			t.Fatalf("backup %d: exit %d: %s", i, code, errs)
		}
		sizes = append(sizes, store.Sent()-before)
	}
	t.Logf("sent %v bytes", sizes)
	if sizes[1] >= sizes[0] || sizes[2] >= sizes[0] {
		t.Errorf("the incremental backups are not smaller than the full one: %v bytes were sent", sizes)
	}
	if s := first.backups(); s.Error != "" || s.Last.IsZero() || !strings.Contains(s.Target, "s3://"+objectstore.Bucket+"/world at ") {
		t.Errorf("status: %+v", s)
	}
	from := store.URL("world")
	out, errs, code := voxeldWithStore(t, "verify", "--signed", from)
	if code != 0 || strings.Count(out, "incremental backup") != 2 || strings.Count(out, "full backup") != 1 {
		t.Fatalf("voxeld verify: exit %d: %s%s", code, out, errs)
	}
	if out, errs, code := voxeld(t, "verify", from); store.Checks && (code == 0 || !strings.Contains(errs, "AWS_ACCESS_KEY_ID")) {
		t.Errorf("verified without credentials: exit %d: %s%s", code, out, errs)
	}
	for _, d := range all {
		d.kill()
	}

	restored := newDaemon(t, kit.Options{Dir: filepath.Join(t.TempDir(), "data")})
	if out, errs, code = voxeldWithStore(t, "restore", from, "--data-dir", restored.dir, "--root-key", first.rootKey()); code != 0 {
		t.Fatalf("voxeld restore: exit %d: %s%s", code, out, errs)
	}
	restored.start()
	token = restored.invite()
	nodes := []*daemon{restored, startDaemon(t, "--join", token), startDaemon(t, "--join", token)}
	agree(t, nodes...)
	for _, d := range nodes {
		bob := join(t, d.Game, "bob", 1)
		for i, pos := range places {
			bob.sees(pos, blocks[i])
		}
		bob.leave()
	}
}

// While the object store refuses, cuts or hangs, the node goes on; status and doctor say what fails, without secrets;
// and when it works again, the backups that it lacks get there by themselves.
func TestObjectStoreFails(t *testing.T) {
	t.Parallel()
	store := objectstore.Start(t)
	d := startWithTarget(t, store.URL(""))
	ann := join(t, d.Game, "ann", 1)
	place := under(ann, 1, 0, 2)
	ann.until("the ground", func() bool { _, ok := ann.at(place); return ok })
	for i, fault := range []objectstore.Fault{objectstore.Refuse, objectstore.Cut} {
		store.Break(fault)
		errs, code := d.backUpNow()
		if code == 0 || !strings.Contains(errs, "at "+store.Address) {
			t.Errorf("fault %d: exit %d: %s", fault, code, errs)
		}
		ann.putPatiently(place, []chunk.Block{chunk.Brick, chunk.Glass}[i])
		if s := d.backups(); !strings.Contains(s.Error, "not copied to the target: ") || !s.Last.IsZero() {
			t.Errorf("fault %d: status: %+v", fault, s)
		}
		findings := 0
		for _, f := range d.doctor().Findings {
			if f.Kind == "backup" && strings.Contains(f.What, store.Address) {
				findings++
			}
		}
		if findings != 1 {
			t.Errorf("fault %d: doctor has %d findings about it", fault, findings)
		}
	}
	if failures := d.metric("voxeld_backup_target_failures_total"); failures < 2 {
		t.Errorf("%v failures are counted", failures)
	}
	store.Break(objectstore.Hang)
	ended := make(chan int, 1)
	go func() {
		_, code := d.backUpNow()
		ended <- code
	}()
	eventually(t, "the node waits for the object store", patience, func() bool { return store.Hanging() })
	ann.putPatiently(place, chunk.Planks)
	if len(ended) > 0 {
		t.Error("a backup has ended that the object store has not answered")
	}
	store.Break(objectstore.None)
	if code := <-ended; code != 0 {
		t.Errorf("the backup ends with code %d when the object store answers again", code)
	}
	eventually(t, "the backups reach the object store", patience, func() bool {
		s := d.backups()
		return s.Error == "" && !s.Last.IsZero()
	})
	if out, errs, code := voxeldWithStore(t, "verify", store.URL("")); code != 0 || strings.Count(out, "backup") < 2 {
		t.Errorf("voxeld verify: exit %d: %s%s", code, out, errs)
	}
	if strings.Contains(d.Output(), objectstore.SecretKey) {
		t.Error("the log has the secret")
	}
}
