package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/voxelpopuli/voxeld/chunk"
	"github.com/voxelpopuli/voxeld/cmd/voxeld/internal/admin"
	"github.com/voxelpopuli/voxeld/cmd/voxeld/internal/joining"
	kit "github.com/voxelpopuli/voxeld/test/testkit/daemon"
	"github.com/voxelpopuli/voxeld/trust"
)

// access returns until when the node's certificate is valid, and what is wrong with it.
func (d *daemon) access() admin.Access {
	d.t.Helper()
	var s admin.Status
	d.ask("status", &s)
	return s.Access
}

// refuses runs a command on the node, which must refuse it for a reason.
func (d *daemon) refuses(reason string, args ...string) {
	d.t.Helper()
	if out, errs, code := voxeld(d.t, append(args, "--data-dir", d.dir)...); code == 0 || !strings.Contains(errs, reason) {
		d.t.Errorf("voxeld %s: exit %d, %s%s; want %q", strings.Join(args, " "), code, out, errs, reason)
	}
}

// The root key of a world is replaced, another node becomes the issuer, and the founder is one no more, while a player
// builds. No node is cut off meanwhile, the former key is worth nothing, and a backup of then is restored with the new
// one only.
func TestRotation(t *testing.T) {
	t.Parallel()
	a := startDaemon(t)
	b, c := startDaemon(t, "--join", a.operate("invite")), startDaemon(t, "--join", a.operate("invite"))
	all := []*daemon{a, b, c}
	for _, d := range all {
		eventually(t, "everybody knows everybody", patience, func() bool { return d.connected() == 2 })
	}
	ann := join(t, c.Game, "ann", 1)
	built := under(ann, 1, 0, 2)
	ann.until("the ground", func() bool { _, ok := ann.at(built); return ok })
	ann.put(built, chunk.Brick)

	b.refuses("run this on the node that has root.key", "peers", "appoint", c.Status.Peer)
	b.refuses("no issuer", "invite")
	a.operate("peers", "appoint", b.Status.Peer)
	eventually(t, "the new issuer has its charter", revocationTime, func() bool { return b.access().Issuer })

	former, err := os.ReadFile(a.rootKey())
	if err != nil {
		t.Fatal(err)
	}
	a.operate("peers", "replace-root")
	fresh, err := os.ReadFile(a.rootKey())
	if err != nil || bytes.Equal(fresh, former) {
		t.Fatalf("the root key is the same, %v", err)
	}
	if kept, err := os.ReadFile(a.rootKey() + ".old"); err != nil || !bytes.Equal(kept, former) {
		t.Errorf("the former root key is not kept: %v", err)
	}
	a.terminate()
	a.start()
	if !a.access().Issuer {
		t.Error("the founder is no issuer after a restart with the new root key")
	}

	put := func(d *daemon, key []byte) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(d.dir, joining.RootKeyFile), key, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	put(b, former)
	b.refuses("not signed by a majority of the root keys", "peers", "appoint", c.Status.Peer)
	put(b, fresh)
	before := map[*daemon]time.Time{}
	for _, d := range all {
		before[d] = d.access().Expires
		// Certificates have times in seconds: one that is issued within the same second ends at the same time.
		eventually(t, "later certificates", patience, func() bool { return time.Now().Add(trust.Lifetime).After(before[d].Add(time.Second)) })
	}
	a.refuses("root.key", "peers", "dismiss", a.Status.Peer)
	b.operate("peers", "dismiss", a.Status.Peer)
	if err := os.Remove(a.rootKey()); err != nil {
		t.Fatal(err)
	}
	for _, d := range []*daemon{a, c} {
		eventually(t, "the new issuer's certificate", patience, func() bool {
			now := d.access()
			if now.Error != "" || d.connected() != 2 {
				t.Fatalf("%s is cut off: %+v, %d peers", d.ip, now, d.connected())
			}
			return now.Expires.After(before[d])
		})
	}
	a.refuses("no issuer", "invite")
	ann.put(built, chunk.Glass)
	for _, d := range all {
		d.terminate()
		d.start()
	}
	newcomer := startDaemon(t, "--join", b.operate("invite"))
	eventually(t, "everybody knows everybody", patience, func() bool { return newcomer.connected() == 3 })
	join(t, newcomer.Game, "bob", 1).sees(built, chunk.Glass)

	file := filepath.Join(t.TempDir(), "world.voxback")
	b.operate("backup", file)
	for _, d := range append(all, newcomer) {
		d.terminate()
	}
	restored := newDaemon(t, kit.Options{})
	old := filepath.Join(t.TempDir(), "former.key")
	if err := os.WriteFile(old, former, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, errs, code := voxeld(t, "restore", file, "--data-dir", restored.dir, "--root-key", old); code == 0 || !strings.Contains(errs, "names another one") {
		t.Errorf("restored with the former root key: exit %d, %s", code, errs)
	}
	if out, errs, code := voxeld(t, "restore", file, "--data-dir", restored.dir, "--root-key", b.rootKey()); code != 0 {
		t.Fatalf("restore: exit %d, %s%s", code, out, errs)
	}
	restored.start()
	if !restored.access().Issuer {
		t.Error("the node of a restored world is no issuer")
	}
	join(t, restored.Game, "bob", 1).sees(built, chunk.Glass)
}
