// Package deploy has no code, only tests of the files with which operators deploy voxeld.
package deploy

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// tool finds a program that checks one of the files here. make test installs promtool where it can.
func tool(t *testing.T, name string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		t.Skipf("%s is not installed", name)
	}
	return path
}

func run(t *testing.T, dir, name string, args ...string) string {
	t.Helper()
	cmd := exec.Command(tool(t, name), args...)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, out)
	}
	return string(out)
}

func read(t *testing.T, file string) string {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func TestPrometheusAcceptsItsFiles(t *testing.T) {
	run(t, "prometheus", "promtool", "check", "config", "prometheus.yml")
	run(t, "prometheus", "promtool", "check", "config", "--lint=all", "--lint-fatal", "prometheus.yml")
}

func TestAlertsFireWhenTheyShould(t *testing.T) {
	run(t, "prometheus", "promtool", "test", "rules", "alerts_test.yml")
}

// Every alert has a test in which it fires and one in which it does not.
func TestEveryAlertIsTested(t *testing.T) {
	tests := read(t, "prometheus/alerts_test.yml")
	alerts := regexp.MustCompile(`- alert: (\w+)`).FindAllStringSubmatch(read(t, "prometheus/alerts.yml"), -1)
	if len(alerts) == 0 {
		t.Fatal("no alerts found")
	}
	for _, a := range alerts {
		if !strings.Contains(tests, `alertname="`+a[1]+`"`) || !strings.Contains(tests, "alertname: "+a[1]+" ") {
			t.Errorf("%s: no test that it fires, or none that it is quiet", a[1])
		}
	}
}

// The runbook has an entry for every alert, to which the alert refers, and none without an alert.
func TestRunbookExplainsEveryAlert(t *testing.T) {
	rules := read(t, "prometheus/alerts.yml")
	var alerts, entries []string
	for _, a := range regexp.MustCompile(`- alert: (\w+)`).FindAllStringSubmatch(rules, -1) {
		alerts = append(alerts, a[1])
		if !strings.Contains(rules, "docs/runbook.md#"+strings.ToLower(a[1])+`"`) {
			t.Errorf("%s has no runbook_url", a[1])
		}
	}
	runbook := read(t, "../docs/runbook.md")
	for _, e := range regexp.MustCompile(`<a id="(voxeld\w+)">`).FindAllStringSubmatch(runbook, -1) {
		entries = append(entries, e[1])
	}
	for i, name := range alerts {
		if !strings.Contains(runbook, name) {
			t.Errorf("the runbook does not name %s", name)
		}
		alerts[i] = strings.ToLower(name)
	}
	slices.Sort(alerts)
	slices.Sort(entries)
	if !slices.Equal(alerts, entries) {
		t.Errorf("the runbook has entries for %v, the alerts are %v", entries, alerts)
	}
}

// The runbook names every finding of voxeld doctor.
func TestRunbookExplainsEveryFinding(t *testing.T) {
	runbook := read(t, "../docs/runbook.md")
	var kinds []string
	for _, file := range []string{
		"../region/health/health.go", "../cmd/voxeld/admin.go", "../cmd/voxeld/internal/joining/access.go",
		"../region/integrity/damages.go",
	} {
		for _, found := range regexp.MustCompile(`(?:found\(|add\(|Kind: |Finding\{\s*|PartDiffers = )"(\w+)"`).FindAllStringSubmatch(read(t, file), -1) {
			kinds = append(kinds, found[1])
		}
	}
	if len(kinds) < 20 {
		t.Fatalf("only %v found", kinds)
	}
	for _, kind := range kinds {
		if !strings.Contains(runbook, "`"+kind+"`") {
			t.Errorf("the runbook does not name %s", kind)
		}
	}
}

// Every metric in an alert is exported; an alert on another metric would never fire.
func TestAlertsNameMetricsThatExist(t *testing.T) {
	exported := metrics(t)
	for _, name := range regexp.MustCompile(`voxeld_\w+`).FindAllString(read(t, "prometheus/alerts.yml"), -1) {
		if name = strings.TrimSuffix(name, "_bucket"); !slices.Contains(exported, name) {
			t.Errorf("docs/data/metrics.csv does not name %s", name)
		}
	}
}

// metrics returns the names of all metrics: docs/data/metrics.csv is generated from a running node.
func metrics(t *testing.T) []string {
	t.Helper()
	var names []string
	for _, m := range regexp.MustCompile("(?m)^(voxeld_[a-z_]+),").FindAllStringSubmatch(read(t, "../docs/data/metrics.csv"), -1) {
		names = append(names, m[1])
	}
	return names
}

func TestComposeReadsItsFiles(t *testing.T) {
	for files, want := range map[string][]string{
		"one.yml":                  {"voxeld"},
		"three.yml":                {"node-a", "node-b", "node-c"},
		"three.yml monitoring.yml": {"grafana", "node-a", "node-b", "node-c", "prometheus"},
	} {
		var args []string
		for f := range strings.FieldsSeq(files) {
			args = append(args, "-f", f)
		}
		services := strings.Fields(run(t, "compose", "docker-compose", append(args, "config", "--services")...))
		slices.Sort(services)
		if !slices.Equal(services, want) {
			t.Errorf("%s: services %v, want %v", files, services, want)
		}
	}
}

// Prometheus scrapes every node of the compose file, at the image's metrics port.
func TestEveryComposeNodeIsScraped(t *testing.T) {
	compose, prometheus, image := read(t, "compose/three.yml"), read(t, "prometheus/prometheus.yml"), read(t, "../Dockerfile")
	port := regexp.MustCompile(`VOXELD_METRICS=\S*:(\d+)`).FindStringSubmatch(image)
	if port == nil {
		t.Fatal("Dockerfile: no VOXELD_METRICS")
	}
	nodes := regexp.MustCompile(`(?m)^  (node-\w+):\n    extends`).FindAllStringSubmatch(compose, -1)
	if len(nodes) != 3 {
		t.Errorf("%d nodes in compose, want 3", len(nodes))
	}
	for _, n := range nodes {
		if !strings.Contains(prometheus, strconv.Quote(n[1]+":"+port[1])) {
			t.Errorf("prometheus.yml: no target %s:%s", n[1], port[1])
		}
	}
}

func TestSystemdUnitIsWellFormedAndTight(t *testing.T) {
	unit := read(t, "systemd/voxeld.service")
	// systemd-analyze looks for the binary, too.
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "voxeld.service"),
		[]byte(strings.ReplaceAll(unit, "=voxeld ", "=/bin/true ")), 0o600); err != nil {
		t.Fatal(err)
	}
	run(t, dir, "systemd-analyze", "verify", "./voxeld.service")
	out := run(t, dir, "systemd-analyze", "security", "--offline=true", "--threshold=20", "./voxeld.service")
	if !strings.Contains(out, "Overall exposure level") {
		t.Errorf("no score in %s", out)
	}
}

// Supervisors kill the daemon only after more than the time that it may take to stop.
func TestSupervisorsHavePatience(t *testing.T) {
	seconds := func(file, pattern string) int {
		found := regexp.MustCompile(pattern).FindStringSubmatch(read(t, file))
		if found == nil {
			t.Fatalf("%s: no %s", file, pattern)
		}
		n, err := strconv.Atoi(found[1])
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	takes := seconds("../cmd/voxeld/stack.go", `stopLimit = (\d+) \* time.Second`)
	if n := seconds("systemd/voxeld.service", `TimeoutStopSec=(\d+)s`); n <= takes {
		t.Errorf("systemd waits %d s, stopping takes %d s", n, takes)
	}
	if n := seconds("compose/node.yml", `stop_grace_period: (\d+)s`); n <= takes {
		t.Errorf("compose waits %d s, stopping takes %d s", n, takes)
	}
}

// The build context has everything that the image needs, and nothing private.
func TestDockerignore(t *testing.T) {
	lines := strings.Fields(read(t, "../.dockerignore"))
	for _, want := range []string{".git", "data", "**/node_modules", "!bin/image"} {
		if !slices.Contains(lines, want) {
			t.Errorf(".dockerignore: no %s", want)
		}
	}
}
