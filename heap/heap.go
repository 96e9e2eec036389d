// Package heap decides how much garbage a node lets gather before it collects it.
//
// A node has little in memory that stays, and makes much garbage while many people edit: with Go's default, which
// collects whenever the heap has doubled, it collects many times a second, and that is a tenth of all that an edit costs.
// So the heap of a small node may grow to five times what is live, by at most Room; that of a large one doubles as usual.
//
// One goroutine, that of Run. Floor 6: only programs import this package; it governs the whole process.
package heap

import (
	"context"
	"os"
	"runtime/debug"
	"runtime/metrics"
	"time"
)

const (
	// Room is how much garbage, in bytes, may gather at most because of this package.
	Room = 192 << 20
	// least and most are percentages of the live heap, as GOGC is.
	least, most = 100, 400
	// lookEvery is how often it is looked how much is live.
	lookEvery = 5 * time.Second
)

// live is the metric for what the last collection left, in bytes.
const live = "/gc/heap/live:bytes"

// Run keeps the collector's percentage right until ctx ends. Whoever sets GOGC has decided himself: then it only waits.
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

// percent gives how much garbage may gather, in percent of so many live bytes.
func percent(live uint64) int {
	return int(min(max(Room*100/max(live, 1), least), most))
}
