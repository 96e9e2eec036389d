// Package metrics reads the Prometheus metrics of a process, for voxeld top, benchmarks and tests. It has no state but
// an HTTP client.
package metrics

import (
	"context"
	"fmt"
	"io"
	"math"
	"net/http"
	"slices"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
)

// Metrics are the metrics of a process at one time, by name.
type Metrics map[string]*dto.MetricFamily

// scrapeClient keeps no connection: a scrape a second is cheap, and connections would outlive daemons. The timeout
// allows for one of a hundred daemons on a saturated machine.
var scrapeClient = &http.Client{Timeout: time.Minute, Transport: &http.Transport{DisableKeepAlives: true}}

// Scrape reads the metrics that are served at a host:port.
func Scrape(ctx context.Context, address string) (Metrics, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+"/metrics", nil)
	if err != nil {
		return nil, err
	}
	response, err := scrapeClient.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close() //nolint:errcheck // it was only read
	return Read(response.Body)
}

// Read reads metrics in Prometheus' text format.
func Read(text io.Reader) (Metrics, error) {
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(text)
	if err != nil {
		return nil, fmt.Errorf("read metrics: %w", err)
	}
	return families, nil
}

// Value adds up the series of a counter or gauge that have the label values given as name, value, name, value...
func (m Metrics) Value(name string, labels ...string) float64 {
	sum := 0.0
	for _, one := range m[name].GetMetric() {
		if !matches(one, labels) {
			continue
		}
		sum += one.GetCounter().GetValue() + one.GetGauge().GetValue() + one.GetUntyped().GetValue()
	}
	return sum
}

// Labels lists the values of a label of a metric.
func (m Metrics) Labels(name, label string) (values []string) {
	for _, one := range m[name].GetMetric() {
		for _, l := range one.GetLabel() {
			if l.GetName() == label && !slices.Contains(values, l.GetValue()) {
				values = append(values, l.GetValue())
			}
		}
	}
	return values
}

func matches(one *dto.Metric, labels []string) bool {
	for i := 0; i+1 < len(labels); i += 2 {
		found := false
		for _, l := range one.GetLabel() {
			found = found || l.GetName() == labels[i] && l.GetValue() == labels[i+1]
		}
		if !found {
			return false
		}
	}
	return true
}

// Histogram is a cumulative distribution: Below counts the values of at most Upper.
type Histogram struct {
	Count float64
	Sum   float64
	Upper []float64
	Below []float64 // as long as Upper
}

// Histogram adds up the series of a histogram that have the label values.
func (m Metrics) Histogram(name string, labels ...string) Histogram {
	var h Histogram
	for _, one := range m[name].GetMetric() {
		if matches(one, labels) && one.GetHistogram() != nil {
			h.add(one.GetHistogram())
		}
	}
	return h
}

func (h *Histogram) add(d *dto.Histogram) {
	if h.Upper == nil {
		for _, b := range d.GetBucket() {
			h.Upper = append(h.Upper, b.GetUpperBound())
		}
		h.Below = make([]float64, len(h.Upper))
	}
	h.Count += float64(d.GetSampleCount())
	h.Sum += d.GetSampleSum()
	for i, b := range d.GetBucket() {
		h.Below[i] += float64(b.GetCumulativeCount())
	}
}

// Plus returns the sum of two distributions over the same buckets.
func (h Histogram) Plus(other Histogram) Histogram { return h.combine(other, 1) }

// Since returns what was counted after earlier, a former state of h.
func (h Histogram) Since(earlier Histogram) Histogram { return h.combine(earlier, -1) }

func (h Histogram) combine(other Histogram, sign float64) Histogram {
	if other.Upper == nil {
		return h
	}
	if h.Upper == nil {
		h = Histogram{Upper: other.Upper, Below: make([]float64, len(other.Upper))}
	}
	out := Histogram{Count: h.Count + sign*other.Count, Sum: h.Sum + sign*other.Sum, Upper: h.Upper, Below: make([]float64, len(h.Upper))}
	for i := range out.Below {
		out.Below[i] = h.Below[i] + sign*other.Below[i]
	}
	return out
}

// Quantile returns the value below which a share q of the counts lies, as the upper bound of its bucket: never less
// than the true value. It returns +Inf above the last bucket, and NaN without counts.
func (h Histogram) Quantile(q float64) float64 {
	if h.Count == 0 {
		return math.NaN()
	}
	for i, below := range h.Below {
		if below >= q*h.Count {
			return h.Upper[i]
		}
	}
	return math.Inf(1)
}

// Mean returns the mean of the counted values; NaN without counts.
func (h Histogram) Mean() float64 { return h.Sum / h.Count }
