package monitoring

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

// A node fails, then the majority; they come back. On the way every panel of the dashboards has data.
func TestNodesFail(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	cert, key := filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	writeCertificate(t, cert, key, 90*24*time.Hour)
	all := newWorld(t, 3, "--tls-cert", cert, "--tls-key", key, "--backup-every", "1h", "--backup-dir", filepath.Join(dir, "backups"))
	p := newPrometheus(t, fast, all...)
	a, b, c := all[0], all[1], all[2]
	a.addMod()
	a.play("--players", "6", "--edits", "1")
	b.play("--players", "2", "--mode", "wander", "--protocol", "original", "--edits", "1")
	b.meddle()
	a.healthy()
	eventually(t, "a region is scrubbed", func() bool { // by its leader; it may be moving
		return slices.ContainsFunc(all, func(n *node) bool { return strings.Count(n.voxeld("region", "scrub", "--all"), "\n") > 1 })
	})
	a.splitAndMerge()
	p.everyPanelHasData(false)

	c.Kill()
	p.fires(c, "VoxeldNodeDown")
	p.everyPanelHasData(true)
	p.fires(a, "VoxeldUnderReplicated")
	b.Kill()
	p.fires(a, "VoxeldNoQuorum", "VoxeldCatalogWithoutMajority")
	b.start("")
	p.clears(b, "VoxeldNodeDown", "VoxeldNoQuorum", "VoxeldCatalogWithoutMajority")
	c.start("")
	p.clears(nil, "VoxeldNodeDown", "VoxeldUnderReplicated", "VoxeldNoQuorum", "VoxeldCatalogWithoutMajority", "VoxeldNodeDisconnected")
	// A node makes its first backup after 30 s, which are half an hour here.
	p.onlyFired("VoxeldNodeDown", "VoxeldUnderReplicated", "VoxeldNoQuorum", "VoxeldCatalogWithoutMajority", "VoxeldNodeDisconnected", "VoxeldBackupTooOld")
}

// No alert fires on a single node, nor while the nodes of a world are drained, killed politely and restarted one by
// one.
func TestQuiet(t *testing.T) {
	t.Parallel()
	single := newWorld(t, 1)
	single[0].play("--players", "4", "--edits", "1")
	alone := newPrometheus(t, calm, single...)

	all := newWorld(t, 3)
	p := newPrometheus(t, calm, all...)
	all[0].healthy()
	all[0].play("--players", "4", "--edits", "1")
	rounds := 1
	if *everything {
		rounds = 5
	}
	for range rounds {
		for _, n := range all {
			n.voxeld("drain")
			<-n.Ended()
			n.start("")
			n.healthy()
		}
	}
	for _, p := range []*prometheus{alone, p} {
		if fired := p.firedSince(p.started); len(fired) > 0 {
			t.Errorf("within %v fired %v", time.Since(p.started), fired)
		}
	}
}

// The condition of every alert is made by a test of this package.
func TestEveryAlertIsMade(t *testing.T) {
	rules, err := os.ReadFile("../prometheus/alerts.yml")
	if err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob("*_test.go")
	if err != nil {
		t.Fatal(err)
	}
	var made strings.Builder
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, call := range regexp.MustCompile(`\.fires\(.*\)`).FindAll(text, -1) {
			made.Write(call)
		}
	}
	alerts := regexp.MustCompile(`(?m)^ *- alert: (\w+)$`).FindAllSubmatch(rules, -1)
	if len(alerts) == 0 {
		t.Fatal("no alerts")
	}
	for _, a := range alerts {
		if !strings.Contains(made.String(), `"`+string(a[1])+`"`) {
			t.Errorf("no test makes the condition of %s", a[1])
		}
	}
}
