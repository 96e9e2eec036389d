// Package vitals exports the metrics of a node as a whole: its build, whether it takes players, and its disk.
package vitals

import (
	"math"
	"runtime"
	"syscall"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Options describe the node.
type Options struct {
	Version string
	Started time.Time // when the process started
	DataDir string
	Ready   func() error // why the node does not take players now; nil if it does. Called from any goroutine
}

// Register registers the metrics.
func Register(r prometheus.Registerer, o Options) {
	build := prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "voxeld_build_info", Help: "1, with the versions of the daemon and of Go.",
	}, []string{"version", "goversion"})
	build.WithLabelValues(o.Version, runtime.Version()).Set(1)
	// The standard process_start_time_seconds is absent where /proc/stat cannot be read, as under the systemd unit
	// (ProcSubset=pid).
	started := gauge("voxeld_start_time_seconds", "When the daemon started.", func() float64 {
		return float64(o.Started.UnixMilli()) / 1000
	})
	ready := gauge("voxeld_ready", "1 if the node takes players, as /readyz says, else 0.", func() float64 {
		if o.Ready() != nil {
			return 0
		}
		return 1
	})
	free := gauge("voxeld_disk_free_bytes", "Bytes free for the daemon on the disk of the data directory.", func() float64 {
		free, _ := DiskSpace(o.DataDir)
		return known(free)
	})
	size := gauge("voxeld_disk_size_bytes", "Size of the data directory's file system.", func() float64 {
		_, size := DiskSpace(o.DataDir)
		return known(size)
	})
	r.MustRegister(build, started, ready, free, size)
}

func gauge(name, help string, value func() float64) prometheus.Collector {
	return prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help}, value)
}

// known returns a number of bytes as the value of a metric.
func known(bytes int64) float64 {
	if bytes < 0 {
		return math.NaN()
	}
	return float64(bytes)
}

// DiskSpace returns the bytes that are free for the daemon on the disk of a directory, and the size of that disk; -1 if
// that is not known.
func DiskSpace(dir string) (free, size int64) {
	var s syscall.Statfs_t
	if syscall.Statfs(dir, &s) != nil {
		return -1, -1
	}
	block := int64(s.Bsize)                                 //nolint:unconvert // it is smaller on macOS
	return int64(s.Bavail) * block, int64(s.Blocks) * block //nolint:gosec // less than the size of a disk
}
