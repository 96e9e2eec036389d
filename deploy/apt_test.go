package deploy

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// aptRoot is a root file system with its own apt and dpkg state: packages are installed there, and not on this machine.
type aptRoot struct {
	t   *testing.T
	dir string
}

func newAptRoot(t *testing.T, source string) aptRoot {
	t.Helper()
	r := aptRoot{t, t.TempDir()}
	for _, dir := range []string{"etc/apt/preferences.d", "var/lib/apt/lists/partial", "var/cache/apt/archives/partial", "var/lib/dpkg/info", "var/lib/dpkg/updates", "var/log/apt"} {
		if err := os.MkdirAll(filepath.Join(r.dir, dir), 0o755); err != nil { //nolint:gosec // apt's user reads it
			t.Fatal(err)
		}
	}
	for file, text := range map[string]string{"var/lib/dpkg/status": "", "etc/apt/sources.list": source + "\n"} {
		if err := os.WriteFile(filepath.Join(r.dir, file), []byte(text), 0o644); err != nil { //nolint:gosec // apt's user reads it
			t.Fatal(err)
		}
	}
	return r
}

// aptGet returns what apt-get prints.
func (r aptRoot) aptGet(args ...string) (string, error) {
	all := append([]string{
		"-o", "Dir=" + r.dir, "-o", "Dir::Bin::methods=/usr/lib/apt/methods", "-o", "Dir::State::status=" + r.dir + "/var/lib/dpkg/status",
		"-o", "APT::Architecture=amd64", "-o", "APT::Architectures::=amd64", "-o", "APT::Sandbox::User=root",
		"-o", "Dpkg::Options::=--root=" + r.dir, "-o", "Dpkg::Options::=--force-not-root", "-o", "Dpkg::Options::=--force-architecture",
		"-o", "DPkg::Path=/usr/sbin:/usr/bin:/sbin:/bin", "-y",
	}, args...)
	out, err := exec.Command("apt-get", all...).CombinedOutput()
	return string(out), err
}

// makeDeb builds a package of the name with dpkg-deb, like those of make release: a control member in gzip.
func makeDeb(t *testing.T, dir, version, arch string) string {
	t.Helper()
	tree := t.TempDir()
	for file, text := range map[string]string{
		"DEBIAN/control": fmt.Sprintf("Package: voxeld\nVersion: %s\nArchitecture: %s\nMaintainer: Ann <ann@example.org>\nDescription: a test\n of two lines\n", version, arch),
		"usr/bin/voxeld": version,
	} {
		path := filepath.Join(tree, file)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil { //nolint:gosec // dpkg wants it so
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o755); err != nil { //nolint:gosec // dpkg wants it so
			t.Fatal(err)
		}
	}
	if err := os.Chmod(tree, 0o755); err != nil { //nolint:gosec // dpkg wants it so
		t.Fatal(err)
	}
	deb := filepath.Join(dir, fmt.Sprintf("voxeld_%s_%s.deb", version, arch))
	run(t, ".", "dpkg-deb", "--root-owner-group", "-Zgzip", "--build", tree, deb)
	return deb
}

// What make release writes is a repository from which apt installs and upgrades: signed, if there is a key.
func TestAptRepository(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("apt is Debian's")
	}
	for _, name := range []string{"apt-get", "dpkg-deb", "gpg", "gpg-agent", "ar"} {
		tool(t, name)
	}
	home, err := os.MkdirTemp("/tmp", "gpg") //nolint:usetesting // the path of gpg's socket must be short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(home) })
	t.Setenv("GNUPGHOME", home)
	t.Cleanup(func() { exec.Command("gpgconf", "--kill", "all").Run() }) //nolint:errcheck // there may be none
	run(t, ".", "gpg", "--batch", "--quiet", "--passphrase", "", "--quick-generate-key", "Ann <ann@example.org>", "ed25519", "sign", "never")
	t.Setenv("APT_KEY", "ann@example.org")
	t.Setenv("SOURCE_DATE_EPOCH", "1700000000")

	debs, repository := t.TempDir(), filepath.Join(t.TempDir(), "apt")
	run(t, ".", "../tools/apt-repository.sh", repository, makeDeb(t, debs, "0.1.0", "amd64"), makeDeb(t, debs, "0.1.0", "arm64"))
	if err := os.Chmod(filepath.Dir(repository), 0o755); err != nil { //nolint:gosec // apt reads it
		t.Fatal(err)
	}
	signed := newAptRoot(t, fmt.Sprintf("deb [signed-by=%s/voxeld.gpg] file:%[1]s stable main", repository))
	mustApt := func(r aptRoot, args ...string) {
		t.Helper()
		if out, err := r.aptGet(args...); err != nil {
			t.Fatalf("apt-get %v: %v\n%s", args, err, out)
		}
	}
	installed := func(want string) {
		t.Helper()
		if is := read(t, filepath.Join(signed.dir, "usr/bin/voxeld")); is != want {
			t.Errorf("version %s is installed, want %s", is, want)
		}
	}
	mustApt(signed, "update")
	mustApt(signed, "install", "voxeld")
	installed("0.1.0")

	first := read(t, filepath.Join(repository, "dists/stable/Release"))
	if !strings.Contains(first, "Date: Tue, 14 Nov 2023 22:13:20 UTC\n") {
		t.Errorf("the time is not that of the commit:\n%s", first)
	}
	run(t, ".", "../tools/apt-repository.sh", repository, makeDeb(t, debs, "0.2.0", "amd64"))
	mustApt(signed, "update")
	mustApt(signed, "upgrade")
	installed("0.2.0")
	mustApt(signed, "install", "--allow-downgrades", "voxeld=0.1.0") // earlier versions stay
	installed("0.1.0")

	// With a wrong key what is served stays.
	wrong := exec.Command("../tools/apt-repository.sh", repository, makeDeb(t, debs, "0.2.1", "amd64"))
	wrong.Env = append(os.Environ(), "APT_KEY=nobody@example.org")
	if out, err := wrong.CombinedOutput(); err == nil {
		t.Errorf("a wrong key signs:\n%s", out)
	}
	mustApt(newAptRoot(t, fmt.Sprintf("deb [signed-by=%s/voxeld.gpg] file:%[1]s stable main", repository)), "update")

	// A repository that somebody has changed is refused.
	packages := filepath.Join(repository, "dists/stable/main/binary-amd64/Packages")
	for _, f := range []string{packages, packages + ".gz"} {
		if err := os.WriteFile(f, []byte("Package: evil\n"), 0o644); err != nil { //nolint:gosec // apt reads it
			t.Fatal(err)
		}
	}
	fresh := newAptRoot(t, fmt.Sprintf("deb [signed-by=%s/voxeld.gpg] file:%[1]s stable main", repository))
	if out, err := fresh.aptGet("update"); err == nil {
		t.Errorf("apt accepts a changed index:\n%s", out)
	}
	t.Setenv("APT_KEY", "")
	run(t, ".", "../tools/apt-repository.sh", repository, makeDeb(t, debs, "0.3.0", "amd64"))
	if out, err := fresh.aptGet("update"); err == nil {
		t.Errorf("apt accepts an unsigned repository:\n%s", out)
	}
	trusting := newAptRoot(t, fmt.Sprintf("deb [trusted=yes] file:%s stable main", repository))
	mustApt(trusting, "update")
	mustApt(trusting, "install", "voxeld")
}
