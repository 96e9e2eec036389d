package monitoring

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	kit "github.com/voxelpopuli/voxeld/test/testkit/daemon"
	"github.com/voxelpopuli/voxeld/test/testkit/process"
)

const (
	// fast is how much faster time passes in the rules where conditions are made.
	fast = 60
	// calm is the same where no alert may fire. Daemons restart in real time, so less would be unfair to the rules.
	calm = 10

	shortestWindow = 5 * time.Second // five scrapes
)

var (
	pause  = regexp.MustCompile(`(?m)^( *(?:for|keep_firing_for): )(\S+)$`)
	window = regexp.MustCompile(`\[()(\w+)\]`)
	past   = regexp.MustCompile(`\b(offset )(\w+)`)
)

// compress returns rules in which time passes faster: it divides every "for", window and offset by speed. Windows stay
// long enough for five scrapes. Thresholds do not change.
func compress(t *testing.T, rules string, speed int) string {
	t.Helper()
	divide := func(form *regexp.Regexp, least time.Duration, write string) {
		rules = form.ReplaceAllStringFunc(rules, func(match string) string {
			parts := form.FindStringSubmatch(match)
			return fmt.Sprintf(write, parts[1], max(parseDuration(t, parts[2])/time.Duration(speed), least).Milliseconds())
		})
	}
	divide(pause, time.Second, "%s%dms")
	divide(window, shortestWindow, "[%s%dms]")
	divide(past, time.Second, "%s%dms")
	return rules
}

// parseDuration parses a duration of Prometheus with one unit.
func parseDuration(t *testing.T, text string) time.Duration {
	t.Helper()
	units := map[byte]time.Duration{'s': time.Second, 'm': time.Minute, 'h': time.Hour, 'd': 24 * time.Hour}
	unit := units[text[len(text)-1]]
	n, err := strconv.Atoi(text[:len(text)-1])
	if err != nil || unit == 0 {
		t.Fatalf("%q is not a duration such as 5m", text)
	}
	return time.Duration(n) * unit
}

