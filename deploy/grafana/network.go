package main

// network shows the connections between nodes.
func network() dashboard {
	return dashboard{
		uid: "voxeld-network", title: "voxeld: network and DHT", description: "Connections between nodes, lookups, and traffic.",
		rows: []row{
			{"Nodes", []panel{
				{title: "Connected peers", description: "Normal: in a small world, all other nodes.", unit: count, queries: []query{
					{"voxeld_peers_connected{SEL}", "{{instance}}: connected"}, {"voxeld_dht_table_peers{SEL}", "{{instance}}: routing table"},
				}},
				{title: "Redials", description: "Attempts to reach lost peers and bootstrap addresses. Normal: none while all nodes run.", unit: rate, queries: one(some("voxeld_dht_redials_total", "result"), "{{result}}")},
				{title: "Nodes refused", description: "Nodes that were not admitted, by the reason. Normal: none. Empty in an open world.", unit: rate, queries: one(some("voxeld_nodes_refused_total", "instance, reason"), "{{reason}} {{instance}}")},
				{title: "Strangers refused", description: "Streams and connections of peers without a certificate, by what they had too many of. Normal: none. A steady rate is somebody who floods this node.", unit: rate, queries: one(some("voxeld_strangers_refused_total", "instance, reason"), "{{reason}} {{instance}}")},
				{title: "Node certificates expire in", alert: "VoxeldNodeCertificateExpiring", description: "Renewed when 20 days are left. Normal: 10 to 30 days. Empty in an open world.", unit: seconds, queries: one("voxeld_certificate_expiry_timestamp_seconds{SEL} - time()", "{{instance}}")},
				{title: "Traffic between nodes", description: "Bytes on streams, without Kademlia, encryption and framing.", unit: traffic, queries: one(perSecond("voxeld_stream_bytes_total", "instance, direction"), "{{instance}}: {{direction}}")},
			}},
			{"Finding land and players", []panel{
				{title: "DHT lookups", description: "Lookups, including those before a put.", unit: rate, queries: one(perSecond("voxeld_dht_lookups_total", "kind"), "{{kind}}")},
				{title: "DHT lookup duration, p99", description: "Normal: a few round trips between nodes.", unit: seconds, queries: one(quantile("0.99", "voxeld_dht_lookup_seconds", "kind"), "{{kind}}")},
				{title: "Peers contacted per lookup", description: "Mean number of peers. Grows with the logarithm of the number of nodes.", unit: count, queries: one(mean("voxeld_dht_lookup_contacted_peers", "kind"), "{{kind}}")},
				{title: "DHT lookups that failed", description: "Normal: none. A record that does not exist is not a failure.", unit: rate, queries: one(perSecond("voxeld_dht_lookup_failures_total", "kind"), "{{kind}}")},
				{title: "Regions found, by source", description: "What told where a region is. Normal: mostly the cache, and the catalog. Remembered, unconfirmed: the catalog does not answer.", unit: rate, kind: stacked, queries: one(perSecond("voxeld_region_lookups_total", "source"), "{{source}}")},
				{title: "Player records put directly", description: "Saved without a lookup, on the nodes that hold an older version.", unit: rate, queries: one(perSecond("voxeld_dht_direct_puts_total", "instance"), "{{instance}}")},
			}},
			{"Movement between gateways (with an overlay other than relay)", []panel{
				{title: "Packets", description: "At most one a tick between two gateways. Empty with the relay overlay.", unit: rate, queries: one(perSecond("voxeld_overlay_packets_total", "direction"), "{{direction}}")},
				{title: "Bytes", description: "Bytes of these packets.", unit: traffic, queries: one(perSecond("voxeld_overlay_packet_bytes_total", "direction"), "{{direction}}")},
				{title: "Refused updates", description: "Updates that claim more than a player can have moved. Normal: few.", unit: rate, queries: one(perSecond("voxeld_overlay_refused_total", "instance"), "{{instance}}")},
			}},
		},
	}
}
