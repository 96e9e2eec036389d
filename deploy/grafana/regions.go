package main

// regions shows ticks and replication: whether regions keep up.
func regions() dashboard {
	return dashboard{
		uid: "voxeld-regions", title: "voxeld: regions and ticks", description: "Ticks, replication and membership of the regions on a node.",
		rows: []row{
			{"Ticks", []panel{
				{title: "Tick duration", description: "A region's tick must take less than the budget of 0.05 s.", unit: seconds, queries: []query{
					{quantile("0.5", "voxeld_region_tick_seconds", "instance"), "{{instance}}: p50"},
					{quantile("0.99", "voxeld_region_tick_seconds", "instance"), "{{instance}}: p99"},
					{"max(voxeld_region_tick_budget_seconds{SEL})", "budget"},
				}},
				{title: "Tick lateness, p99", description: "How late ticks start. The ticks of all regions of a node are due together, so the last of many starts late. Late but short and few: the machine is busy with something else.", unit: seconds, queries: one(quantile("0.99", "voxeld_region_tick_lateness_seconds", "instance"), "{{instance}}")},
				{title: "Late ticks", alert: "VoxeldSlowTicks", description: "Ticks that started more than a tick late. Normal: less than one a second.", unit: rate, queries: one(perSecond("voxeld_region_late_ticks_total", "instance"), "{{instance}}")},
				{title: "Time spent in ticks, by phase", description: "Seconds of each second: what regions work on.", unit: share, kind: stacked, queries: one(perSecond("voxeld_region_tick_phase_seconds_sum", "phase"), "{{phase}}")},
				{title: "Edits applied", description: "Edits committed and applied to replicas on the node.", unit: rate, queries: one(perSecond("voxeld_region_edits_total", "instance"), "{{instance}}")},
				{title: "Regions loaded and led", description: "Regions in use on the node; those that nobody uses hibernate.", unit: count, queries: []query{
					{"voxeld_regions_loaded{SEL}", "{{instance}}: loaded"}, {"voxeld_regions_led{SEL}", "{{instance}}: led"},
				}},
			}},
			{"Members", []panel{
				{title: "Regions held, by state", description: "Regions of which the node has a replica. Normal: all healthy.", unit: count, kind: stacked, colours: stateColours, queries: one("sum by (state) (voxeld_node_regions{SEL})", "{{state}}")},
				{title: "Leaderships", description: "Regions that the node began to lead. Many at a time: a node failed or is stopping.", unit: rate, queries: one(perSecond("voxeld_region_leaderships_total", "instance"), "{{instance}}")},
				{title: "Changes of members", description: "Members added, promoted and removed, leaderships handed over.", unit: rate, kind: stacked, queries: one(some("voxeld_region_member_changes_total", "change"), "{{change}}")},
				{title: "Regions opened and hibernated", description: "Regions woken by other members, and closed because nobody used them.", unit: rate, queries: []query{
					{perSecond("voxeld_regions_woken_total", "job"), "woken"}, {perSecond("voxeld_regions_hibernated_total", "job"), "hibernated"},
				}},
				{title: "Regions isolated, by reason", alert: "VoxeldRegionIsolated", description: "Regions that failed on a node. Normal: none.", unit: rate, queries: one(some("voxeld_regions_isolated_total", "reason"), "{{reason}}")},
				{title: "Members of the catalog", description: "As each member of the catalog counts them. Normal: 5, or the number of nodes if that is less.", unit: count, queries: one("voxeld_catalog_members{SEL}", "{{instance}}")},
			}},
			{"Splits and merges", []panel{
				{title: "Splits and merges, by trigger", description: "Regions split because of their load, quiet halves merged, and those that failed. Normal: none for days, and a few when crowds come and go.", unit: rate, kind: stacked, queries: []query{
					{some("voxeld_region_splits_total", "trigger, result"), "split: {{result}} {{trigger}}"},
					{some("voxeld_region_merges_total", "trigger, result"), "merge: {{result}} {{trigger}}"},
				}},
				{title: "Edits wait for splits and merges, p99", description: "How long edits of a region waited while it was split or merged. Normal: below 0.25 s.", unit: seconds, queries: []query{
					{quantile("0.99", "voxeld_region_split_seconds", "job"), "split"}, {quantile("0.99", "voxeld_region_merge_seconds", "job"), "merge"},
				}},
				{title: "Regions by depth", description: "Regions with land that run, by how often a cell of the first size (16×16 chunks) was halved to get theirs; 8 is one chunk.", unit: count, kind: stacked, queries: one("sum by (depth) (voxeld_regions_by_depth{SEL})", "{{depth}}")},
			}},
			{"Replication", []panel{
				{title: "Log entries", description: "Entries proposed, stored and delivered to regions.", unit: rate, queries: []query{
					{perSecond("voxeld_replica_proposals_total", "job"), "proposed"}, {perSecond("voxeld_replica_entries_stored_total", "job"), "stored"}, {perSecond("voxeld_replica_entries_delivered_total", "job"), "delivered"},
				}},
				{title: "Replication lag", description: "The most entries that a live member lacks, and entries delivered but not yet applied. Normal: tens, and near 0 without edits.", unit: count, queries: []query{
					{"voxeld_replica_lag_entries{SEL}", "{{instance}}: behind"}, {"voxeld_replica_apply_lag_entries{SEL}", "{{instance}}: not applied"},
				}},
				{title: "Raft transaction duration, p99", description: "Storing the entries of all groups at once.", unit: seconds, queries: one(quantile("0.99", "voxeld_replica_commit_seconds", "instance"), "{{instance}}")},
				{title: "Raft transactions", description: "Storage transactions of the raft groups.", unit: rate, queries: one(perSecond("voxeld_replica_commits_total", "instance"), "{{instance}}")},
				{title: "Refused and lost", description: "Proposals refused, messages rejected and dropped. Normal: few, and some when nodes stop.", unit: rate, queries: []query{
					{perSecond("voxeld_replica_proposals_refused_total", "job"), "proposals refused"},
					{perSecond("voxeld_replica_messages_rejected_total", "job"), "messages rejected"},
					{perSecond("voxeld_raft_messages_dropped_total", "job"), "messages dropped"},
				}},
			}},
			{"Terrain", []panel{
				{title: "Chunks generated", description: "Chunks of terrain that gateways generated for players.", unit: rate, queries: one(perSecond("voxeld_chunks_generated_total", "instance"), "{{instance}}")},
				{title: "Chunks in view", description: "Chunks in view of players.", unit: count, queries: one("voxeld_chunks_loaded{SEL}", "{{instance}}")},
				{title: "Terrain that differs", alert: "VoxeldTerrainDiffers", description: "Chunks whose generated terrain differs from the pinned one, fetched from other nodes, or found nowhere. Normal: none.", unit: rate, queries: []query{
					{perSecond("voxeld_terrain_mismatches_total", "job"), "differs"}, {perSecond("voxeld_terrain_fetches_total", "job"), "fetched"}, {perSecond("voxeld_terrain_fetch_failures_total", "job"), "found nowhere"},
				}},
			}},
		},
	}
}
