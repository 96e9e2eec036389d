// Package metric creates metrics with labels whose values are known. All of their series are there from the start, with
// 0: an alert on an increase counts the first event too, and a panel shows 0 instead of nothing. The linter refuses
// prometheus.NewCounterVec and prometheus.NewHistogramVec elsewhere.
//
// Floor 0: it imports nothing of this module.
package metric

import "github.com/prometheus/client_golang/prometheus"

// Label is a label of a metric, and all of its values.
type Label struct {
	Name   string
	Values []string
}

// Values returns the label with these values.
func Values(name string, values ...string) Label { return Label{name, values} }

// NewCounterVec returns counters, one for each combination of the labels' values. The caller registers them.
func NewCounterVec(o prometheus.CounterOpts, labels ...Label) *prometheus.CounterVec {
	v := prometheus.NewCounterVec(o, names(labels))
	each(labels, nil, func(values []string) { v.WithLabelValues(values...) })
	return v
}

// NewHistogramVec returns histograms, one for each combination of the labels' values. The caller registers them.
func NewHistogramVec(o prometheus.HistogramOpts, labels ...Label) *prometheus.HistogramVec {
	v := prometheus.NewHistogramVec(o, names(labels))
	each(labels, nil, func(values []string) { v.WithLabelValues(values...) })
	return v
}

func names(labels []Label) []string {
	all := make([]string, len(labels))
	for i, l := range labels {
		all[i] = l.Name
	}
	return all
}

// each calls do with each combination of the labels' values, behind those that are chosen already.
func each(labels []Label, chosen []string, do func(values []string)) {
	if len(labels) == 0 {
		do(chosen)
		return
	}
	for _, value := range labels[0].Values {
		each(labels[1:], append(chosen, value), do)
	}
}
