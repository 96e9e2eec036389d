package replica

import (
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
)

// value returns the value of a counter or a gauge.
func value(t *testing.T, c prometheus.Metric) float64 {
	t.Helper()
	var m dto.Metric
	if err := c.Write(&m); err != nil {
		t.Fatal(err)
	}
	return m.GetCounter().GetValue() + m.GetGauge().GetValue()
}

func TestMetrics(t *testing.T) {
	registry := prometheus.NewRegistry()
	d := newDisk()
	h, err := NewHost(Options{Storage: d, Self: "me", Registerer: registry})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := NewHost(Options{Storage: d, Self: "me", Registerer: registry}); err == nil {
		t.Fatal("two hosts share a registerer")
	}
	a, b := openNow(t, h, alone(1)), openNow(t, h, alone(2))
	before := d.count()
	stored := value(t, h.metrics.entries)
	for range 3 {
		for _, g := range []*Group{a, b} {
			if err := g.Propose([]byte("edit")); err != nil {
				t.Fatal(err)
			}
		}
	}
	if a.Propose(nil) == nil {
		t.Fatal("took nothing for an entry")
	}
	pump(h)
	if h.Receive("stranger", 1, nil) == nil {
		t.Fatal("took a message")
	}
	check := func(name string, c prometheus.Metric, want float64) {
		t.Helper()
		if got := value(t, c); got != want {
			t.Errorf("%s is %v, expected %v", name, got, want)
		}
	}
	check("proposals", h.metrics.proposals, 6)
	check("refused", h.metrics.refused, 1)
	check("rejected", h.metrics.rejected, 1)
	check("entries", h.metrics.entries, stored+6)
	check("delivered", h.metrics.delivered, 6)
	check("lag", h.metrics.lag, 6)
	if d.count() != before+1 {
		t.Errorf("%d commits for one batch", d.count()-before)
	}
	a.ReportApplied(lastIndex(a.Dequeue()), nil)
	pump(h)
	check("lag", h.metrics.lag, 3)
	d.setRefuse(full)
	h.committer.flushDue = true
	pump(h)
	check("stalled", h.metrics.stalled, 1)
	d.setRefuse(nil)
	h.committer.retryStorage()
	pump(h)
	check("stalled", h.metrics.stalled, 0)
	for _, g := range []*Group{a, b} {
		reply := make(chan error, 1)
		h.closeGroup(g, reply)
		pump(h)
	}
	check("lag", h.metrics.lag, 0)
}
