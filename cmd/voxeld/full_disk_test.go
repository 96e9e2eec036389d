package main

import (
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/voxelpopuli/voxeld/chunk"
	"github.com/voxelpopuli/voxeld/cmd/voxeld/internal/admin"
	"github.com/voxelpopuli/voxeld/region"
	"github.com/voxelpopuli/voxeld/test/chaos/machine"
	kit "github.com/voxelpopuli/voxeld/test/testkit/daemon"
)

// Status and doctor say of a full disk which it is, how much is free, what is refused and what to do; and nothing once
// it has room again.
func TestFullDiskIsNamed(t *testing.T) {
	if why := machine.DisksMissing(); why != "" {
		t.Skip(why)
	}
	at := filepath.Join(t.TempDir(), "disk")
	disk, err := machine.NewDisk(at+".ext4", at)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { syscall.Unmount(at, syscall.MNT_DETACH) }) //nolint:errcheck // the folder goes anyway
	d := newDaemon(t, kit.Options{Dir: filepath.Join(at, "data")})
	d.start()
	full := func() bool {
		var s admin.Status
		d.ask("status", &s)
		if named := slices.ContainsFunc(s.Problems(), func(p string) bool { return strings.Contains(p, "is full") }); named != s.Disk.Full {
			t.Errorf("full: %v, problems %q", s.Disk.Full, s.Problems())
		}
		return s.Disk.Full
	}
	if text := d.operate("status"); full() || !strings.Contains(text, " free in "+d.dir) {
		t.Errorf("before:\n%s", text)
	}
	ann := join(t, d.Game, "ann", 1)
	spot := under(ann, 1, 0, 0)
	ann.until("the ground", func() bool { _, ok := ann.at(spot); return ok })
	if err := disk.Fill(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the full disk is noticed", patience, func() bool {
		ann.edit(spot, chunk.Planks)
		return full()
	})
	text := d.operate("status")
	for _, want := range []string{d.dir, "is full (0 B of ", "refuses edits", "Free space"} {
		if !strings.Contains(text, want) {
			t.Errorf("status does not say %q:\n%s", want, text)
		}
	}
	if !slices.ContainsFunc(d.doctor().Findings, func(f region.Finding) bool {
		return f.Kind == "storage" && strings.Contains(f.What, d.dir) && strings.Contains(f.Do, "free space")
	}) {
		t.Errorf("doctor: %+v", d.doctor().Findings)
	}
	if err := disk.MakeRoom(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the disk has room again", patience, func() bool { return !full() })
}
