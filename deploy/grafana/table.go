package main

import (
	"fmt"

	"github.com/grafana/grafana-foundation-sdk/go/cog"
	"github.com/grafana/grafana-foundation-sdk/go/common"
	grafana "github.com/grafana/grafana-foundation-sdk/go/dashboard"
	"github.com/grafana/grafana-foundation-sdk/go/prometheus"
	gtable "github.com/grafana/grafana-foundation-sdk/go/table"
)

// column is a column of a table: a label, or the value of a query if it has an expression.
type column struct {
	title string
	label string
	expr  string
	unit  string
	alert string  // the alert whose limit colours it
	bad   float64 // limit of what has no alert; 0: none
	texts map[string]grafana.ValueMappingResult
	link  string
}

// table shows columns. Queries are joined by their labels; those that are no column are not shown.
func (p panel) table(l limits, width uint32) (cog.Builder[grafana.Panel], error) {
	b := gtable.NewPanelBuilder().Title(p.title).Description(p.description).Datasource(source).Height(p.kind.height()).Span(width).NoValue("none")
	hidden, order, names := map[string]bool{"Time": true}, map[string]int{}, map[string]string{}
	queries := 0
	for i, c := range p.columns {
		field := c.label
		if c.expr != "" {
			q := query{c.expr, ""}.build(queries)
			field = fmt.Sprintf("Value #%c", 'A'+queries)
			queries++
			b.WithTarget(q.Instant().Format(prometheus.PromQueryFormatTable))
		}
		order[field], names[field] = i, c.title
		if c.title == "" {
			hidden[field] = true
			continue
		}
		style, err := c.style(l)
		if err != nil {
			return nil, err
		}
		b.OverrideByName(c.title, style)
	}
	if queries == 1 { // Grafana names the value of an only query so
		order["Value"], names["Value"] = order["Value #A"], names["Value #A"]
		hidden["Value"] = hidden["Value #A"]
	}
	b.WithTransformation(grafana.DataTransformerConfig{Id: "merge", Options: struct{}{}})
	b.WithTransformation(grafana.DataTransformerConfig{Id: "organize", Options: map[string]any{
		"excludeByName": hidden, "indexByName": order, "renameByName": names,
	}})
	return b, nil
}

// style returns the properties of the column.
func (c column) style(l limits) ([]grafana.DynamicConfigValue, error) {
	properties := []grafana.DynamicConfigValue{}
	add := func(id string, value any) {
		properties = append(properties, grafana.DynamicConfigValue{Id: id, Value: value})
	}
	if c.unit != "" {
		add("unit", c.unit)
	}
	bad, err := l.of(c.alert, c.bad)
	if err != nil {
		return nil, err
	}
	if bad.value != 0 {
		steps, err := bad.thresholds().Build()
		if err != nil {
			return nil, err
		}
		add("thresholds", steps)
	}
	if c.texts != nil {
		add("mappings", mappings(c.texts))
	}
	if bad.value != 0 || c.texts != nil {
		add("custom.cellOptions", common.TableColoredBackgroundCellOptions{Type: "color-background", Mode: new(common.TableCellBackgroundDisplayModeBasic)})
	}
	if c.link != "" {
		add("links", []map[string]string{{"title": "Open", "url": c.link}})
	}
	return properties, nil
}
