package config

import "strings"

// Kind is the type of an option's value.
type Kind int

// The kinds of options. In a variable or flag a List is separated by commas, and a flag may be repeated;
// a Switch is true or false, and as a flag without a value true.
const (
	Text Kind = iota
	List
	Number
	Switch
)

// Option is one thing that can be configured: a flag, a TOML key and a variable.
type Option struct {
	Name    string // of the flag, without dashes: "data-dir"
	Kind    Kind
	Default string // as a flag would have it; empty means what Usage says, or nothing
	Usage   string // one line: what it is, its unit, and what follows from it
}

// Key is the option's key in TOML: "data_dir".
func (o Option) Key() string { return strings.ReplaceAll(o.Name, "-", "_") }

// Variable is the option's environment variable: "VOXELD_DATA_DIR".
func (o Option) Variable() string { return prefix + strings.ToUpper(o.Key()) }

const prefix = "VOXELD_"

// fileVariable names the configuration file, as the flag --config does.
const fileVariable = prefix + "CONFIG"

// Options are all options of a daemon, in the order of Config's fields.
var Options = []Option{
	{
		"data-dir", Text, "data",
		"directory of world, identity and admin socket; one daemon at a time may use it, and whoever copies it is this node",
	},
	{
		"listen", List, "/ip4/0.0.0.0/tcp/4001,/ip4/0.0.0.0/udp/4001/quic-v1",
		"multiaddrs to listen at for other nodes; peers that cannot reach any of them cannot use this node",
	},
	{
		"announce", List, "",
		"multiaddrs that other nodes are told; needed behind NAT or in a container (default those it listens at, as this machine knows them)",
	},
	{
		"game", Text, ":4002",
		"host:port of the game server (TCP); original clients expect the Kademlia port plus one",
	},
	{
		"http", Text, ":8080",
		"host:port of the browser client, its WebSocket /ws, /healthz and /readyz; put TLS in front of it for strangers",
	},
	{
		"admin", Text, "",
		"path of the Unix socket that status, peers, invite and the like ask; whoever may write to it may ask (default admin.sock in the data directory)",
	},
	{
		"metrics", Text, "127.0.0.1:9102",
		"host:port of Prometheus' /metrics; anybody who reaches it can read them; empty for none",
	},
	{
		"advertise-game", Text, "",
		"host:port of the game server that other nodes and original clients are told; needed behind NAT or in a container (default the host of --game, or an address of this machine)",
	},
	{
		"advertise-http", Text, "",
		"URL under which players open this node, such as https://a.example.org; players of a node that stops are sent there; needed behind a proxy, NAT or in a container (default http:// and the host of --http, or an address of this machine)",
	},
	{
		"join", List, "",
		"join tokens or multiaddrs of nodes to begin with; without /p2p/ and a peer id in it whoever answers at an address is trusted; none starts the world in the data directory, or a new one",
	},
	{
		"placement", Text, "walkad",
		"of a world that this run makes: how regions get their place among the nodes; walkad keeps neighbours together, hash scatters them",
	},
	{
		"replicas", Number, "3",
		"nodes that keep each region, 1 to 7; what fewer than half of them lose at once is not lost; fewer while the world has fewer nodes",
	},
	{
		"replace-after", Text, "1m",
		"how long a node may be silent before its regions get other members, at least 1s; too short copies land for every restart",
	},
	{
		"scrub-every", Text, "1h",
		"how often the nodes that keep a region compare their copies and repair a damaged one, at least 1s; closed regions are compared 24 times as seldom; 0 for never",
	},
	{
		"view-distance", Number, "12",
		"the farthest that a player may see, in chunks (32 blocks) in each direction, 1 to 12; work and traffic grow with its square",
	},
	{
		"guests", Switch, "true",
		"let players without a key join, original clients among them; anybody can take a guest's name",
	},
	{
		"sessions-per-address", Number, "64",
		"players that one IP address may have: each session is one, and up to 100 connections of the original protocol are one; too few lock out a school behind one NAT, too many invite one machine to fill the node",
	},
	{
		"motion-budget", Number, "19200",
		"bytes a second in which a session is told how others move; a crowd that would take more is told of less exactly, those who are farther away first",
	},
	{
		"edits-per-second", Number, "20",
		"block changes that one session may ask for a second; more suits builders that are programs, and lets one vandal do as much",
	},
	{
		"overlay", Text, "relay",
		"who tells whom how players move: relay (the leaders of regions), psense or areacast (gateways one another, also while a region has no leader); the same on all nodes of a world",
	},
	{
		"log-level", Text, "info",
		"debug, info, warn or error; debug writes several lines per session and tick",
	},
	{
		"log-format", Text, "text",
		"text for people, json for machines, one object a line",
	},
}
