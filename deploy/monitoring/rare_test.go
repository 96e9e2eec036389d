package monitoring

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/voxelpopuli/voxeld/chunk"
	"github.com/voxelpopuli/voxeld/test/testkit/cgroup"
	kit "github.com/voxelpopuli/voxeld/test/testkit/daemon"
	"github.com/voxelpopuli/voxeld/test/testkit/netns"
	"github.com/voxelpopuli/voxeld/test/testkit/process"
)

// The disk of a node is full, and gets room again.
func TestFullDisk(t *testing.T) {
	rare(t)
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("needs root, to mount a small disk")
	}
	disk := t.TempDir()
	if err := syscall.Mount("voxeld", disk, "tmpfs", 0, "size=64m"); err != nil {
		t.Skipf("cannot mount a tmpfs: %v", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(disk, syscall.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	n := newNode(t, kit.Options{Dir: filepath.Join(disk, "data")})
	n.start("")
	n.play("--players", "4", "--edits", "2")
	p := newPrometheus(t, fast, n)
	n.healthy()

	filler := filepath.Join(disk, "filler")
	f, err := os.Create(filler)
	if err != nil {
		t.Fatal(err)
	}
	for _, size := range []int{1 << 20, 4096} {
		for err = nil; err == nil; {
			_, err = f.Write(make([]byte, size))
		}
	}
	if !errors.Is(err, syscall.ENOSPC) {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	p.fires(n, "VoxeldStorageRefusesWrites", "VoxeldDiskFilling")
	if err := os.Remove(filler); err != nil {
		t.Fatal(err)
	}
	p.clears(n, "VoxeldStorageRefusesWrites", "VoxeldDiskFilling")
	p.onlyFired("VoxeldStorageRefusesWrites", "VoxeldDiskFilling")
}

// A node does not get its share of the processor: it is stopped for most of the time.
func TestStarvedNode(t *testing.T) {
	rare(t)
	n := newWorld(t, 1)[0]
	n.play("--players", "4", "--edits", "1")
	p := newPrometheus(t, fast, n)
	n.healthy()

	starve := make(chan struct{})
	var starving sync.WaitGroup
	starving.Go(func() {
		tick := time.NewTicker(150 * time.Millisecond)
		defer tick.Stop()
		for next := syscall.SIGSTOP; ; next = syscall.SIGSTOP + syscall.SIGCONT - next {
			select {
			case <-starve:
				n.Signal(syscall.SIGCONT) //nolint:errcheck // the test fails if it stays stopped
				return
			case <-tick.C:
				n.Signal(next) //nolint:errcheck // the test fails if it does not stop
			}
		}
	})
	p.fires(n, "VoxeldSlowTicks")
	close(starve)
	starving.Wait()
	p.clears(n, "VoxeldSlowTicks")
	p.onlyFired()
}

// A node has more to do than its processor can.
func TestBusyNode(t *testing.T) {
	rare(t)
	o := kit.Options{Options: process.Options{Procs: 1}}
	if os.Geteuid() == 0 {
		o.Prefix = []string{"chrt", "--rr", "1"} // it gets its processor, however busy the machine that runs the tests is
	}
	busy(t, o)
}

// A node in a container with half a core has more to do than that.
func TestBusyContainer(t *testing.T) {
	rare(t)
	g := cgroup.New(t)
	g.Limit(50)
	busy(t, kit.Options{Options: process.Options{Prefix: g.Command()}})
}

// busy gives a node more work than its processors can do, and expects the alert.
func busy(t *testing.T, o kit.Options) {
	t.Helper()
	n := newNode(t, o)
	n.start("")
	p := newPrometheus(t, fast, n)
	n.healthy()

	done := make(chan struct{})
	var work sync.WaitGroup
	for range 16 { // garbage collections, more at a time than this process needs processor time for
		work.Go(func() {
			for {
				select {
				case <-done:
					return
				default:
				}
				n.Collect(t.Context()) //nolint:errcheck // the test fails if none succeeds
			}
		})
	}
	p.fires(n, "VoxeldCPUSaturated")
	close(done)
	work.Wait()
	p.clears(n, "VoxeldCPUSaturated")
	p.onlyFired()
}

// The disk of a node needs 0.4 s for each fsync.
func TestSlowDisk(t *testing.T) {
	rare(t)
	strace, err := exec.LookPath("strace")
	if err != nil {
		t.Skip("strace is not installed (tools/need.sh strace strace)")
	}
	n := newWorld(t, 1)[0]
	n.play("--players", "4", "--edits", "2")
	p := newPrometheus(t, fast, n)
	n.healthy()

	slow, err := process.Start(process.Options{Log: filepath.Join(t.TempDir(), "strace")}, strace, "-f", "-qq", "-o", "/dev/null",
		"-e", "trace=fsync,fdatasync", "-e", "inject=fsync,fdatasync:delay_exit=400000", "-p", strconv.Itoa(n.PID()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(slow.Kill)
	p.fires(n, "VoxeldSlowCommits")
	slow.Stop()
	p.clears(n, "VoxeldSlowCommits")
	p.onlyFired()
}

// One node of three cannot reach the others, nor they it, while Prometheus sees all of them: players of the two go on,
// and no region has lost its majority.
func TestNodeCutOff(t *testing.T) {
	rare(t)
	if why := netns.Missing(); why != "" {
		t.Skip(why)
	}
	const prefix = "vxmon"
	if err := netns.Sweep(prefix); err != nil {
		t.Fatal(err)
	}
	bridge, err := netns.NewBridge(prefix, "10.81.0", 3)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := netns.Sweep(prefix); err != nil {
			t.Error(err)
		}
	})
	options := make([]kit.Options, 3)
	for i := range options {
		options[i] = kit.Options{IP: bridge.Address(i + 1), Options: process.Options{Prefix: bridge.Enter(i + 1)}}
	}
	all := newWorldOf(t, options)
	p := newPrometheus(t, calm, all...)
	all[0].healthy()
	all[0].play("--players", "4", "--edits", "1")
	for i := range 3 {
		others := []int{3}
		if i == 2 {
			others = []int{1, 2}
		}
		if err := bridge.DropInbound(i+1, others); err != nil {
			t.Fatal(err)
		}
	}
	p.fires(all[2], "VoxeldNodeDisconnected")
	for i := range 3 {
		if err := bridge.Heal(i + 1); err != nil {
			t.Fatal(err)
		}
	}
	p.clears(all[2], "VoxeldNodeDisconnected")
	p.onlyFired("VoxeldNodeDisconnected", "VoxeldUnderReplicated")
}

// The clock of a node is 10 s ahead.
func TestSkewedClock(t *testing.T) {
	rare(t)
	t.Parallel()
	skewed, err := skewedBinary()
	if err != nil {
		t.Fatal(err)
	}
	a := newWorld(t, 1)[0]
	invitation, err := a.Invite(t.Context(), true)
	if err != nil {
		t.Fatal(err)
	}
	b := newNode(t, kit.Options{Binary: skewed})
	b.start(invitation)
	p := newPrometheus(t, fast, a, b)
	p.fires(nil, "VoxeldClockSkew")
	b.restartAs(func(o *kit.Options) { o.Binary = a.o.Binary })
	p.clears(nil, "VoxeldClockSkew", "VoxeldNodeDown", "VoxeldNoQuorum", "VoxeldUnderReplicated", "VoxeldCatalogWithoutMajority", "VoxeldNodeDisconnected")
}

// A region fails again and again, is quarantined, and is released.
func TestQuarantinedRegion(t *testing.T) {
	rare(t)
	t.Parallel()
	faulty, err := faultBinary()
	if err != nil {
		t.Fatal(err)
	}
	n := newNode(t, kit.Options{Binary: faulty, Options: process.Options{
		Env: []string{fmt.Sprintf("FAULT_VOXELD=tick:%d", chunk.Stone)}, // which bots place
	}})
	n.start("")
	p := newPrometheus(t, fast, n)
	bots := n.play("--players", "4", "--edits", "5")
	p.fires(n, "VoxeldRegionQuarantined", "VoxeldRegionIsolated")
	bots.Stop()
	eventually(t, "the doctor finds no quarantined region", func() bool {
		quarantined := n.findings("quarantined")
		for _, cell := range quarantined {
			n.voxeld("region", "release", cell)
		}
		return len(quarantined) == 0
	})
	p.clears(n, "VoxeldRegionQuarantined", "VoxeldRegionIsolated")
	p.onlyFired("VoxeldRegionQuarantined", "VoxeldRegionIsolated")
}

// A certificate expires tomorrow, and is renewed.
func TestExpiringCertificate(t *testing.T) {
	rare(t)
	t.Parallel()
	dir := t.TempDir()
	cert, key := filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	writeCertificate(t, cert, key, 24*time.Hour)
	n := newNode(t, kit.Options{Args: []string{"--tls-cert", cert, "--tls-key", key}})
	n.start("")
	p := newPrometheus(t, fast, n)
	p.fires(n, "VoxeldCertificateExpiring")
	writeCertificate(t, cert, key, 90*24*time.Hour)
	p.clears(n, "VoxeldCertificateExpiring")
	p.onlyFired("VoxeldCertificateExpiring")
}

// A node's certificate has not been renewed for 24 days, and then is.
func TestExpiringNodeCertificate(t *testing.T) {
	rare(t)
	t.Parallel()
	former, err := formerBinary()
	if err != nil {
		t.Fatal(err)
	}
	current, err := plainBinary()
	if err != nil {
		t.Fatal(err)
	}
	n := newNode(t, kit.Options{Binary: former})
	n.start("")
	p := newPrometheus(t, fast, n)
	p.fires(n, "VoxeldNodeCertificateExpiring")
	n.restartAs(func(o *kit.Options) { o.Binary = current })
	p.clears(n, "VoxeldNodeCertificateExpiring")
}

// The disk for the backups is missing, and comes back.
func TestMissedBackup(t *testing.T) {
	rare(t)
	t.Parallel()
	disk := filepath.Join(t.TempDir(), "disk")
	if err := os.WriteFile(disk, nil, 0o600); err != nil { // not a directory
		t.Fatal(err)
	}
	n := newNode(t, kit.Options{Args: []string{"--backup-every", "1m", "--backup-dir", filepath.Join(disk, "backups")}})
	n.start("")
	p := newPrometheus(t, fast, n)
	eventually(t, "a backup fails", func() bool { return strings.Contains(n.Output(), "scheduled backup failed") })
	p.fires(n, "VoxeldBackupTooOld")
	if err := os.Remove(disk); err != nil {
		t.Fatal(err)
	}
	p.clears(n, "VoxeldBackupTooOld") // with the next one, a minute later
	p.onlyFired("VoxeldBackupTooOld")
}

// The log of commands fills, and has room again.
func TestFullCommandLog(t *testing.T) {
	rare(t)
	t.Parallel()
	short, err := shortLogBinary()
	if err != nil {
		t.Fatal(err)
	}
	current, err := plainBinary()
	if err != nil {
		t.Fatal(err)
	}
	n := newNode(t, kit.Options{Binary: short})
	n.start("")
	p := newPrometheus(t, fast, n)
	for i := range 9 { // of the ten that players may have
		n.voxeld("ban", fmt.Sprintf("203.0.113.%d", i))
	}
	p.fires(n, "VoxeldCommandLogFilling")
	n.restartAs(func(o *kit.Options) { o.Binary = current })
	p.clears(n, "VoxeldCommandLogFilling")
	p.onlyFired("VoxeldCommandLogFilling", "VoxeldNodeDown")
}

// writeCertificate replaces a self-signed certificate and its key by new ones.
func writeCertificate(t *testing.T, certFile, keyFile string, validFor time.Duration) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	now := time.Now()
	template := x509.Certificate{
		SerialNumber: big.NewInt(now.UnixNano()), Subject: pkix.Name{CommonName: "a.example.org"}, DNSNames: []string{"a.example.org"},
		NotBefore: now.Add(-time.Hour), NotAfter: now.Add(validFor),
	}
	cert, err := x509.CreateCertificate(rand.Reader, &template, &template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	for file, block := range map[string]*pem.Block{certFile: {Type: "CERTIFICATE", Bytes: cert}, keyFile: {Type: "PRIVATE KEY", Bytes: private}} {
		if err := os.WriteFile(file, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}
