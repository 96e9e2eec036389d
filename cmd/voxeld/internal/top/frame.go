package top

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/dustin/go-humanize"

	"github.com/voxelpopuli/voxeld/cmd/voxeld/internal/admin"
	"github.com/voxelpopuli/voxeld/region"
	"github.com/voxelpopuli/voxeld/test/testkit/metrics"
)

// frame returns the view of an interval as lines of at most width columns; at most height lines.
func frame(i interval, width, height int) []string {
	s := i.after.status
	lines := []string{
		fmt.Sprintf("%s (%s)   up %v   voxeld %s", s.World, s.WorldID[:min(12, len(s.WorldID))], s.Uptime.Round(time.Second), s.Version),
		state(s),
		"",
		row("players", fmt.Sprintf("%d", s.Players), "peers", fmt.Sprintf("%d connected", s.Peers)),
		row("cpu", fmt.Sprintf("%.2f of %.3g cores", i.rate("process_cpu_seconds_total"), i.value("voxeld_cpu_cores")), "memory", size(i.value("process_resident_memory_bytes"))+", database "+size(float64(s.Database))),
		row("clients in", perSecond(i, "voxeld_packet_bytes_total", "direction", "in"), "out", perSecond(i, "voxeld_packet_bytes_total", "direction", "out")),
		row("nodes in", perSecond(i, "voxeld_stream_bytes_total", "direction", "in"), "out", perSecond(i, "voxeld_stream_bytes_total", "direction", "out")),
		row("edits", count(i.rate("voxeld_region_edits_total")), "refused", count(i.rate("voxeld_edit_refusals_total"))),
		row("commits", count(i.rate("voxeld_store_commits_total")), "duration", times(i.durations("voxeld_store_commit_seconds"))),
		row("ticks", count(i.durations("voxeld_region_tick_seconds").Count/i.seconds()), "duration", times(i.durations("voxeld_region_tick_seconds"))),
		row("late ticks", count(i.rate("voxeld_region_late_ticks_total")), "fsyncs", count(i.rate("voxeld_store_fsyncs_total"))),
		"",
		"regions       " + fmt.Sprintf("%d loaded; with the catalog %.0f led, %s", s.Regions, i.value("voxeld_regions_led"), states(s.NodeRegions)),
	}
	if divided := divisions(i); divided != "" {
		lines = append(lines, "              "+divided)
	}
	if len(s.WorldRegions) > 0 {
		lines = append(lines, "              whole world: "+states(s.WorldRegions))
	}
	lines = append(lines, "")
	lines = append(lines, busiest(i, height-len(lines))...)
	for k, line := range lines {
		lines[k] = cut(line, width)
	}
	return lines[:min(len(lines), height)]
}

// state returns whether the node serves, and what is wrong with it.
func state(s admin.Status) string {
	problems := strings.Join(s.Problems(), "; ")
	switch {
	case s.Draining:
		return "DRAINING"
	case s.NotReady != "":
		return "NOT READY: " + problems
	case problems != "":
		return "SERVING, WITH PROBLEMS: " + problems
	}
	return "serving"
}

func row(name, value, second, more string) string {
	return fmt.Sprintf("%-13s %-22s %-10s %s", name, value, second, more)
}

// states lists the numbers of regions by state.
func states(by map[string]int) string {
	var parts []string
	for k, name := range region.StateNames() {
		if n := by[name]; n > 0 || k == 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, strings.ReplaceAll(name, "_", " ")))
		}
	}
	return strings.Join(parts, ", ")
}

// divisions lists how many regions this node has split and merged since it started, and why; "" if none.
func divisions(i interval) string {
	const splits, merges = "voxeld_region_splits_total", "voxeld_region_merges_total"
	var why []string
	for _, trigger := range region.SplitTriggers() {
		if n := i.value(splits, "trigger", trigger, "result", "done"); n > 0 {
			why = append(why, fmt.Sprintf("%s %.0f", trigger, n))
		}
	}
	merged := i.value(merges, "result", "done")
	failed := i.value(splits, "result", "failed") + i.value(merges, "result", "failed")
	if len(why) == 0 && merged == 0 && failed == 0 {
		return ""
	}
	return fmt.Sprintf("split since the start: %s; merged: %.0f; failed: %.0f", cmp.Or(strings.Join(why, ", "), "none"), merged, failed)
}

// busiest returns a table of the regions with the most players and edits, in at most height lines.
func busiest(i interval, height int) []string {
	if height < 2 {
		return nil
	}
	before := make(map[string]int)
	for _, r := range i.before.regions {
		before[r.ID] = r.Edits
	}
	edited := func(r admin.Region) int {
		if old, ok := before[r.ID]; ok {
			return max(r.Edits-old, 0)
		}
		return 0
	}
	all := slices.SortedFunc(slices.Values(i.after.regions), func(a, b admin.Region) int {
		return cmp.Or(b.Bodies-a.Bodies, edited(b)-edited(a), b.Links-a.Links, strings.Compare(a.Cell, b.Cell))
	})
	lines := []string{fmt.Sprintf("%-24s %8s %9s %10s %8s  %s", "REGION", "PLAYERS", "GATEWAYS", "EDITS/S", "MEMBERS", "LEADER")}
	for _, r := range all[:min(len(all), height-1)] {
		leader := r.Leader
		if leader == i.after.status.Peer {
			leader = "this node"
		}
		lines = append(lines, fmt.Sprintf("%-24s %8d %9d %10.1f %8d  %s", cut(r.Cell, 24), r.Bodies, r.Links, float64(edited(r))/i.seconds(), len(r.Members), leader))
	}
	return lines
}

func size(bytes float64) string { return humanize.IBytes(uint64(max(bytes, 0))) }

func perSecond(i interval, name string, labels ...string) string {
	return humanize.Bytes(uint64(i.rate(name, labels...))) + "/s"
}

func count(perSecond float64) string {
	if perSecond < 10 && perSecond > 0 {
		return fmt.Sprintf("%.1f/s", perSecond)
	}
	return humanize.Comma(int64(perSecond)) + "/s"
}

// times returns the mean and the 99th percentile of durations.
func times(h metrics.Histogram) string {
	if h.Count == 0 {
		return "none"
	}
	return fmt.Sprintf("mean %s, p99 %s", milliseconds(h.Mean()), milliseconds(h.Quantile(.99)))
}

func milliseconds(seconds float64) string {
	if math.IsInf(seconds, 0) {
		return "∞"
	}
	return fmt.Sprintf("%.3g ms", 1000*seconds)
}

// cut shortens a line to a number of columns.
func cut(line string, width int) string {
	runes := []rune(line)
	if len(runes) <= width {
		return line
	}
	return string(runes[:max(width-1, 0)]) + "…"
}
