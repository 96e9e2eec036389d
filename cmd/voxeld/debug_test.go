package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"os"
	"path"
	"path/filepath"
	"strings"
	"testing"

	kit "github.com/voxelpopuli/voxeld/test/testkit/daemon"
	"github.com/voxelpopuli/voxeld/test/testkit/objectstore"
	"github.com/voxelpopuli/voxeld/test/testkit/process"
)

// bundle runs voxeld debug bundle on a node and returns the files of the bundle.
func (d *daemon) bundle(args ...string) map[string]string {
	d.t.Helper()
	file := filepath.Join(d.t.TempDir(), "bundle.tar.gz")
	if out, errs, code := voxeld(d.t, append([]string{"debug", "bundle", file, "--data-dir", d.dir}, args...)...); code != 0 || out != file+"\n" {
		d.t.Fatalf("voxeld debug bundle: exit %d: %s%s", code, out, errs)
	}
	f, err := os.Open(file)
	if err != nil {
		d.t.Fatal(err)
	}
	defer f.Close()
	unpacked, err := gzip.NewReader(f)
	if err != nil {
		d.t.Fatal(err)
	}
	files := make(map[string]string)
	for in := tar.NewReader(unpacked); ; {
		header, err := in.Next()
		if errors.Is(err, io.EOF) {
			return files
		}
		if err != nil {
			d.t.Fatal(err)
		}
		content, err := io.ReadAll(in)
		if err != nil {
			d.t.Fatal(err)
		}
		if strings.HasSuffix(header.Name, ".pprof") {
			plain, err := gzip.NewReader(bytes.NewReader(content))
			if err != nil {
				d.t.Fatalf("%s is no profile: %v", header.Name, err)
			}
			if content, err = io.ReadAll(plain); err != nil {
				d.t.Fatal(err)
			}
		}
		files[path.Base(header.Name)] = string(content)
	}
}

// A bundle has all that is needed to look into a problem, and no secret: no key, token or password, and no IP address.
func TestDebugBundle(t *testing.T) {
	t.Parallel()
	const address = "203.0.113.9"
	first := newDaemon(t, kit.Options{
		Args:    []string{"--announce", "/ip4/" + address + "/tcp/4001", "--backup-every", "1h", "--backup-target", "s3://backups?endpoint=http://127.0.0.1:1"},
		Options: process.Options{Env: objectstore.Env()},
	})
	first.init()
	first.start()
	owner, _, found := strings.Cut(between(first.Output(), "type /owner "), " ")
	if !found || len(owner) != len("abcd-efgh-ijkl-mnop") {
		t.Fatalf("the node has printed %q as the owner's token", owner)
	}
	token := first.invite()
	join(t, first.Game, "ann", 1)
	voxeld(t, "revoke", "--data-dir", first.dir, token)
	if errs, code := first.backUpNow(); code == 0 {
		t.Errorf("a backup to nowhere succeeds: %s", errs)
	}
	key, err := os.ReadFile(first.rootKey())
	if err != nil {
		t.Fatal(err)
	}
	secrets := map[string]string{
		"the owner's token": owner, "a join token": token[:40], "the root key": strings.TrimSpace(string(key)), "the key of the object store": objectstore.SecretKey,
	}
	files := first.bundle()
	for name, want := range map[string]string{
		"about.txt": "voxeld debug bundle", "status.json": `"peer"`, "doctor.json": "not copied to the target", "peers.json": "[", "regions.json": `"cell"`,
		"metrics.txt": "voxeld_build_info", "log.txt": "backup not copied to the target", "config.json": `"backup_target"`, "process.txt": "goroutines",
		"goroutines.txt": "main.run", "heap.pprof": "inuse_space", "cpu.pprof": "cpu", "machine.txt": "processors",
	} {
		if !strings.Contains(files[name], want) {
			t.Errorf("%s lacks %q: %.300s", name, want, files[name])
		}
	}
	if !strings.Contains(files["config.json"], "/ip4/ip-") {
		t.Errorf("the announced address is not replaced: %s", files["config.json"])
	}
	for name, content := range files {
		for what, secret := range secrets {
			if strings.Contains(content, secret) {
				t.Errorf("%s has %s", name, what)
			}
		}
		if strings.Contains(content, address) {
			t.Errorf("%s has an IP address", name)
		}
	}
	if !strings.Contains(first.bundle("--addresses")["config.json"], address) {
		t.Error("no address is left in a bundle with addresses")
	}

	second := startDaemon(t, "--join", first.invite(), "--join", "/ip4/"+first.ip+"/tcp/4001/p2p/"+first.Status.Peer)
	if config := second.bundle()["config.json"]; strings.Contains(config, token[:40]) || !strings.Contains(config, "vx2…") {
		t.Errorf("the configuration of a node that has joined: %s", config)
	}

	first.kill()
	file := filepath.Join(t.TempDir(), "bundle.tar.gz")
	if _, errs, code := voxeld(t, "debug", "bundle", file, "--data-dir", first.dir); code != exitFailed || !strings.Contains(errs, "missing: log.txt") {
		t.Errorf("of a node that does not run: exit %d: %s", code, errs)
	}
	if info, err := os.Stat(file); err != nil || info.Mode() != 0o600 {
		t.Errorf("%v: %v", info.Mode(), err)
	}
}

// between returns the text after a mark.
func between(text, mark string) string {
	_, after, _ := strings.Cut(text, mark)
	return after
}
