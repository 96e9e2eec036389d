package chaos

import (
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"text/tabwriter"
	"time"

	"github.com/voxelpopuli/voxeld/test/chaos/history"
)

// Report is what a run did, measured and found. During the run its methods may be called from any goroutine.
type Report struct {
	Scenario string        `json:"scenario"`
	Seed     uint64        `json:"seed"`
	Command  string        `json:"command"` // repeats the run
	Out      string        `json:"out"`     // directory of ledger, logs, histories
	Took     time.Duration `json:"took_ns"` // of the part with edits
	Failed   bool          `json:"failed"`

	Faults   map[string]int   `json:"faults"` // by kind
	Events   int              `json:"events"`
	Verdict  *history.Verdict `json:"verdict"`
	Measures []*Measure       `json:"measures"`
	Problems []string         `json:"problems"` // violations beside the verdict
	Skipped  []string         `json:"skipped"`  // what was not tried, and why

	mu sync.Mutex
}

// Measure is durations of one kind, or counts.
type Measure struct {
	Name  string          `json:"name"`
	Asked string          `json:"asked,omitempty"` // the required value
	Times []time.Duration `json:"times_ns,omitempty"`
	Count *int            `json:"count,omitempty"`
}

// Measure returns the measure of that name. The caller adds to it after the faults.
func (r *Report) Measure(name, asked string) *Measure {
	i := slices.IndexFunc(r.Measures, func(m *Measure) bool { return m.Name == name })
	if i < 0 {
		r.Measures = append(r.Measures, &Measure{Name: name, Asked: asked})
		i = len(r.Measures) - 1
	}
	return r.Measures[i]
}

// Time adds a measured duration.
func (r *Report) Time(name, asked string, took time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	m := r.Measure(name, asked)
	m.Times = append(m.Times, took)
}

// Count adds to a counter.
func (r *Report) Count(name, asked string, n int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	m := r.Measure(name, asked)
	if m.Count == nil {
		m.Count = new(int)
	}
	*m.Count += n
}

// Fault counts a fault of a kind.
func (r *Report) Fault(kind string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.Faults[kind]++
}

// Problem records a violation.
func (r *Report) Problem(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.Problems = append(r.Problems, fmt.Sprintf(format, args...))
}

// Skip records what was not tried.
func (r *Report) Skip(what, why string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.Skipped = append(r.Skipped, what+": "+why)
}

// quantile returns the smallest value that is not exceeded by a share q of all.
func quantile(sorted []time.Duration, q float64) time.Duration {
	if len(sorted) == 0 {
		return 0
	}
	return sorted[max(0, int(math.Ceil(q*float64(len(sorted))))-1)]
}

// WriteTable writes the report as a table.
func (r *Report) WriteTable(out io.Writer) error {
	w := tabwriter.NewWriter(out, 0, 8, 2, ' ', 0)
	p := func(format string, args ...any) { fmt.Fprintf(w, format, args...) } //nolint:errcheck // Flush reports it
	p("\nscenario\t%s, seed %d, %v\n", r.Scenario, r.Seed, r.Took.Round(time.Second))
	p("events\t%d\n", r.Events)
	for _, kind := range slices.Sorted(maps.Keys(r.Faults)) {
		p("  %s\t%d\n", kind, r.Faults[kind])
	}
	if v := r.Verdict; v != nil {
		p("edits asked\t%d (%.0f/s), of %d blocks\n", v.Asked, float64(v.Asked)/r.Took.Seconds(), v.Blocks)
		p("  acknowledged\t%d (%.0f/s)\n", v.Acknowledged, float64(v.Acknowledged)/r.Took.Seconds())
		p("  refused, unknown\t%d, %d\n", v.Refused, v.Unknown)
		p("changes seen\t%d\n", v.Sights)
		p("acknowledged and lost\t%d\n", v.Lost)
		p("illegal histories\t%d (%d undecided)\n", v.Illegal, v.Undecided)
		p("phantom, skipped, reversed changes\t%d, %d, %d\n", v.Phantom, v.Skipped, v.Reversed)
		p("blocks that gateways show differently\t%d\n", v.Disagree)
		p("joins\t%d (%d were told that the land may be old)\n", v.Joins, v.Warned)
		p("  stale joins\t%d (an edit was missing for at most %v)\n", v.Stale, ms(v.Oldest))
	}
	for _, m := range r.Measures {
		asked := ""
		if m.Asked != "" {
			asked = " (asked: " + m.Asked + ")"
		}
		if m.Count != nil {
			p("%s\t%d%s\n", m.Name, *m.Count, asked)
			continue
		}
		sorted := slices.Sorted(slices.Values(m.Times))
		p("%s\tn %d, p50 %v, p99 %v, max %v%s\n", m.Name, len(sorted), ms(quantile(sorted, .5)), ms(quantile(sorted, .99)), ms(quantile(sorted, 1)), asked)
	}
	for _, s := range r.Skipped {
		p("SKIPPED\t%s\n", s)
	}
	for _, s := range r.Problems {
		p("PROBLEM\t%s\n", s)
	}
	if r.Verdict != nil {
		for _, f := range r.Verdict.Findings {
			p("FOUND %s\tblock %v: %s %s\n", f.Kind, f.Pos, f.Text, f.File)
		}
	}
	switch {
	case r.Failed:
		p("FAILED\tlogs and histories: %s\n", r.Out)
		p("again\t%s\n", r.Command)
	case r.Events == 0 && len(r.Skipped) > 0:
		p("not run\t%s\n", r.Command)
	default:
		p("passed\t%s\n", r.Command)
	}
	return w.Flush()
}

func ms(d time.Duration) time.Duration { return d.Round(time.Millisecond) }

// Save writes report.json, and every measured duration into measures.csv.
func (r *Report) Save(dir string) error {
	b, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return fmt.Errorf("encode report: %w", err)
	}
	if err := os.WriteFile(filepath.Join(dir, "report.json"), b, 0o644); err != nil {
		return fmt.Errorf("save report: %w", err)
	}
	file, err := os.Create(filepath.Join(dir, "measures.csv"))
	if err != nil {
		return fmt.Errorf("save measures: %w", err)
	}
	w := csv.NewWriter(file)
	rows := [][]string{{"measure", "value", "unit"}}
	for _, m := range r.Measures {
		for _, t := range m.Times {
			rows = append(rows, []string{m.Name, strconv.FormatFloat(t.Seconds(), 'f', 6, 64), "s"})
		}
		if m.Count != nil {
			rows = append(rows, []string{m.Name, strconv.Itoa(*m.Count), ""})
		}
	}
	if err := errors.Join(w.WriteAll(rows), file.Close()); err != nil {
		return fmt.Errorf("save measures: %w", err)
	}
	return nil
}
