package cputime

import (
	"strings"

	"github.com/google/pprof/profile"
)

// The subsystems.
const (
	regions     = "regions"     // ticks, edits, and the upkeep of regions
	gateway     = "gateway"     // sessions, frames, HTTP
	replication = "replication" // raft
	storage     = "store"       // the database
	network     = "network"     // libp2p, the DHT, streams between nodes
	generation  = "terrain"     // terrain generation
	collection  = "gc"          // garbage collection
	golang      = "runtime"     // scheduling, timers and polling that no subsystem is charged with
	other       = "other"
)

var subsystems = []string{regions, gateway, replication, storage, network, generation, collection, golang, other}

const module = "github.com/voxelpopuli/voxeld/"

// packages maps packages, by the beginning of their path, to subsystems; the longest match counts. What is not listed
// is charged to its callers: the standard library, and the packages that all subsystems use, such as wire, motion and
// chunk.
var packages = map[string]string{
	module + "region":           regions,
	module + "region/transport": network,
	module + "world":            regions,
	module + "gameserver":       gateway,
	module + "overlay":          gateway,
	module + "replica":          replication,
	module + "store":            storage,
	module + "dht":              network,
	module + "terrain":          generation,
	"github.com/libp2p/":        network,
	"github.com/quic-go/":       network,
	"github.com/multiformats/":  network,
	"github.com/coder/":         gateway,
	"go.etcd.io/raft/":          replication,
	"go.etcd.io/bbolt":          storage,
}

// collectors are the functions of the garbage collector. Assists run within the goroutines that allocate.
var collectors = []string{"runtime.gcBgMarkWorker", "runtime.gcAssistAlloc", "runtime.bgsweep", "runtime.bgscavenge", "runtime.gcStart"}

// classify returns the subsystem that a sample is charged to: the garbage collector if it runs, else that of the
// innermost function that belongs to one.
func classify(s *profile.Sample) string {
	subsystem := ""
	inRuntime := true // all functions are the runtime's
	for _, location := range s.Location {
		for _, line := range location.Line { // innermost first, as the locations are
			if line.Function == nil {
				continue
			}
			name := line.Function.Name
			for _, collector := range collectors {
				if strings.HasPrefix(name, collector) {
					return collection
				}
			}
			inRuntime = inRuntime && isRuntime(name)
			if subsystem == "" {
				subsystem = subsystemOf(name)
			}
		}
	}
	switch {
	case subsystem != "":
		return subsystem
	case inRuntime:
		return golang
	}
	return other
}

func isRuntime(name string) bool {
	return strings.HasPrefix(name, "runtime.") || strings.HasPrefix(name, "runtime/internal/") || strings.HasPrefix(name, "internal/runtime/")
}

// subsystemOf returns the subsystem of a function, or "".
func subsystemOf(name string) string {
	longest, subsystem := 0, ""
	for prefix, s := range packages {
		rest, ok := strings.CutPrefix(name, prefix)
		if ok && len(prefix) > longest && (strings.HasSuffix(prefix, "/") || rest != "" && (rest[0] == '/' || rest[0] == '.')) {
			longest, subsystem = len(prefix), s
		}
	}
	return subsystem
}
