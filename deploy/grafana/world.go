package main

// world shows whether the world as a whole is well, and who plays in it.
func world() dashboard {
	inState := func(state string) []query {
		return one(`max by (job) (voxeld_world_regions{SEL,state="`+state+`"})`, "")
	}
	return dashboard{
		uid: "voxeld-world", title: "voxeld: world", description: "The whole world at a glance: regions by state, players, edits, load. Start here.",
		rows: []row{
			{"Is the world well?", []panel{
				{title: "Nodes that answer", description: "Nodes that Prometheus can scrape. Normal: all of them.", unit: count, number: true, queries: one(`sum by (job) (up{SEL})`, "")},
				{title: "Players", description: "Open sessions on all nodes.", unit: count, number: true, queries: one(`sum by (job) (voxeld_sessions{SEL})`, "")},
				{title: "Catalog has a majority", description: "1: new land can be founded. 0: players cannot enter land that was never visited.", unit: count, number: true, queries: one(`max by (job) (voxeld_catalog_quorum{SEL})`, "")},
				{title: "Regions without quorum", description: "Land that cannot be changed, because most of its members do not answer. Normal: 0.", unit: count, number: true, bad: 1, queries: inState("no_quorum")},
				{title: "Regions under-replicated", description: "Land with fewer live replicas than it should have. Normal: 0, and more for a while after a node was stopped.", unit: count, number: true, bad: 1, queries: inState("under_replicated")},
				{title: "Regions quarantined", description: "Land that failed repeatedly and is read-only. Normal: 0.", unit: count, number: true, bad: 1, queries: inState("quarantined")},
			}},
			{"Regions", []panel{
				{
					title: "Regions by state", description: "All regions of the world, hibernating ones included. Normal: all healthy.", unit: count, stacked: true,
					queries: one(`max by (state) (voxeld_world_regions{SEL})`, "{{state}}"),
				},
				{
					title: "Regions in use, by leader", description: "Loaded regions that each node leads. Normal: spread over the nodes.", unit: count, stacked: true,
					queries: one("sum by (instance) (voxeld_regions_led{SEL})", "{{instance}}"),
				},
				{
					title: "Regions founded and given up", description: "New land that players have entered, and land where nothing was built and nobody was for a day.", unit: rate,
					queries: []query{{perSecond("voxeld_regions_founded_total", "instance"), "{{instance}}: founded"}, {perSecond("voxeld_regions_vacated_total", "instance"), "{{instance}}: given up"}},
				},
			}},
			{"Players and edits", []panel{
				{title: "Players by node", description: "Open sessions of each node.", unit: count, stacked: true, queries: one("sum by (instance) (voxeld_sessions{SEL})", "{{instance}}")},
				{title: "Edits applied", description: "Edits that each node applied to its replicas: with three replicas each edit counts on three nodes.", unit: rate, queries: one(perSecond("voxeld_region_edits_total", "instance"), "{{instance}}")},
				{title: "Edits refused, by reason", description: "Normal: few. unavailable: the region has no leader or its disk refuses writes.", unit: rate, stacked: true, queries: one(perSecond("voxeld_edit_refusals_total", "reason"), "{{reason}}")},
			}},
			{"Load", []panel{
				{title: "CPU used by each node", description: "Share of the cores that the daemon may use. Above 0.9 ticks will be late.", unit: share, queries: one(`rate(process_cpu_seconds_total{SEL}[$__rate_interval]) / on (job, instance) voxeld_cpu_cores{SEL}`, "{{instance}}")},
				{title: "Late ticks", description: "Ticks that started more than a tick late. Normal: less than one a second. More: players see others move in jerks.", unit: rate, queries: one(perSecond("voxeld_region_late_ticks_total", "instance"), "{{instance}}")},
				{title: "Commit duration, p99", description: "How long the slowest hundredth of commits takes, and so edits. Normal: below 0.05 s on an SSD.", unit: seconds, queries: one(quantile("0.99", "voxeld_store_commit_seconds", "instance"), "{{instance}}")},
			}},
			{"Safety", []panel{
				{title: "Age of the newest backup", description: "Of nodes with a schedule; in a closed world only signed ones count. Normal: less than the schedule's interval.", unit: seconds, queries: one("time() - voxeld_backup_last_success_timestamp_seconds{SEL} and voxeld_backup_interval_seconds{SEL} > 0", "{{instance}}")},
				{title: "Free disk", description: "Free share of the data directory's file system.", unit: share, queries: one("voxeld_disk_free_bytes{SEL} / voxeld_disk_size_bytes{SEL}", "{{instance}}")},
				{title: "Certificates expire in", description: "Time until the HTTPS certificate of a node expires. Normal: more than a week. Empty without HTTPS.", unit: seconds, queries: one("voxeld_tls_certificate_expiry_timestamp_seconds{SEL} - time()", "{{instance}}")},
			}},
		},
	}
}
