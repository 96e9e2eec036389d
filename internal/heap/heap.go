// Package heap adjusts how much garbage may accumulate before the garbage collector runs.
//
// A node keeps little in memory for long, and produces much garbage while many people edit. With Go's default, which
// collects whenever the heap has doubled, it collects many times a second, at a tenth of the total cost of an edit. So
// the heap of a small node may grow to five times its live size, by at most Room; the heap of a large one doubles as
// usual.
//
// One goroutine: the caller of Run. Floor 6: only programs import this package, because it changes a setting of the
// whole process.
package heap

import (
	"context"
	"os"
	"runtime/debug"
	"runtime/metrics"
	"time"
)

const (
	// Room is the most garbage, in bytes, that this package lets accumulate.
	Room = 192 << 20
	// least and most bound the percentage of the live heap, in the unit of GOGC.
	least, most = 100, 400
	// lookEvery is the time between two readings of the live heap's size.
	lookEvery = 5 * time.Second
)

// live is the metric of the bytes that survived the last collection.
const live = "/gc/heap/live:bytes"

// Run keeps the collector's percentage up to date until ctx ends. If GOGC is set, Run leaves the collector alone and
// only waits.
func Run(ctx context.Context) error {
	if os.Getenv("GOGC") != "" {
		<-ctx.Done()
		return nil
	}
	defer debug.SetGCPercent(debug.SetGCPercent(most))
	look := time.NewTicker(lookEvery)
	defer look.Stop()
	sample := []metrics.Sample{{Name: live}}
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-look.C:
		}
		metrics.Read(sample)
		debug.SetGCPercent(percent(sample[0].Value.Uint64()))
	}
}

// percent returns the GOGC percentage for a live heap of the given size in bytes.
func percent(live uint64) int {
	return int(min(max(Room*100/max(live, 1), least), most))
}
