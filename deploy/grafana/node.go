package main

// node shows what a daemon does with its machine: processors, memory, disk.
func node() dashboard {
	return dashboard{
		uid: "voxeld-node", title: "voxeld: node", description: "One or more daemons: processors, memory, disk, commits, backups.",
		rows: []row{
			{"Overview", []panel{
				{title: "Uptime", description: "Time since the daemon started.", unit: seconds, kind: number, queries: one("time() - voxeld_start_time_seconds{SEL}", "{{instance}}")},
				{title: "Nodes of each version", description: "Normal: one version, but for a rolling upgrade.", unit: count, kind: number, queries: one("count by (version) (voxeld_build_info{SEL})", "{{version}}")},
				{title: "Takes players", description: "Normal: yes, but while it starts or drains.", texts: yesNo, unit: count, kind: number, queries: one("voxeld_ready{SEL}", "{{instance}}")},
				{title: "Storage refuses writes", texts: noYes, alert: "VoxeldStorageRefusesWrites", description: "1 while the disk is full or fails: edits are refused. Normal: 0.", unit: count, kind: number, queries: one("voxeld_replica_stalled{SEL}", "{{instance}}")},
				{title: "Damaged replicas", alert: "VoxeldReplicaDamaged", description: "Replicas that are damaged and not repaired. Normal: 0.", unit: count, kind: number, queries: one("voxeld_replicas_damaged{SEL}", "{{instance}}")},
				{title: "Replicas rolled back", alert: "VoxeldReplicaRolledBack", description: "Replicas given up because the node was started with old data. Normal: 0.", unit: count, kind: number, queries: one("voxeld_replicas_rolled_back_total{SEL}", "{{instance}}")},
			}},
			{"Processor and memory", []panel{
				{title: "CPU", description: "Share of the cores that the daemon may use. Above the limit ticks will be late.", alert: "VoxeldCPUSaturated", unit: share, queries: one(cpuShare, "{{instance}}")},
				{title: "Cores", description: "Cores used, and cores that the daemon may use.", unit: count, queries: []query{
					{"rate(process_cpu_seconds_total{SEL}[$__rate_interval])", "{{instance}}"}, {"voxeld_cpu_cores{SEL}", "{{instance}}: limit"},
				}},
				{title: "Held back by a quota", description: "Cores for which the daemon was ready to run, and was not run because its container or unit had used its quota up. Normal: 0.", unit: count, queries: one("rate(voxeld_cpu_throttled_seconds_total{SEL}[$__rate_interval])", "{{instance}}")},
				{title: "Panics, by where", description: "Bugs that ended one connection, subscription or stream, not the daemon. Normal: none. Please report them.", unit: count, queries: one(some("voxeld_panics_total", "instance, where"), "{{where}} {{instance}}")},
				{title: "CPU by subsystem", description: "Cores used by each part of the daemon, from a profile of 1 s every 15 s.", unit: count, kind: stacked, interval: "1m", queries: one(perSecond("voxeld_cpu_seconds_total", "subsystem"), "{{subsystem}}")},
				{title: "Memory", description: "Resident memory, and live and dead objects on the heap.", unit: size, queries: []query{
					{"process_resident_memory_bytes{SEL}", "{{instance}}: resident"}, {"go_memstats_heap_inuse_bytes{SEL}", "{{instance}}: heap"},
				}},
			}},
			{"Disk", []panel{
				{title: "Commit duration", alert: "VoxeldSlowCommits", description: "How long a commit takes, as its caller sees it. Normal: p99 below 0.05 s on an SSD.", unit: seconds, queries: []query{
					{quantile("0.5", "voxeld_store_commit_seconds", "instance"), "{{instance}}: p50"}, {quantile("0.99", "voxeld_store_commit_seconds", "instance"), "{{instance}}: p99"},
				}},
				{title: "Commits and fsyncs", description: "Commits share fsyncs: under load there are fewer fsyncs than commits.", unit: rate, queries: []query{
					{perSecond("voxeld_store_commits_total", "instance"), "{{instance}}: commits"}, {perSecond("voxeld_store_fsyncs_total", "instance"), "{{instance}}: fsyncs"},
				}},
				{title: "Failed commits, by reason", description: "Normal: none.", unit: rate, queries: []query{
					{some("voxeld_store_failed_commits_total", "reason"), "{{reason}}"},
				}},
				{title: "Disk", description: "Size of voxeld.db, which never shrinks, and what is free on its file system.", unit: size, queries: []query{
					{"voxeld_store_size_bytes{SEL}", "{{instance}}: database"}, {"voxeld_disk_free_bytes{SEL}", "{{instance}}: free"},
				}},
				{title: "Commits that share an fsync", description: "Mean number of commits, raft entries and raft groups in one transaction. Grows with the load.", unit: count, queries: []query{
					{mean("voxeld_store_batch_commits", "instance"), "{{instance}}: commits"}, {mean("voxeld_replica_batch_entries", "instance"), "{{instance}}: entries"},
				}},
				{title: "Rows written, journal checkpoints", description: "Rows written to tables, and transactions that moved the journal into them.", unit: rate, queries: []query{
					{perSecond("voxeld_store_writes_total", "instance"), "{{instance}}: rows"}, {perSecond("voxeld_store_checkpoints_total", "instance"), "{{instance}}: checkpoints"},
				}},
			}},
			{"Soundness", []panel{
				{title: "Scrubs, by result", description: "Comparisons of the replicas of a region. Normal: sound.", unit: rate, queries: one(some("voxeld_scrubs_total", "result"), "{{result}}")},
				{title: "Parts compared, damaged, repaired", description: "Normal: none damaged.", unit: rate, queries: []query{
					{perSecond("voxeld_scrub_parts_total", "job"), "compared"},
					{perSecond("voxeld_scrub_damaged_total", "job"), "damaged"},
					{perSecond("voxeld_scrub_repaired_total", "job"), "repaired"},
					{perSecond("voxeld_replicas_discarded_total", "job"), "replicas replaced"},
				}},
				{title: "Clock skew", alert: "VoxeldClockSkew", description: "Largest difference from another node's clock. Normal: below 0.1 s.", unit: seconds, queries: one("voxeld_clock_skew_seconds{SEL}", "{{instance}}")},
			}},
			{"Backups", []panel{
				{title: "Duration of the last scheduled backup", description: "0 before the first one.", unit: seconds, queries: []query{
					{"voxeld_backup_last_duration_seconds{SEL}", "{{instance}}"}, {"voxeld_backup_target_last_duration_seconds{SEL}", "{{instance}}: copying to the target"},
				}},
				{title: "Size of the last scheduled backup", description: "0 before the first one.", unit: size, queries: one("voxeld_backup_last_size_bytes{SEL}", "{{instance}}")},
				{title: "Failed scheduled backups", description: "Since the daemon started. Normal: 0.", unit: count, queries: []query{
					{"voxeld_backup_failures_total{SEL}", "{{instance}}"}, {"voxeld_backup_target_failures_total{SEL}", "{{instance}}: copying to the target"},
				}},
			}},
		},
	}
}
