// Grafana writes the dashboards for voxeld as JSON files, which Grafana provisions or imports:
//
//	go run ./deploy/grafana            (from the root of the repository)
//
// A test fails when the files differ from this code. The tests of deploy/monitoring send every query to a real Prometheus.
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
)

func main() {
	dir := flag.String("dir", "deploy/grafana/dashboards", "directory to write into")
	flag.Parse()
	if err := write(*dir); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// write writes all dashboards into a directory.
func write(dir string) error {
	for _, d := range []dashboard{world(), node(), regions(), network(), players()} {
		data, err := encode(d)
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
func encode(d dashboard) ([]byte, error) {
	built, err := d.build()
	if err != nil {
		return nil, err
	}
	data, err := json.MarshalIndent(built, "", " ")
	return append(data, '\n'), err
}
