package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/voxelpopuli/voxeld/chunk"
	"github.com/voxelpopuli/voxeld/motion"
	"github.com/voxelpopuli/voxeld/player"
	"github.com/voxelpopuli/voxeld/region"
	kit "github.com/voxelpopuli/voxeld/test/testkit/daemon"
	"github.com/voxelpopuli/voxeld/test/testkit/process"
	"github.com/voxelpopuli/voxeld/wire/sessionmsg"
)

// clocks has the tests of wrong clocks run. They compile everything anew, Go's library too, which takes minutes of
// processor time.
var clocks = flag.Bool("clocks", false, "run the tests of daemons whose clocks are wrong")

// aheadVariable is the environment variable that says how far a daemon's clock is ahead.
const aheadVariable = "TEST_CLOCK_AHEAD"

// skewedBinary builds a voxeld whose wall clock is ahead by the time in aheadVariable. Everything in it has that clock:
// in package time, Now adds the difference.
var skewedBinary = sync.OnceValues(func() (string, error) {
	plain, err := daemonBinary() // TestMain removes its directory
	if err != nil {
		return "", err
	}
	dir := filepath.Dir(plain)
	root, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		return "", err
	}
	library := filepath.Join(strings.TrimSpace(string(root)), "src", "time")
	source, err := os.ReadFile(filepath.Join(library, "time.go"))
	if err != nil {
		return "", err
	}
	const reads = "	sec, nsec, mono := runtimeNow()\n	if mono == 0 {"
	if strings.Count(string(source), reads) != 1 {
		return "", fmt.Errorf("time.Now of %s is another function than this test expects", runtime.Version())
	}
	skewed := strings.Replace(string(source), reads, "	sec, nsec, mono := runtimeNow()\n	sec += clockAhead\n	if mono == 0 {", 1)
	const ahead = `package time

import "syscall"

var clockAhead = func() int64 {
	text, _ := syscall.Getenv("` + aheadVariable + `")
	d, _ := ParseDuration(text)
	return int64(d / Second)
}()
`
	replace := map[string]string{}
	for name, text := range map[string]string{"time.go": skewed, "ahead.go": ahead} {
		path := filepath.Join(dir, name+".txt")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			return "", err
		}
		replace[filepath.Join(library, name)] = path
	}
	overlay, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return "", err
	}
	list, path := filepath.Join(dir, "overlay.json"), filepath.Join(dir, "voxeld-skewed")
	if err := os.WriteFile(list, overlay, 0o600); err != nil {
		return "", err
	}
	if out, err := exec.Command("go", "build", "-overlay", list, "-o", path, ".").CombinedOutput(); err != nil {
		return "", fmt.Errorf("build: %w\n%s", err, out)
	}
	return path, nil
})

// skewed returns a node that does not run yet, whose clock is ahead. If there is a node, it has its directory and
// address.
func skewed(t *testing.T, of *daemon, ahead time.Duration, args ...string) *daemon {
	t.Helper()
	if !*clocks {
		t.Skip("needs -clocks")
	}
	binary, err := skewedBinary()
	if err != nil {
		t.Fatal(err)
	}
	o := kit.Options{Binary: binary, Args: args, Options: process.Options{Env: []string{aheadVariable + "=" + ahead.String()}}}
	if of != nil {
		of.terminate()
		o.Dir, o.IP = of.dir, of.ip
	}
	return newDaemon(t, o)
}

// expires returns the end of the node's certificate, which must be valid.
func (d *daemon) expires() time.Time {
	d.t.Helper()
	a := d.access()
	if a.Error != "" {
		d.t.Errorf("certificate of %s: %s", d.ip, a.Error)
	}
	return a.Expires
}

