package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/voxelpopuli/voxeld/test/testkit/metrics"
	"github.com/voxelpopuli/voxeld/test/testkit/process"
)

// options are those of one run.
type options struct {
	dir      string // for data
	systems  []string
	writers  []int
	rounds   int
	duration time.Duration
	keys     bool    // writers sign their edits
	rate     float64 // writes a second of all writers together; 0: unlimited
}

// system is one measured system. It stays up over all rounds, and is idle when it is not its turn.
type system interface {
	// load runs so many writers, and returns their result.
	load(ctx context.Context, writers int, warm, duration time.Duration) (result, error)
	// usage returns what the system's processes have used since they began.
	usage() (usage, error)
	stop()
}

// result is what the writers of one measurement observed. etcdload prints the same.
type result struct {
	Ops     int     `json:"ops"`
	Seconds float64 `json:"seconds"`
	P50     int64   `json:"p50_us"`
	P99     int64   `json:"p99_us"`
}

// usage is what processes have used since they began.
type usage struct {
	cpu    time.Duration // of all of them together
	client time.Duration // of the process with the writers, if it is none of these
	fsyncs float64       // of the node that synced most
}

// add adds what a process has used that serves its metrics at an address. fsyncs is the metric that counts its fsyncs,
// a counter or histogram.
func (u *usage) add(p *process.Process, address, fsyncs string) error {
	used, err := p.Usage()
	if err != nil {
		return err
	}
	u.cpu += used.CPU
	n, err := metric(context.Background(), address, fsyncs)
	u.fsyncs = max(u.fsyncs, n)
	return err
}

// metric reads a counter or gauge, or the count of a histogram.
func metric(ctx context.Context, address, name string) (float64, error) {
	m, err := metrics.Scrape(ctx, address)
	if err != nil {
		return 0, err
	}
	if m[name] == nil {
		return 0, fmt.Errorf("no metric %s at %s", name, address)
	}
	return m.Value(name) + m.Histogram(name).Count, nil
}

// knowEachOther waits until every node, whose metrics are at these addresses, knows the others.
func knowEachOther(ctx context.Context, metrics []string) error {
	for _, address := range metrics {
		err := process.Until(ctx, "every node knows the others", 50*time.Millisecond, 30*time.Second, func() bool {
			peers, err := metric(ctx, address, "voxeld_dht_table_peers")
			return err == nil && int(peers) >= len(metrics)-1
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// row is one line of the table.
type row struct {
	system  string
	writers int
	round   int
	result
	usage
}

func (r row) rate() float64 { return float64(r.Ops) / r.Seconds }

// cost returns the processor time that one write took, the writer's own included, in µs.
func (r row) cost() float64 { return (r.cpu + r.client).Seconds() * 1e6 / max(float64(r.Ops), 1) }

// pacer returns the start time of each of a writer's writes.
type pacer struct {
	every time.Duration // 0: at once
	next  time.Time
}

// newPacer spreads the writers over the interval.
func newPacer(rate float64, w, writers int) pacer {
	if rate <= 0 {
		return pacer{}
	}
	every := time.Duration(float64(writers) / rate * float64(time.Second))
	return pacer{every: every, next: time.Now().Add(every * time.Duration(w) / time.Duration(writers))}
}

func (b *pacer) wait() {
	if b.every > 0 {
		time.Sleep(time.Until(b.next))
		b.next = b.next.Add(b.every)
	}
}

// percentiles computes a result from latencies.
func percentiles(took []time.Duration, d time.Duration) result {
	if len(took) == 0 {
		return result{Seconds: d.Seconds()}
	}
	slices.Sort(took)
	return result{
		Ops: len(took), Seconds: d.Seconds(),
		P50: took[len(took)/2].Microseconds(), P99: took[len(took)*99/100].Microseconds(),
	}
}

// workDir makes a directory for the data, in the working directory, whose disk is measured.
func workDir(name string) (dir string, remove func(), err error) {
	if dir, err = os.MkdirTemp(".", name+"-"); err != nil {
		return "", nil, err
	}
	dir, err = filepath.Abs(dir)
	return dir, func() { os.RemoveAll(dir) }, err //nolint:errcheck // only data is left
}
