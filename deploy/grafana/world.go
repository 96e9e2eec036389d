package main

import (
	grafana "github.com/grafana/grafana-foundation-sdk/go/dashboard"

	"github.com/voxelpopuli/voxeld/motion"
)

// Queries of World that other dashboards show too.
const (
	cpuShare  = `rate(process_cpu_seconds_total{SEL}[$__rate_interval]) / on (job, instance) voxeld_cpu_cores{SEL}`
	freeShare = `voxeld_disk_free_bytes{SEL} / voxeld_disk_size_bytes{SEL}`
)

// stateColours are the colours of the states of regions, as voxeld's own pages mean them.
var stateColours = map[string]string{
	"healthy": "green", "under_replicated": "yellow", "no_quorum": "red", "quarantined": "purple", "unknown": "gray",
}

// Texts for 1 and 0, where 1 is well, and where it is not.
var (
	yesNo = map[string]grafana.ValueMappingResult{"1": text("yes", "green"), "0": text("no", "red")}
	noYes = map[string]grafana.ValueMappingResult{"0": text("no", "green"), "1": text("yes", "red")}
)

func text(text, colour string) grafana.ValueMappingResult {
	return grafana.ValueMappingResult{Text: &text, Color: &colour}
}

// world shows whether the world as a whole is well, and who plays in it.
func world() dashboard {
	inState := func(state string) []query {
		return one(`max by (job) (voxeld_world_regions{SEL,state="`+state+`"})`, "")
	}
	tickP99 := quantile("0.99", "voxeld_region_tick_seconds", "instance")
	firing := `ALERTS{job=~"$job|",instance=~"$instance|",alertname=~"Voxeld.+",alertstate="firing"}`
	return dashboard{
		uid: "voxeld-world", title: "voxeld: world", description: "The whole world at a glance: load, players, nodes, alerts, regions by state. Start here.",
		rows: []row{
			{"Is the world well?", []panel{
				{title: "CPU of the busiest node", description: "Share of the cores that the daemon may use. Above the limit ticks will be late.", kind: number, unit: share, alert: "VoxeldCPUSaturated", queries: one("max("+cpuShare+")", "")},
				{title: "Slowest ticks, p99 of 50 ms", description: "The node whose ticks take longest. A tick that takes longer than 50 ms makes the next one late.", kind: number, unit: seconds, bad: motion.TickEvery.Seconds(), queries: one("max("+tickP99+")", "")},
				{title: "Players", description: "Open sessions on all nodes.", kind: number, unit: count, queries: one("sum(voxeld_sessions{SEL})", "")},
				{title: "Disk left, fullest node", description: "Free share of the data directory's file system.", kind: number, unit: share, alert: "VoxeldDiskFilling", queries: one("min("+freeShare+")", "")},
				{title: "Firing alerts", description: "Alerts of this world. Normal: 0.", kind: number, unit: count, bad: 1, queries: one("count("+firing+") or vector(0)", "")},
				{title: "Nodes", description: "Nodes that Prometheus can scrape. Normal: all of them.", kind: number, unit: count, queries: one(`sum(up{SEL}) * on () group_right count_values("nodes", count(up{SEL}))`, "of {{nodes}} answer")},
			}},
			{"Nodes", []panel{
				{title: "Each node", description: "A node's name leads to its dashboard.", kind: table, width: 16, columns: []column{
					{title: "Node", label: "instance", link: "/d/voxeld-node?var-instance=${__value.raw}&${datasource:queryparam}&${job:queryparam}&${__url_time_range}"},
					{title: "Answers", expr: "max by (instance) (up{SEL})", texts: yesNo},
					{title: "CPU", expr: "max by (instance) (" + cpuShare + ")", unit: share, alert: "VoxeldCPUSaturated"},
					{title: "Tick p99", expr: tickP99, unit: seconds, bad: motion.TickEvery.Seconds()},
					{title: "Players", expr: "sum by (instance) (voxeld_sessions{SEL})", unit: count},
					{title: "Disk left", expr: "max by (instance) (" + freeShare + ")", unit: share, alert: "VoxeldDiskFilling"},
					{title: "Alerts", expr: "count by (instance) (" + firing + ") or 0 * max by (instance) (up{SEL})", unit: count, bad: 1},
				}},
				{title: "Alerts that fire", description: "The runbook explains each of them. Normal: none.", kind: table, width: 8, columns: []column{
					{title: "Alert", label: "alertname"},
					{title: "Severity", label: "severity"},
					{title: "Node", label: "instance"},
					{expr: "max by (alertname, severity, instance) (" + firing + ")"},
				}},
			}},
			{"Edits and regions", []panel{
				{title: "Edits applied", description: "Edits that each node applied to its replicas: with three replicas each edit counts on three nodes.", unit: rate, queries: one(perSecond("voxeld_region_edits_total", "instance"), "{{instance}}")},
				{title: "Regions by state", description: "All regions of the world, hibernating ones included. Normal: all healthy.", unit: count, kind: stacked, colours: stateColours, queries: one(`max by (state) (voxeld_world_regions{SEL})`, "{{state}}")},
				{title: "Replication lag", description: "The most entries that a live member lacks, and entries delivered but not yet applied. Normal: tens, and near 0 without edits.", unit: count, queries: []query{
					{"voxeld_replica_lag_entries{SEL}", "{{instance}}: behind"}, {"voxeld_replica_apply_lag_entries{SEL}", "{{instance}}: not applied"},
				}},
				{title: "Catalog", description: "With a majority new land can be founded. Without one players cannot enter land that was never visited.", kind: number, unit: count, texts: map[string]grafana.ValueMappingResult{"1": text("majority: yes", "green"), "0": text("majority: no", "red")}, queries: one("max(voxeld_catalog_quorum{SEL})", "")},
				{title: "Regions without quorum", description: "Land that cannot be changed, because most of its members do not answer. Normal: 0.", kind: number, unit: count, alert: "VoxeldNoQuorum", queries: inState("no_quorum")},
				{title: "Regions under-replicated", description: "Land with fewer live replicas than it should have. Normal: 0, and more for a while after a node was stopped.", kind: number, unit: count, alert: "VoxeldUnderReplicated", queries: inState("under_replicated")},
				{title: "Regions quarantined", description: "Regions that failed repeatedly, and stay closed on a node. Normal: 0.", kind: number, unit: count, alert: "VoxeldRegionQuarantined", queries: inState("quarantined")},
			}},
			{"Load", []panel{
				{title: "CPU", description: "Share of the cores that each daemon may use. Above the limit ticks will be late.", unit: share, alert: "VoxeldCPUSaturated", queries: one(cpuShare, "{{instance}}")},
				{title: "Tick duration, p99", description: "A region's tick must take less than 50 ms.", unit: seconds, bad: motion.TickEvery.Seconds(), queries: one(tickP99, "{{instance}}")},
				{title: "Late ticks", description: "Ticks that started more than a tick late. Above the limit players see others move in jerks.", unit: rate, alert: "VoxeldSlowTicks", queries: one(perSecond("voxeld_region_late_ticks_total", "instance"), "{{instance}}")},
			}},
			{"Players and edits", []panel{
				{title: "Players by node", description: "Open sessions of each node.", unit: count, kind: stacked, queries: one("sum by (instance) (voxeld_sessions{SEL})", "{{instance}}")},
				{title: "Edits refused, by reason", description: "Normal: few. unavailable: the region has no leader or its disk refuses writes.", unit: rate, kind: stacked, queries: one(some("voxeld_edit_refusals_total", "reason"), "{{reason}}")},
				{title: "Commit duration, p99", description: "How long the slowest hundredth of commits takes, and so edits. Normal: below 0.05 s on an SSD.", unit: seconds, alert: "VoxeldSlowCommits", queries: one(quantile("0.99", "voxeld_store_commit_seconds", "instance"), "{{instance}}")},
				{title: "Regions in use, by leader", description: "Loaded regions that each node leads. Normal: spread over the nodes.", unit: count, kind: stacked, queries: one("sum by (instance) (voxeld_regions_led{SEL})", "{{instance}}")},
				{title: "Regions founded and given up", description: "New land that players have entered, and land where nothing was built and nobody was for a day.", unit: rate, queries: []query{
					{perSecond("voxeld_regions_founded_total", "instance"), "{{instance}}: founded"}, {perSecond("voxeld_regions_vacated_total", "instance"), "{{instance}}: given up"},
				}},
			}},
			{"Safety", []panel{
				{title: "Age of the newest backup, in intervals of its schedule", description: "Of nodes with a schedule, and without any the time since the node started; in a closed world only signed ones count. Normal: less than 1.", unit: count, alert: "VoxeldBackupTooOld", queries: one("(time() - ((voxeld_backup_last_success_timestamp_seconds{SEL} > 0) or voxeld_start_time_seconds{SEL})) / (voxeld_backup_interval_seconds{SEL} > 0)", "{{instance}}")},
				{title: "Free disk", description: "Free share of the data directory's file system.", unit: share, alert: "VoxeldDiskFilling", queries: one(freeShare, "{{instance}}")},
				{title: "Certificates expire in", description: "Time until the HTTPS certificate of a node expires. Normal: more than a week. Empty without HTTPS.", unit: seconds, alert: "VoxeldCertificateExpiring", queries: one("voxeld_tls_certificate_expiry_timestamp_seconds{SEL} - time()", "{{instance}}")},
			}},
		},
	}
}
