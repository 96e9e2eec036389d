// Grafana writes the dashboards for voxeld as JSON files, which Grafana provisions or imports:
//
//	go run ./deploy/grafana            (from the root of the repository)
//
// A test fails when the files differ from this code. The tests of deploy/monitoring send every query to a real
// Prometheus.
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"

	grafana "github.com/grafana/grafana-foundation-sdk/go/dashboard"
)

func main() {
	dir := flag.String("dir", "deploy/grafana/dashboards", "directory to write into")
	rules := flag.String("rules", "deploy/prometheus/alerts.yml", "alert rules, whose limits the panels draw")
	flag.Parse()
	if err := write(*dir, *rules); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// write writes all dashboards into a directory.
func write(dir, rules string) error {
	text, err := os.ReadFile(rules) //nolint:gosec // the operator's choice
	if err != nil {
		return fmt.Errorf("read alert rules: %w", err)
	}
	l, err := limitsOf(string(text))
	if err != nil {
		return fmt.Errorf("read limits of alert rules: %w", err)
	}
	for _, d := range []dashboard{world(), node(), regions(), network(), players()} {
		data, err := encode(d, l)
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, d.uid+".json"), data, 0o644) //nolint:gosec // everybody may read them
		}
		if err != nil {
			return fmt.Errorf("write dashboard %q: %w", d.title, err)
		}
	}
	return nil
}

// encode returns the JSON of a dashboard.
func encode(d dashboard, l limits) ([]byte, error) {
	built, err := d.build(l)
	if err != nil {
		return nil, err
	}
	data, err := json.MarshalIndent(struct {
		grafana.Dashboard
		Annotations any `json:"annotations"` // the SDK's type lacks titleFormat
	}{built, map[string]any{"list": annotations()}}, "", " ")
	return append(data, '\n'), err
}
