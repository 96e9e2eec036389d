package config

import "strings"

// Kind is the type of an option's value.
type Kind int

// The kinds of options. A List is separated by commas in a variable or a flag, and a flag may be repeated.
// A Switch is true or false; a flag without a value means true.
const (
	Text Kind = iota
	List
	Number
	Switch
	Duration // a Text that time.ParseDuration accepts
)

// Option is a setting: a flag, a TOML key and an environment variable.
type Option struct {
	Name    string // of the flag, without dashes: "data-dir"
	Kind    Kind
	Default string // as written on the command line; if empty, Usage states the default, or there is none
	Usage   string // one line: what it is, its unit, and its consequence
}

// Key returns the option's key in TOML: "data_dir".
func (o Option) Key() string { return strings.ReplaceAll(o.Name, "-", "_") }

// Variable returns the option's environment variable: "VOXELD_DATA_DIR".
func (o Option) Variable() string { return prefix + strings.ToUpper(o.Key()) }

const prefix = "VOXELD_"

// fileVariable names the configuration file, as the flag --config does.
const fileVariable = prefix + "CONFIG"

// Options lists all options of a daemon, in the order of Config's fields.
var Options = []Option{
	{
		"data-dir", Text, "data",
		"directory of the world, this node's identity and the admin socket; only one daemon may use it at a time; a copy of this directory has this node's identity: never run both",
	},
	{
		"listen", List, "/ip4/0.0.0.0/tcp/4001,/ip4/0.0.0.0/udp/4001/quic-v1",
		"multiaddrs to listen on for other nodes; a node that can reach none of them cannot use this one",
	},
	{
		"announce", List, "",
		"multiaddrs to announce to other nodes; needed behind NAT or in a container (default the addresses it listens on, as this machine sees them)",
	},
	{
		"game", Text, ":4002",
		"host:port of the game server (TCP); original clients expect it at the Kademlia port plus one",
	},
	{
		"http", Text, ":8080",
		"host:port that serves the browser client, its WebSocket /ws, /healthz and /readyz; put TLS in front of it if it is public",
	},
	{
		"admin", Text, "",
		"path of the Unix socket that status, peers, invite and the other commands connect to; anybody with write access to it controls the node (default admin.sock in the data directory)",
	},
	{
		"metrics", Text, "127.0.0.1:9102",
		"host:port that serves /metrics for Prometheus; anybody who can reach it can read the metrics; empty disables it",
	},
	{
		"advertise-game", Text, "",
		"host:port of the game server to advertise to other nodes and original clients; needed behind NAT or in a container (default the host of --game, or an address of this machine)",
	},
	{
		"advertise-http", Text, "",
		"URL at which players open this node, such as https://a.example.org; other nodes send their players there when they stop; needed behind a proxy, NAT or in a container (default http:// and the host of --http, or an address of this machine)",
	},
	{
		"join", List, "",
		"join tokens or multiaddrs of nodes of the world to join; an address without /p2p/ and a peer id trusts whoever answers there; if unset, start the existing world, or create one",
	},
	{
		"placement", Text, "walkad",
		"placement of regions on nodes, for a world that this run creates: walkad keeps neighbouring regions together, hash scatters them",
	},
	{
		"replicas", Number, "3",
		"number of replicas of each region (1–7); data survives the loss of any minority; a world with fewer nodes has fewer replicas",
	},
	{
		"replace-after", Duration, "1m",
		"how long a node may be silent before other nodes replace it in its regions, at least 1s; too short a time copies land on every restart",
	},
	{
		"scrub-every", Duration, "1h",
		"interval at which the replicas of a region are compared and damaged ones repaired, at least 1s; closed regions are compared 24 times less often; 0 disables it",
	},
	{
		"backup-every", Duration, "0",
		"interval of scheduled backups of the world by this node, at least 1m; 0 disables them; one node of a world suffices",
	},
	{
		"backup-keep", Number, "7",
		"number of scheduled backups to keep in the directory (1–10000); older ones are deleted",
	},
	{
		"backup-dir", Text, "",
		"directory of scheduled backups; keep it on another disk than the data directory (default backups in the data directory)",
	},
	{
		"view-distance", Number, "12",
		"greatest view distance of a player, in chunks (32 blocks) in each direction, 1 to 12; work and traffic grow with its square",
	},
	{
		"guests", Switch, "true",
		"let players without a key join, original clients among them; anybody can take a guest's name",
	},
	{
		"sessions-per-address", Number, "64",
		"maximum number of players of one IP address; each session counts as one player, and so do up to 100 connections of the original protocol; a low limit locks out a school behind one NAT, a high one lets a single machine fill the node",
	},
	{
		"motion-budget", Number, "19200",
		"bytes per second that a session may receive about the movement of others; in a crowd that needs more, movement is sent less exactly, the farthest players first",
	},
	{
		"edits-per-second", Number, "20",
		"maximum number of block changes per second of one session; raise it for automated builders; it also raises what one abuser can do",
	},
	{
		"overlay", Text, "relay",
		"how movement is distributed: relay (through the leaders of regions), psense or areacast (directly between gateways, also while a region has no leader); must be the same on all nodes of a world",
	},
	{
		"log-level", Text, "info",
		"debug, info, warn or error; debug writes several lines per session and tick",
	},
	{
		"log-format", Text, "text",
		"text for people, or json for programs, one object per line",
	},
}
