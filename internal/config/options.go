package config

import (
	"slices"
	"time"
)

// Options lists all options of a daemon, in the order of Config's fields.
var Options = allOptions()

func allOptions() (all []Option) {
	for _, g := range Groups {
		all = append(all, g.Options...)
	}
	return all
}

// Find returns the option with this name.
func Find(name string) (Option, bool) {
	i := slices.IndexFunc(Options, func(o Option) bool { return o.Name == name })
	if i < 0 {
		return Option{}, false
	}
	return Options[i], true
}

// Groups holds all options of a daemon, grouped as in the help.
var Groups = []Group{
	{"Storage", []Option{
		{
			Name: "data-dir", Kind: Path, Default: "data", check: checkDataDir,
			Usage: "directory of the world, this node's identity and the admin socket; never run two daemons with it, or one with a copy",
		},
	}},
	{"Network", []Option{
		{
			Name: "listen", Kind: List, Default: "/ip4/0.0.0.0/tcp/4001,/ip4/0.0.0.0/udp/4001/quic-v1,/ip6/::/tcp/4001,/ip6/::/udp/4001/quic-v1", check: checkListens,
			Usage: "multiaddrs to listen on for other nodes",
		},
		{
			Name: "announce", Kind: List, check: each(checkDialable),
			Usage: "multiaddrs to announce to other nodes; needed behind NAT or in a container (default those at which it listens)",
		},
		{
			Name: "game", Kind: Address, Default: ":4002", check: hostPort(false),
			Usage: "host:port of the game server (TCP); original clients expect it at the Kademlia port plus one",
		},
		{
			Name: "http", Kind: Address, Default: ":8080", check: hostPort(false),
			Usage: "host:port that serves the browser client, /healthz and /readyz; HTTPS with --tls-cert or --acme-domain",
		},
		{
			Name: "classicube", Kind: Address, check: unlessEmpty(hostPort(false)),
			Usage: "host:port, usually :25565, for clients of ClassiCube and Minecraft Classic (TCP and WebSocket); empty disables it",
		},
		{
			Name: "classicube-list", Kind: URL, check: unlessEmpty(text(checkURL)),
			Usage: "URL of a server list of ClassiCube, such as https://www.classicube.net/server/heartbeat, which is told the world's name, the port of --classicube and how many play here; empty tells none",
		},
		{
			Name: "minecraft", Kind: Address, check: unlessEmpty(hostPort(false)),
			Usage: "host:port, usually :25566, for clients of Minecraft Java 1.20.2; empty disables it",
		},
		{
			Name: "luanti", Kind: Address, check: unlessEmpty(hostPort(false)),
			Usage: "host:port, usually :30000, for clients of Luanti 5.6 and later (UDP, protocol 39); empty disables it",
		},
		{
			Name: "advertise-game", Kind: Address, check: unlessEmpty(hostPort(true)),
			Usage: "host:port of the game server to advertise; needed behind NAT or in a container (default the host of --game, or an address of this machine)",
		},
		{
			Name: "advertise-http", Kind: URL, check: unlessEmpty(text(checkURL)),
			Usage: "URL at which players open this node, such as https://a.example.org, to which other nodes send theirs when they stop; needed behind a proxy, NAT or in a container (default the host of --http, or an address of this machine; with a certificate its name)",
		},
		{
			Name: "web-origin", Kind: List, check: each(checkOrigin),
			Usage: "further origins, such as http://voxels.lan:8080, at which browsers open this node, or whose pages may play here and read metrics; known are IP addresses, names without a dot, this machine's name, --advertise-http of all nodes, and the names of certificates",
		},
	}},
	{"HTTPS and proxies", []Option{
		{
			Name: "tls-cert", Kind: Path,
			Usage: "PEM file with the certificate and its chain for HTTPS at --http; read again when it changes",
		},
		{
			Name: "tls-key", Kind: Path,
			Usage: "PEM file with the key of --tls-cert",
		},
		{
			Name: "acme-domain", Kind: List, check: each(checkDomain),
			Usage: "names for which certificates are obtained by ACME, which accepts the authority's terms; it must reach this node by these names, at port 443 or, with --http-redirect, 80",
		},
		{
			Name: "acme-email", Kind: Text, check: unlessEmpty(text(checkEmail)),
			Usage: "e-mail address at which the authority may reach you",
		},
		{
			Name: "acme-directory", Kind: URL, Default: "https://acme-v02.api.letsencrypt.org/directory", check: text(checkDirectory),
			Usage: "ACME directory of the authority; the default is Let's Encrypt's",
		},
		{
			Name: "http-redirect", Kind: Address, check: unlessEmpty(hostPort(false)),
			Usage: "host:port, usually :80, of plain HTTP that redirects browsers to HTTPS and answers the authority; empty disables it",
		},
		{
			Name: "trusted-proxy", Kind: List, check: each(checkNetwork),
			Usage: "addresses or networks (10.0.0.0/8) of proxies whose X-Forwarded-For or PROXY header names the client; whoever is in these networks can pass for any address",
		},
	}},
	{"World", []Option{
		{
			Name: "join", Kind: List,
			Usage: "join tokens, files with one (@FILE), or multiaddrs of nodes of the world to join; an address without /p2p/ and a peer id trusts whoever answers there; if unset, start the existing world, or create one",
		},
		{
			Name: "token-file", Kind: Path,
			Usage: "write a join token to this file at each start, for nodes that are started together; it admits any number of nodes for a year; for issuers only",
		},
		{
			Name: "open", Kind: Switch, Default: "false",
			Usage: "let anybody run nodes of a world that this run creates, for tests and public experiments",
		},
		{
			Name: "placement", Kind: Word, Default: "walkad", Words: []string{"walkad", "hash"},
			Usage: "placement of regions on nodes, for a world that this run creates: walkad keeps neighbouring regions together, hash scatters them",
		},
		{
			Name: "overlay", Kind: Word, Default: "relay", Words: []string{"relay", "psense", "areacast"}, // p2p.Overlays
			Usage: "how movement is distributed: relay (through the leaders of regions), psense or areacast (between gateways, also while a region has no leader); set the same on all nodes",
		},
		{
			Name: "mod-dir", Kind: Path,
			Usage: "for authors of mods: add the mod in this folder, granted what it asks for, and add it again whenever a file of it changes; for issuers only",
		},
	}},
	{"Replication", []Option{
		{
			Name: "replicas", Kind: Number, Default: "3", check: oneTo(MaxReplicas),
			Usage: "number of replicas of each region (1–7); data survives the loss of any minority; where five operators run nodes, 3 and 4 mean five replicas, one of each operator",
		},
		{
			Name: "replace-after", Kind: Duration, Default: "1m", check: atLeast(time.Second, false),
			Usage: "how long a node may be silent, or its disk hang, before others replace it in its regions, at least 1s; too short a time copies land on every restart",
		},
		{
			Name: "scrub-every", Kind: Duration, Default: "1h", check: atLeast(time.Second, true),
			Usage: "interval at which the replicas of a region are compared and repaired, at least 1s; hibernating regions are compared 24 times less often; 0 disables it",
		},
	}},
	{"Regions that divide", []Option{
		{
			Name: "split", Kind: Switch, Default: "true", Reload: true,
			Usage: "split overloaded regions that this node leads, and merge halves that have become quiet; if false, only operators do (voxeld region split)",
		},
		{
			Name: "split-tick", Kind: Number, Default: "60", Reload: true, check: upTo(MaxSplitTick),
			Usage: "percentage of the tick budget (50 ms) above which a region is split; 0 disables this",
		},
		{
			Name: "split-players", Kind: Number, Default: "1000", Reload: true, check: upTo(MaxSplit),
			Usage: "number of players above which a region is split; 0 disables this",
		},
		{
			Name: "split-edits", Kind: Number, Default: "2000", Reload: true, check: upTo(MaxSplit),
			Usage: "block changes per second above which a region is split; 0 disables this",
		},
		{
			Name: "split-stored", Kind: Number, Default: "200000", Reload: true, check: upTo(MaxSplit),
			Usage: "number of changed blocks above which a region is split; 0 disables this",
		},
		{
			Name: "merge-after", Kind: Duration, Default: "5m", Reload: true, check: atLeast(time.Second, true),
			Usage: "how long both halves of a region must have less than a third of the load that splits it before they are merged, at least 1s; 0: never",
		},
	}},
	{"History", []Option{
		{
			Name: "history-keep", Kind: Duration, Default: "720h", Reload: true, check: atLeast(time.Minute, false),
			Usage: "how long regions keep who changed which block, at least 1m; older changes cannot be rolled back; set the same on all nodes",
		},
		{
			Name: "history-size", Kind: Size, Default: "8MiB", Reload: true, check: bytesBetween(MinHistorySize, MaxHistorySize),
			Usage: "bytes of such history that a region keeps; a change takes 5 to 10; the oldest changes are dropped first; set the same on all nodes",
		},
	}},
	{"Backups", []Option{
		{
			Name: "backup-every", Kind: Duration, Default: "0", check: atLeast(time.Minute, true),
			Usage: "interval of scheduled backups of the world by this node, at least 1m; one node of a world suffices, an issuer; 0 disables them",
		},
		{
			Name: "backup-keep", Kind: Number, Default: "7", check: oneTo(MaxBackups),
			Usage: "number of full scheduled backups to keep (1–10000) of each kind (signed, not signed, not complete), with the incremental ones based on them",
		},
		{
			Name: "backup-incremental", Kind: Number, Default: "0", check: upTo(MaxIncremental),
			Usage: "number of incremental backups after each full one (0–999): they have only what has changed, and need all before them back to the full one",
		},
		{
			Name: "backup-dir", Kind: Path,
			Usage: "directory of scheduled backups; keep it on another disk than the data directory (default backups in the data directory)",
		},
		{
			Name: "backup-target", Kind: Text, check: text(checkTarget),
			Usage: "where scheduled backups are copied to, off this machine: s3://BUCKET/PREFIX?endpoint=URL, with credentials in the environment, or the absolute path of a program, which is run with the file",
		},
	}},
	{"Players", []Option{
		{
			Name: "view-distance", Kind: Number, Default: "12", Reload: true, check: oneTo(MaxViewDistance),
			Usage: "greatest view distance of a player, in chunks (32 blocks) in each direction, 1 to 12; work and traffic grow with its square",
		},
		{
			Name: "guests", Kind: Switch, Default: "true", Reload: true,
			Usage: "let players without a key join, original clients among them; anybody can take a guest's name",
		},
		{
			Name: "original", Kind: Switch, Default: "true", Reload: true,
			Usage: "let VoxelPopuli's own clients play, wherever guests may; false turns the original protocol off on this node",
		},
		{
			Name: "map", Kind: Switch, Default: "true", Reload: true,
			Usage: "show players a map of the land around them, who is near, and the land far away",
		},
		{
			Name: "public-map", Kind: Switch, Default: "true", Reload: true,
			Usage: "serve /map to everybody: the land and the nodes that host it, without players or claims; needs `map`",
		},
		{
			Name: "sessions-per-address", Kind: Number, Default: "64", Reload: true, check: oneTo(MaxSessionsPerAddress),
			Usage: "maximum number of players of one IP address; up to 100 connections of the original protocol count as one; a low limit locks out a school, a high one lets a single machine fill the node",
		},
		{
			Name: "connections-per-address", Kind: Number, Default: "0", Reload: true, check: upTo(MaxPerAddress),
			Usage: "maximum number of HTTP connections of one IP address that are no sessions; 0: 4 for each of `sessions_per_address`",
		},
		{
			Name: "joins-per-address", Kind: Number, Default: "0", Reload: true, check: upTo(MaxPerAddress),
			Usage: "number of players of one IP address who may join per second, after the first `sessions_per_address`; 0: one for every 32 of these, at least 2",
		},
		{
			Name: "bytes-per-address", Kind: Size, Default: "0", Reload: true, check: bytesBetween(0, MaxBytesPerAddress),
			Usage: "bytes per second sent to all clients of one IP address, without what CBOR sessions get in each tick, in bursts of up to 10 seconds' worth; what exceeds it waits; 0: 64KiB for each of `sessions_per_address`, at least 1MiB",
		},
		{
			Name: "motion-budget", Kind: Size, Default: "19200", Reload: true, check: bytesBetween(MinMotionBudget, MaxMotionBudget),
			Usage: "bytes per second that a session may receive about the movement of others; in a crowd that needs more, movement is sent less exactly, the farthest players first",
		},
		{
			Name: "edits-per-second", Kind: Number, Default: "20", Reload: true, check: oneTo(MaxEditsPerSecond),
			Usage: "maximum number of block changes per second of one player; all players of an IP address together: that times half of `sessions_per_address`",
		},
	}},
	{"Monitoring and control", []Option{
		{
			Name: "admin", Kind: Path,
			Usage: "path of the Unix socket of the other commands; anybody with write access to it controls the node (default admin.sock in the data directory)",
		},
		{
			Name: "metrics", Kind: Address, Default: "127.0.0.1:9102", check: unlessEmpty(hostPort(false)),
			Usage: "host:port that serves /metrics for Prometheus to anybody who can reach it; empty disables it",
		},
	}},
	{"Logging", []Option{
		{
			Name: "log-level", Kind: Word, Default: "info", Words: []string{"debug", "info", "warn", "error"}, Reload: true,
			Usage: "least level of the messages in the log; debug writes several lines per session and tick",
		},
		{
			Name: "log-format", Kind: Word, Default: "text", Words: []string{"text", "json"},
			Usage: "format of the log: text for people, or json for programs, one object per line",
		},
	}},
}
