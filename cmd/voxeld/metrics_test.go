package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/voxelpopuli/voxeld/cmd/voxeld/internal/cli"
	"github.com/voxelpopuli/voxeld/cmd/voxeld/internal/reload"
	"github.com/voxelpopuli/voxeld/internal/config"
	kit "github.com/voxelpopuli/voxeld/test/testkit/daemon"
	testmetrics "github.com/voxelpopuli/voxeld/test/testkit/metrics"
	"github.com/voxelpopuli/voxeld/test/testkit/process"
)

var update = flag.Bool("update", false, "write the reference of metrics")

const metricsDoc = "../../docs/data/metrics.csv"

// docs/data/metrics.csv lists every metric of a running node, with its labels and help text.
func TestMetricsReference(t *testing.T) {
	cfg, err := config.Load(config.Sources{})
	if err != nil {
		t.Fatal(err)
	}
	cfg.DataDir = t.TempDir()
	cfg.Listen = []string{"/ip4/127.56.0.1/tcp/0"}
	cfg.Game, cfg.HTTP, cfg.Metrics = "127.56.0.1:0", "127.56.0.1:0", "127.56.0.1:0"
	cfg.ACMEDomain, cfg.ACMEDirectory = []string{"a.example.org"}, "https://127.56.0.1:1" // for the metrics of certificates; nobody answers
	n := newNode(cfg, slog.New(slog.DiscardHandler))
	parts := newStack()
	if err := n.start(t.Context(), parts); err != nil {
		t.Fatal(err)
	}
	table := metricsTable(n.metrics)
	checkStarted(t, n.metrics)
	if err := parts.stop(); err != nil {
		t.Fatal(err)
	}

	if *update {
		if err := os.WriteFile(metricsDoc, []byte(table), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	doc, err := os.ReadFile(metricsDoc)
	if err != nil {
		t.Fatal(err)
	}
	if table != string(doc) {
		t.Errorf("%s is out of date: run go test ./cmd/voxeld -run MetricsReference -update", metricsDoc)
	}
}

// checkStarted checks that counters and histograms with labels have been there since the start, with 0: an alert on an
// increase counts the first event, too.
func checkStarted(t *testing.T, registry *prometheus.Registry) {
	t.Helper()
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	there := map[string]bool{}
	for _, f := range families {
		there[f.GetName()] = true
	}
	gauges := []string{"voxeld_regions_by_depth", "voxeld_node_regions", "voxeld_world_regions"} // the last two once the states were counted
	for row := range strings.Lines(metricsTable(registry)) {
		if name, _, _ := strings.Cut(row, ","); name != "metric" && !there[name] && !slices.Contains(gauges, name) {
			t.Errorf("%s has no series after the start", name)
		}
	}
}

var descForm = regexp.MustCompile(`fqName: "(voxeld_[a-z_]+)", help: "(.*?)", (?:unit: ".*?", )?constLabels: \{\}, variableLabels: \{(.*?)\}`)

func metricsTable(registry *prometheus.Registry) string {
	descs := make(chan *prometheus.Desc, 1024)
	registry.Describe(descs)
	close(descs)
	var rows []string
	for d := range descs {
		if m := descForm.FindStringSubmatch(d.String()); m != nil {
			rows = append(rows, fmt.Sprintf("%s,%q,%q\n", m[1], strings.ReplaceAll(m[2], `\"`, "'"), m[3]))
		}
	}
	slices.Sort(rows)
	return "metric,meaning,labels\n" + strings.Join(slices.Compact(rows), "")
}

// The metrics of the process that alerts and dashboards use are exported where the node sees only processes in /proc,
// as under the systemd unit (ProcSubset=pid).
func TestMetricsWithoutProcStat(t *testing.T) {
	t.Parallel()
	hidden := []string{"unshare", "--mount", "sh", "-c", `mount -t proc -o subset=pid proc /proc && exec "$@"`, "sh"}
	if out, err := exec.Command(hidden[0], append(hidden[1:], "true")...).CombinedOutput(); err != nil {
		t.Skipf("cannot hide /proc/stat, which needs root: %v %s", err, out)
	}
	d := newDaemon(t, kit.Options{Options: process.Options{Prefix: hidden}})
	d.start()
	m, err := testmetrics.Scrape(t.Context(), d.Metrics)
	if err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob("../../deploy/grafana/dashboards/*.json")
	if err != nil || len(files) == 0 {
		t.Fatalf("no dashboards (%v)", err)
	}
	used := 0
	for _, file := range append(files, "../../deploy/prometheus/alerts.yml") {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range regexp.MustCompile(`\b(process|go)_[a-z_]+`).FindAllString(string(text), -1) {
			if used++; m[name] == nil {
				t.Errorf("%s uses %s, which is not exported", file, name)
			}
		}
	}
	if used == 0 {
		t.Error("nothing uses a metric of the process")
	}
	if at, now := m.Value("voxeld_start_time_seconds"), float64(time.Now().Unix()); at < now-float64(patience/time.Second) || at > now+1 {
		t.Errorf("the node started at %.0f, and it is %.0f", at, now)
	}
}

// A node that may open few files says so, and its banner names the URL for players.
func TestBanner(t *testing.T) {
	t.Parallel()
	d := newDaemon(t, kit.Options{Args: []string{"--advertise-http", "https://play.example.org"}, Options: process.Options{Prefix: []string{"sh", "-c", `ulimit -n 2000 && exec "$@"`, "sh"}}})
	d.start()
	for _, said := range []string{"may open few files", "limit=2000", "For players:         https://play.example.org\n"} {
		if !strings.Contains(d.Output(), said) {
			t.Errorf("the node does not say %q:\n%s", said, d.Output())
		}
	}
}

// A log in JSON is for programs: nothing else is written, and it has no token of an owner.
func TestLogInJSON(t *testing.T) {
	settings, err := config.Read(config.Sources{})
	if err != nil {
		t.Fatal(err)
	}
	cfg := &settings.Config
	cfg.DataDir, cfg.LogFormat = t.TempDir(), "json"
	cfg.Listen = []string{"/ip4/127.56.0.2/tcp/0"}
	cfg.Game, cfg.HTTP, cfg.Metrics = "127.56.0.2:0", "127.56.0.2:0", ""
	var out bytes.Buffer
	log, end := io.Pipe()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	ended := make(chan error, 1)
	go func() {
		recent := &cli.Recent{}
		err := runNode(ctx, reload.New(settings, nil), cli.NewLogger(end, slog.LevelInfo, cfg.LogFormat, recent), recent, &out)
		end.Close()
		ended <- err
	}()
	running := false
	lines := bufio.NewScanner(log)
	for lines.Scan() {
		var record map[string]any
		if err := json.Unmarshal(lines.Bytes(), &record); err != nil {
			t.Errorf("logged %q: %v", lines.Text(), err)
		}
		if record["msg"] == "node is running" {
			running = true
			cancel()
		}
		if strings.Contains(lines.Text(), "/owner") {
			t.Errorf("logged %q", lines.Text())
		}
	}
	if err := <-ended; err != nil || !running {
		t.Errorf("the node ran: %t, %v", running, err)
	}
	if out.Len() > 0 {
		t.Errorf("printed %q", out.String())
	}
}
