package monitoring

import (
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// panel is what the test reads of a panel, or of a row of panels, in a dashboard's JSON.
type panel struct {
	Title   string
	Targets []struct{ Expr string }
	Panels  []panel
}

// needFault are the queries whose series only exist after a fault, with the fault.
var needFault = map[string]string{}

// variables are Grafana's variables, with the values that a reader of the dashboards would choose.
var variables = strings.NewReplacer("$__rate_interval", "10s", "$__interval", "10s", "$__range", "30s", "${job}", "voxeld", "$job", "voxeld",
	"${instance}", ".+", "$instance", ".+")

// everyPanelHasData waits until the query of every panel of every dashboard returns a number.
func (p *prometheus) everyPanelHasData() {
	p.t.Helper()
	files, err := filepath.Glob("../grafana/dashboards/*.json")
	if err != nil {
		p.t.Fatal(err)
	}
	missing := make(map[string]string) // query -> dashboard and panel
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			p.t.Fatal(err)
		}
		var dashboard struct{ Panels []panel }
		if err := json.Unmarshal(text, &dashboard); err != nil {
			p.t.Fatalf("%s: %v", file, err)
		}
		panels := dashboard.Panels
		for len(panels) > 0 {
			next := panels[0]
			panels = append(panels[1:], next.Panels...)
			for _, target := range next.Targets {
				if _, fault := needFault[target.Expr]; !fault {
					missing[target.Expr] = filepath.Base(file) + ": " + next.Title
				}
			}
		}
	}
	p.t.Logf("%d queries of %d dashboards", len(missing), len(files))
	defer func() {
		for expr, where := range missing {
			p.t.Logf("%s: no data for %s", where, expr)
		}
	}()
	eventually(p.t, "every panel has data", func() bool {
		for expr := range missing {
			for _, s := range p.query(variables.Replace(expr)) {
				if text, ok := s.Value[1].(string); ok {
					if v, err := strconv.ParseFloat(text, 64); err == nil && !math.IsNaN(v) {
						delete(missing, expr)
					}
				}
			}
		}
		return len(missing) == 0
	})
}