// Nodes whose clocks are a day ahead, right, and a day behind are one world: players build and move between them, a ban
// counts everywhere, and doctor names the clocks. A node whose clock is two days off is kept out, and says why.
func TestClocksADayOff(t *testing.T) {
	t.Parallel()
	const day = 24 * time.Hour
	right := skewed(t, nil, 0)
	right.init()
	right.start()
	ahead := skewed(t, nil, day, "--join", right.operate("invite", "--issuer", "--expires", "96h"))
	behind := skewed(t, nil, -day, "--join", right.operate("invite", "--issuer", "--expires", "96h"))
	ahead.start()
	behind.start()
	all := []*daemon{right, ahead, behind}
	for _, d := range all {
		eventually(t, "everybody knows everybody", patience, func() bool { return d.connected() == 2 })
		d.expires()
	}
	for _, d := range []*daemon{ahead, behind} { // until then their players' edits are from the future, or their regions' are
		eventually(t, "the node takes over the time of the others", patience, func() bool { return strings.Contains(d.Output(), `msg="time corrected"`) })
	}
	threefold(t, all)
	puts := func(d *daemon) float64 {
		return d.metric("voxeld_dht_direct_puts_total") + d.metric("voxeld_dht_lookups_total", "put_player")
	}
	var stays motion.Pose
	for i, d := range []*daemon{ahead, behind, right, ahead, behind} {
		before := puts(d)
		ann := dialWithKey(t, d.Game, "ann", "ann")
		ann.until("a welcome", func() bool { return ann.Welcome.Player != "" })
		if i > 0 && ann.Welcome.Pose != stays {
			t.Errorf("step %d: ann left at %+v, and is back at %+v", i, stays, ann.Welcome.Pose)
		}
		pos := under(ann, 1, 0, 2)
		ann.until("the ground", func() bool { _, ok := ann.at(pos); return ok })
		ann.putPatiently(pos, []chunk.Block{chunk.Brick, chunk.Glass}[i%2])
		eventually(t, "the arrival is published", patience, func() bool { return puts(d) > before })
		stays = ann.Welcome.Pose
		stays.Y++
		ann.send(sessionmsg.Move{Pose: stays})
		before = puts(d)
		ann.leave()
		eventually(t, "the departure is published", patience, func() bool { return puts(d) > before })
	}
	for i, d := range all {
		d.operate("ban", player.GuestID(fmt.Sprint("eve", i)).String())
	}
	agree(t, all...)
	eventually(t, "doctor names both clocks", patience, func() bool {
		found := right.doctor().Findings
		return slices.ContainsFunc(found, func(f region.Finding) bool { return f.Kind == "clock" && f.Subject == ahead.Status.Peer }) &&
			slices.ContainsFunc(found, func(f region.Finding) bool { return f.Kind == "clock" && f.Subject == behind.Status.Peer })
	})

	far := skewed(t, nil, -2*day, "--join", right.operate("invite", "--expires", "96h"))
	if err := far.Start(t.Context(), ""); err == nil || !strings.Contains(far.Output(), "set this machine's clock") {
		t.Errorf("a node that is two days behind: %v, %s", err, tail(far.Output(), 5))
	}
}

// Certificates are renewed while nodes run, also by restarts on later days. That of a node that was off for over a
// month has ended: the node says so, and an issuer renews it. After more than a year only a new token lets a node in
// again.
func TestCertificatesExpire(t *testing.T) {
	t.Parallel()
	const day = 24 * time.Hour
	founder := skewed(t, nil, 0)
	founder.init()
	founder.start()
	awake, asleep := skewed(t, nil, 0, "--join", founder.operate("invite")), skewed(t, nil, 0, "--join", founder.operate("invite"))
	awake.start()
	asleep.start()
	first := awake.expires()
	asleep.terminate()
	for _, at := range []time.Duration{11 * day, 29 * day, 45 * day} {
		founder, awake = skewed(t, founder, at), skewed(t, awake, at)
		founder.start()
		awake.start()
		eventually(t, fmt.Sprintf("a certificate renewed after %v", at), patience, func() bool {
			return awake.expires().Sub(first) > at-day && awake.connected() == 1
		})
	}
	asleep = skewed(t, asleep, 45*day)
	asleep.start()
	eventually(t, "a certificate that had ended is renewed", patience, func() bool { return asleep.access().Error == "" && asleep.connected() == 2 })
	asleep.terminate()
	for _, at := range []time.Duration{300 * day, 480 * day} {
		founder, awake = skewed(t, founder, at), skewed(t, awake, at)
		founder.start()
		awake.start()
		eventually(t, fmt.Sprintf("a certificate renewed after %v", at), patience, func() bool { return awake.access().Error == "" && awake.connected() == 1 })
	}
	asleep = skewed(t, asleep, 480*day)
	if err := asleep.Start(t.Context(), ""); err == nil || !strings.Contains(asleep.Output(), "it ended at") || !strings.Contains(asleep.Output(), "new token of voxeld invite") {
		t.Errorf("a node that was off for over a year: %v, %s", err, tail(asleep.Output(), 5))
	}
	if err := asleep.Start(t.Context(), founder.operate("invite")); err != nil {
		t.Fatal(err)
	}
	eventually(t, "everybody knows everybody", patience, func() bool { return asleep.connected() == 2 })
	asleep.expires()
}
