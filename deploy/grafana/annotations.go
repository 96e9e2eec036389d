package main

import (
	"strings"

	"github.com/grafana/grafana-foundation-sdk/go/common"
)

// annotation is a kind of event, drawn as vertical lines in all graphs, wherever its query is not empty.
type annotation struct {
	Name        string               `json:"name"`
	Datasource  common.DataSourceRef `json:"datasource"`
	Enable      bool                 `json:"enable"`
	IconColor   string               `json:"iconColor"`
	Expr        string               `json:"expr"`
	Step        string               `json:"step"`
	TitleFormat string               `json:"titleFormat"`
}

// annotations are the events that explain what the graphs show.
func annotations() []annotation {
	event := func(name, colour, expr, title string) annotation {
		return annotation{name, source, true, colour, strings.ReplaceAll(expr, "SEL", selection), "15s", title}
	}
	return []annotation{
		event("Drained or starting", "orange", `voxeld_ready{SEL} == 0`, "{{instance}} takes no players"),
		event("Started", "blue", `time() - voxeld_start_time_seconds{SEL} < 15`, "{{instance}} started"),
		event("Splits", "purple", `sum by (instance) (increase(voxeld_region_splits_total{SEL,result="done"}[15s])) > 0`, "{{instance}} split a region"),
	}
}
