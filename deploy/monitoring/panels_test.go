package monitoring

import (
	"encoding/json"
	"flag"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// panel is what the test reads of a panel, or of a row of panels, in a dashboard's JSON.
type panel struct {
	Title, Type string
	GridPos     struct{ X, Y, W, H float64 }
	Targets     []struct {
		Expr, LegendFormat string
		RefID              string `json:"refId"`
	}
	Options     struct{ ColorMode string }
	FieldConfig struct {
		Defaults struct {
			look
			NoValue string
			Custom  struct{ Stacking, ThresholdsStyle struct{ Mode string } }
		}
		Overrides []struct {
			Matcher    struct{ Options any }
			Properties []struct {
				ID    string
				Value json.RawMessage
			}
		}
	}
	Transformations []struct {
		Options struct {
			ExcludeByName map[string]bool
			IndexByName   map[string]int
			RenameByName  map[string]string
		}
	}
	Panels []panel
}

// pictures is where pictures of World and Node are written.
var pictures = flag.String("monitoring.pictures", "", "write pictures of the dashboards World and Node into this directory, with TestNodesFail")

// afterKill are the panels that may be empty until a node has been killed. The others have data on a world in which
// players play.
var afterKill = []string{"Redials", "Alerts that fire"}

// neverSeen are the panels whose data this test cannot make, with the reason.
var neverSeen = map[string]string{
	"DHT lookups that failed":  "there are none, even when nodes are killed",
	"Players moved by a drain": "the counter ends with the drained node, mostly before it is scraped",
}

// variables are Grafana's variables, with the values that a reader of the dashboards would choose.
var variables = strings.NewReplacer("$__rate_interval", "1m", "$__interval", "10s", "$__range", "1m", "${job}", "voxeld", "$job", "voxeld",
	"${instance}", ".+", "$instance", ".+")

// everyPanelHasData waits until the query of every panel of every dashboard returns a number, or of those in afterKill
// only.
func (p *prometheus) everyPanelHasData(killed bool) {
	p.t.Helper()
	files, err := filepath.Glob("../grafana/dashboards/*.json")
	if err != nil || len(files) == 0 {
		p.t.Fatalf("no dashboards (%v)", err)
	}
	missing := make(map[string]string) // query -> dashboard and panel
	dashboards := make(map[string][]panel)
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			p.t.Fatal(err)
		}
		var dashboard struct{ Panels []panel }
		if err := json.Unmarshal(text, &dashboard); err != nil {
			p.t.Fatalf("%s: %v", file, err)
		}
		panels := slices.Clone(dashboard.Panels)
		dashboards[strings.TrimSuffix(filepath.Base(file), ".json")] = dashboard.Panels
		for len(panels) > 0 {
			next := panels[0]
			panels = append(panels[1:], next.Panels...)
			for _, target := range next.Targets {
				if _, never := neverSeen[next.Title]; !never && slices.Contains(afterKill, next.Title) == killed {
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
	for name, panels := range dashboards {
		var svg string
		eventually(p.t, "every panel of "+name+" draws something", func() bool {
			var empty []string
			svg, empty = p.draw(panels, p.started, time.Now())
			return !slices.ContainsFunc(empty, func(title string) bool {
				_, never := neverSeen[title]
				return !never && (killed || !slices.Contains(afterKill, title))
			})
		})
		if *pictures == "" || killed || name != "voxeld-world" && name != "voxeld-node" {
			continue
		}
		if err := os.WriteFile(filepath.Join(*pictures, name+".svg"), []byte(svg), 0o644); err != nil { //nolint:gosec // a page of the documentation
			p.t.Fatal(err)
		}
	}
}