func TestCompress(t *testing.T) {
	got := compress(t, "expr: rate(a[5m]) + increase(b[1d]) > c offset 10m\n        for: 10m\n", 60)
	if want := "expr: rate(a[5000ms]) + increase(b[1440000ms]) > c offset 10000ms\n        for: 10000ms\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// prometheus is a Prometheus that scrapes nodes each second, as the job voxeld.
type prometheus struct {
	t       *testing.T
	url     string
	started time.Time
}

// newPrometheus starts a Prometheus with the rules of deploy/prometheus at that speed, and waits until it has scraped
// all nodes.
func newPrometheus(t *testing.T, speed int, nodes ...*node) *prometheus {
	t.Helper()
	binary, err := exec.LookPath("prometheus")
	if err != nil {
		t.Skip("prometheus is not installed (tools/need.sh prometheus prometheus)")
	}
	rules, err := os.ReadFile("../prometheus/alerts.yml")
	if err != nil {
		t.Fatal(err)
	}
	var targets []string
	for _, n := range nodes {
		targets = append(targets, strconv.Quote(n.Metrics))
	}
	dir := t.TempDir()
	for name, text := range map[string]string{
		"alerts.yml": compress(t, string(rules), speed),
		"prometheus.yml": `
global: {scrape_interval: 1s, scrape_timeout: 1s, evaluation_interval: 1s}
rule_files: [alerts.yml]
scrape_configs:
  - job_name: voxeld
    static_configs: [{targets: [` + strings.Join(targets, ", ") + `]}]
`,
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	ip, err := kit.TakeAddress()
	if err != nil {
		t.Fatal(err)
	}
	run, err := process.Start(process.Options{Log: filepath.Join(dir, "log")}, binary,
		"--config.file="+filepath.Join(dir, "prometheus.yml"), "--storage.tsdb.path="+filepath.Join(dir, "data"),
		"--web.listen-address="+ip+":9090")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(run.Kill)
	p := &prometheus{t: t, url: "http://" + ip + ":9090", started: time.Now()}
	eventually(t, "Prometheus serves", func() bool {
		if !run.Running() {
			t.Fatalf("Prometheus has ended: %s", run.Log())
		}
		answer, err := http.Get(p.url + "/-/ready")
		if err != nil {
			return false
		}
		answer.Body.Close()
		return answer.StatusCode == http.StatusOK
	})
	eventually(t, "Prometheus has scraped all nodes", func() bool { return len(p.query("up == 1")) == len(nodes) })
	return p
}

// get makes a request of Prometheus' API, and decodes the data of its answer.
func (p *prometheus) get(path string, query url.Values, data any) {
	p.t.Helper()
	response, err := http.Get(p.url + path + "?" + query.Encode())
	if err != nil {
		p.t.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		p.t.Fatal(err)
	}
	answer := struct{ Data any }{data}
	if response.StatusCode != http.StatusOK {
		p.t.Fatalf("%s %v: %s", path, query, text)
	}
	if err := json.Unmarshal(text, &answer); err != nil {
		p.t.Fatalf("%s: %v in %s", path, err, text)
	}
}

// sample is a series of the answer to a query, with its latest value.
type sample struct {
	Metric map[string]string
	Value  [2]any // time, value
}

// query evaluates an expression now.
func (p *prometheus) query(expr string) []sample {
	p.t.Helper()
	var answer struct{ Result []sample }
	p.get("/api/v1/query", url.Values{"query": {expr}}, &answer)
	return answer.Result
}

// firing returns the names of the alerts that fire, for one node (or for the world as a whole) if it is not nil.
func (p *prometheus) firing(of *node) (names []string) {
	p.t.Helper()
	var answer struct {
		Alerts []struct {
			Labels map[string]string
			State  string
		}
	}
	p.get("/api/v1/alerts", nil, &answer)
	for _, a := range answer.Alerts {
		if instance := a.Labels["instance"]; a.State == "firing" && (of == nil || instance == "" || instance == of.Metrics) {
			names = append(names, a.Labels["alertname"])
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// fires waits until these alerts fire for the node at the same time.
func (p *prometheus) fires(of *node, names ...string) {
	p.t.Helper()
	begin := time.Now()
	defer p.explain()
	eventually(p.t, strings.Join(names, ", ")+" fire", func() bool {
		now := p.firing(of)
		return !slices.ContainsFunc(names, func(name string) bool { return !slices.Contains(now, name) })
	})
	p.t.Logf("%s fire after %v", strings.Join(names, ", "), time.Since(begin).Round(100*time.Millisecond))
}

// clears waits until none of these alerts fires for the node.
func (p *prometheus) clears(of *node, names ...string) {
	p.t.Helper()
	begin := time.Now()
	defer p.explain()
	eventually(p.t, strings.Join(names, ", ")+" clear", func() bool {
		now := p.firing(of)
		return !slices.ContainsFunc(names, func(name string) bool { return slices.Contains(now, name) })
	})
	p.t.Logf("%s clear after %v", strings.Join(names, ", "), time.Since(begin).Round(100*time.Millisecond))
}

// explain logs the alerts of a failed test.
func (p *prometheus) explain() {
	if p.t.Failed() {
		p.t.Logf("firing: %v", p.firing(nil))
	}
}

// onlyFired fails the test if other alerts than these have fired since Prometheus was started. Those of slowness and of
// the disk are not counted: the machine that runs the tests may be busy with other things.
func (p *prometheus) onlyFired(names ...string) {
	p.t.Helper()
	names = append(names, "VoxeldSlowTicks", "VoxeldSlowCommits", "VoxeldCPUSaturated", "VoxeldDiskFilling")
	for _, s := range p.firedSince(p.started) {
		if !slices.Contains(names, s.Metric["alertname"]) {
			p.t.Errorf("%s fired on %s", s.Metric["alertname"], s.Metric["instance"])
		}
	}
}

// firedSince returns the alerts that have fired since then.
func (p *prometheus) firedSince(begin time.Time) []sample {
	p.t.Helper()
	return p.query(fmt.Sprintf(`count_over_time(ALERTS{alertstate="firing"}[%dms])`, time.Since(begin).Milliseconds()))
}
