package main

// players shows what players do and what they are refused.
func players() dashboard {
	return dashboard{
		uid: "voxeld-players", title: "voxeld: players", description: "Sessions, traffic to players, and what was refused.",
		rows: []row{
			{"Sessions", []panel{
				{title: "Players", description: "Open sessions, and chunk connections of VoxelPopuli's clients.", unit: count, queries: []query{
					{"voxeld_sessions{SEL}", "{{instance}}"}, {"voxeld_original_connections{SEL}", "{{instance}}: original connections"},
				}},
				{title: "Joins, by outcome", description: "Normal: mostly joined.", unit: rate, kind: stacked, queries: one(some("voxeld_joins_total", "outcome"), "{{outcome}}")},
				{title: "Players moved by a drain", description: "How players left a node that stopped. Normal: followed.", unit: rate, queries: one(perSecond("voxeld_sessions_moved_total", "outcome"), "{{outcome}}")},
			}},
			{"Traffic", []panel{
				{title: "Bytes for each player", description: "Sent to a player each second, on average. In a crowd the motion budget limits it.", unit: traffic, queries: one(`sum by (instance) (rate(voxeld_packet_bytes_total{SEL,direction="out"}[$__rate_interval])) / on (instance) sum by (instance) (voxeld_sessions{SEL} > 0)`, "{{instance}}")},
				{title: "Messages", description: "Messages exchanged with clients.", unit: rate, queries: one(perSecond("voxeld_packets_total", "direction"), "{{direction}}")},
				{title: "Frame encoding, p99", description: "Time to encode the movement of a tick for all sessions of a gateway. Normal: below 0.05 s.", unit: seconds, queries: one(quantile("0.99", "voxeld_gateway_tick_seconds", "instance"), "{{instance}}")},
				{title: "Motion updates skipped", description: "A session had not read the previous one: a slow client or connection.", unit: rate, queries: one(perSecond("voxeld_motion_skipped_total", "instance"), "{{instance}}")},
				{title: "HTTP requests, by status", description: "Pages and assets; 101 is a session over WebSocket, counted at its end.", unit: rate, kind: stacked, queries: one(some("voxeld_http_requests_total", "code"), "{{code}}")},
				{title: "Moves, by outcome", description: "Sent to the region, or withheld because the region predicts them.", unit: rate, kind: stacked, queries: one(perSecond("voxeld_moves_total", "outcome"), "{{outcome}}")},
			}},
			{"Refusals", []panel{
				{title: "Removals of new players, fastest", alert: "VoxeldVandalism", description: "Most blocks that one new player has removed within 30 seconds. Above 100 for minutes: vandalism, or a large hole.", unit: count, queries: one("max by (instance) (voxeld_newcomer_removals_peak{SEL})", "{{instance}}")},
				{title: "Edits of new players", description: "Blocks that guests and players without a role or an older name place and remove.", unit: rate, kind: stacked, queries: one(perSecond("voxeld_newcomer_edits_total", "kind"), "{{kind}}")},
				{title: "Chat floods", description: "Players who wrote too fast, by what followed: warned, muted, banned.", unit: rate, kind: stacked, queries: one(some("voxeld_chat_floods_total", "outcome"), "{{outcome}}")},
				{title: "Edits refused, by reason", description: "Normal: few.", unit: rate, kind: stacked, queries: one(some("voxeld_edit_refusals_total", "reason"), "{{reason}}")},
				{title: "Moves corrected, by reason", description: "Normal: few. Many from one player: a client that cheats or lags.", unit: rate, kind: stacked, queries: one(some("voxeld_move_corrections_total", "reason"), "{{reason}}")},
				{title: "Limits of addresses reached", description: "Players, connections, land in view, joins, edits, logins of other games and requests for surface tiles were refused; foundings, explorations, registrations, queries for players and bytes waited. Normal: none. A steady rate is an address that asks for too much, or a large school behind one.", unit: rate, kind: stacked, queries: one(some("voxeld_address_limits_total", "limit"), "{{limit}}")},
				{title: "Blocks rolled back", description: "Blocks that rollbacks have changed back, by the node that leads the region.", unit: rate, kind: stacked, queries: one(perSecond("voxeld_rollback_blocks_total", "instance"), "{{instance}}")},
				{title: "Regions with a rollback under way", description: "Regions in which a node carries out a rollback. If it stays above 0 for minutes, see voxeld rollbacks.", unit: count, queries: one("sum by (instance) (voxeld_rollback_regions{SEL})", "{{instance}}")},
				{title: "Old history dropped", description: "How often a node has dropped old history of a region, as history_keep and history_size say. Many a minute: history_size is small for what is built.", unit: rate, queries: one(perSecond("voxeld_history_trims_total", "instance"), "{{instance}}")},
				{title: "Claims", description: "Claims in the world, as each node knows them. Nodes that differ for long do not reach the catalog.", unit: count, queries: one("max by (instance) (voxeld_claims{SEL})", "{{instance}}")},
				{title: "Commands that changed roles, bans and names", description: "Commands in the catalog's log that this node has read. Normal: one for each new player, who registers a name. Forged ones count for nothing: a member of the catalog lies.", unit: rate, kind: stacked, queries: one(some("voxeld_policy_acts_total", "result"), "{{result}}")},
				{title: "Age of roles and bans", description: "Since the node's copy of them was last up to date. Normal: less than two seconds. While it grows, bans that are new elsewhere have no effect on this node: it does not reach the catalog.", unit: seconds, queries: one("time() - (voxeld_policy_updated_timestamp_seconds{SEL} > 0)", "{{instance}}")},
				{title: "Hits and gifts refused, by reason", description: "Normal: few.", unit: rate, kind: stacked, queries: one(some("voxeld_interaction_refusals_total", "reason"), "{{reason}}")},
			}},
			{"Mods", []panel{
				{title: "Events handled by mods, by result", description: "Failed: an exception, or effects that are not valid. Exceeded: the script needed more steps, memory or output than it may have, and was suspended in a region: voxeld doctor on the node that leads it says which.", unit: rate, kind: stacked, queries: one(some("voxeld_mod_events_total", "result"), "{{result}}")},
				{title: "Steps of mods", description: "Steps that scripts have taken. 50 million a second are about a quarter of a core, the most that one mod may have in one region; all together have one core at most.", unit: rate, queries: one(perSecond("voxeld_mod_steps_total", "instance"), "{{instance}}")},
				{title: "Duration of a call of a script, 99th percentile", description: "For up to 16 events. Normal: below 10 ms; players and ticks never wait for it.", unit: seconds, queries: one(quantile("0.99", "voxeld_mod_call_seconds", "instance"), "{{instance}}")},
			}},
			{"Services", []panel{
				{title: "Requests of services", description: "Programs with a key. Refused: the request is wrong, or the key is not good for it. Failed: this node or the land could not answer; normal: none.", unit: rate, kind: stacked, queries: one(some("voxeld_service_requests_total", "outcome"), "{{outcome}}")},
				{title: "Edits of services", description: "A bulk edit counts once.", unit: rate, kind: stacked, queries: one(some("voxeld_service_edits_total", "outcome"), "{{outcome}}")},
				{title: "Events sent to services", description: "Server-sent events.", unit: rate, kind: stacked, queries: one(some("voxeld_service_events_total", "event"), "{{event}}")},
				{title: "Streams of events", description: "Open ones. A node has 64 at most.", unit: count, queries: one("voxeld_service_streams{SEL}", "{{instance}}")},
			}},
			{"Chat", []panel{
				{title: "Chat lines, by order", description: "Normal: causal. late: shown after something that may depend on it.", unit: rate, kind: stacked, queries: one(perSecond("voxeld_chat_lines_total", "order"), "{{order}}")},
				{title: "Chat lines held back", description: "Waiting for a line that they may answer.", unit: count, queries: one("voxeld_chat_held{SEL}", "{{instance}}")},
				{title: "Waits that timed out", description: "A missing line did not come. Normal: none.", unit: rate, queries: one(perSecond("voxeld_chat_timeouts_total", "instance"), "{{instance}}")},
				{title: "Lines to the world not delivered", description: "Another gateway did not answer for 10 s, or too many lines waited for it. Normal: none.", unit: rate, queries: one(perSecond("voxeld_chat_world_dropped_total", "instance"), "{{instance}}")},
			}},
		},
	}
}
