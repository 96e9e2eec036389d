package config

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/voxelpopuli/voxeld/trust"
)

// Config is the configuration of a daemon. Load fills it, from the defaults on: the zero value of a field is not its
// default. Its parts are the Groups of the options. The `toml` tag is the key in TOML. docs/configuration.md explains
// each option to operators.
type Config struct {
	Storage     `toml:",squash"`
	Network     `toml:",squash"`
	HTTPS       `toml:",squash"`
	World       `toml:",squash"`
	Replication `toml:",squash"`
	Dividing    `toml:",squash"`
	History     `toml:",squash"`
	Backups     `toml:",squash"`
	Players     `toml:",squash"`
	Monitoring  `toml:",squash"`
	Logging     `toml:",squash"`
}

// Storage is where a daemon keeps what it stores.
type Storage struct {
	DataDir string `toml:"data_dir"` // directory of everything that is stored
}

// Network is where a daemon listens, and where others reach it.
type Network struct {
	Listen         []string `toml:"listen"`          // multiaddrs of the Kademlia side
	Announce       []string `toml:"announce"`        // multiaddrs announced to other nodes; empty: those it listens on
	Game           string   `toml:"game"`            // host:port of the game server (TCP)
	HTTP           string   `toml:"http"`            // host:port of client, /ws, /healthz, /readyz
	ClassiCube     string   `toml:"classicube"`      // host:port for clients of ClassiCube; empty: none
	ClassiCubeList string   `toml:"classicube_list"` // URL of the server list to which the node reports; empty: none
	Minecraft      string   `toml:"minecraft"`       // host:port for clients of Minecraft; empty: none
	Luanti         string   `toml:"luanti"`          // host:port (UDP) for clients of Luanti; empty: none
	AdvertiseGame  string   `toml:"advertise_game"`  // host:port advertised to others; empty: derived by cmd
	AdvertiseHTTP  string   `toml:"advertise_http"`  // URL that players open, advertised to others; empty: derived by cmd
	WebOrigin      []string `toml:"web_origin"`      // further origins of web pages that may reach the daemon
}

// World is which world a daemon serves, and how.
type World struct {
	Join      []string `toml:"join"`       // tokens, files with one, and multiaddrs of bootstrap nodes; see Bootstrap
	TokenFile string   `toml:"token_file"` // file to which the node writes a token for others; "" if it writes none
	Open      bool     `toml:"open"`       // anybody may run nodes of a world that is created; ignored for an existing one
	Placement string   `toml:"placement"`  // walkad or hash; used when a world is created, ignored for an existing one
	Overlay   string   `toml:"overlay"`    // relay, psense or areacast
	ModDir    string   `toml:"mod_dir"`    // folder of a mod that is added whenever it changes; empty: none
}

// Replication is how regions are replicated.
type Replication struct {
	Replicas     int           `toml:"replicas"`      // members of a region's raft group, 1 to 7
	ReplaceAfter time.Duration `toml:"replace_after"` // how long a member may be silent, or its disk hang, before it is replaced
	ScrubEvery   time.Duration `toml:"scrub_every"`   // how often the replicas of a region are compared; 0: never
}

// Dividing is when regions are split and merged. A limit of 0 is none.
type Dividing struct {
	Split        bool          `toml:"split"`         // whether load splits regions
	SplitTick    int           `toml:"split_tick"`    // percentage of the tick budget
	SplitPlayers int           `toml:"split_players"` // players in a region
	SplitEdits   int           `toml:"split_edits"`   // edits a second
	SplitStored  int           `toml:"split_stored"`  // edited blocks
	MergeAfter   time.Duration `toml:"merge_after"`   // how long both halves must be quiet; 0: they are never merged
}

// History is how much of the history of blocks each region keeps.
type History struct {
	HistoryKeep time.Duration `toml:"history_keep"` // for how long changes are kept
	HistorySize int64         `toml:"history_size"` // how many bytes a region keeps at most
}

// Backups is when a daemon backs up the world, and where to.
type Backups struct {
	BackupEvery       time.Duration `toml:"backup_every"`       // interval of scheduled backups; 0: none
	BackupKeep        int           `toml:"backup_keep"`        // full scheduled backups that are kept, with those based on them
	BackupIncremental int           `toml:"backup_incremental"` // incremental backups after each full one
	BackupDir         string        `toml:"backup_dir"`         // where they are; empty: see BackupDirectory
	BackupTarget      string        `toml:"backup_target"`      // where they are copied to; see ParseTarget
}

// Players is who may play, and what one player may take.
type Players struct {
	ViewDistance          int   `toml:"view_distance"`           // maximum view distance, in chunks in each direction
	Guests                bool  `toml:"guests"`                  // whether players without a key may join
	Original              bool  `toml:"original"`                // whether clients of the original protocol may join, where guests may
	Map                   bool  `toml:"map"`                     // whether players are shown a map, and who is near
	PublicMap             bool  `toml:"public_map"`              // whether everybody is shown the land, if players are
	SessionsPerAddress    int   `toml:"sessions_per_address"`    // maximum of one IP address
	ConnectionsPerAddress int   `toml:"connections_per_address"` // maximum of HTTP; 0, here and below: it follows from SessionsPerAddress
	JoinsPerAddress       int   `toml:"joins_per_address"`       // maximum of players who join, a second
	BytesPerAddress       int64 `toml:"bytes_per_address"`       // maximum sent to all clients, a second
	MotionBudget          int64 `toml:"motion_budget"`           // bytes/s of movement updates sent to one session
	EditsPerSecond        int   `toml:"edits_per_second"`        // maximum of one player
}

// Monitoring is where operators watch and control a daemon.
type Monitoring struct {
	Admin   string `toml:"admin"`   // path of the Unix socket; empty: see AdminSocket
	Metrics string `toml:"metrics"` // host:port of /metrics; empty: none
}

// Logging is what a daemon logs.
type Logging struct {
	LogLevel  string `toml:"log_level"`  // debug, info, warn or error
	LogFormat string `toml:"log_format"` // text or json
}

// Bounds of options.
const (
	// MinHistorySize and MaxHistorySize bound the history of a region, in bytes. It is in memory while the region is
	// open.
	MinHistorySize        = 64 << 10
	MaxHistorySize        = 256 << 20
	MaxViewDistance       = 12 // wire.MaxView
	MaxSessionsPerAddress = 1 << 16
	MinMotionBudget       = 1_000
	MaxMotionBudget       = 10_000_000
	MaxReplicas           = 7
	MaxSplitTick          = 1_000
	MaxSplit              = 1_000_000_000
	MaxBackups            = 10_000
	MaxIncremental        = 999 // the names of backups have three digits for it
	MaxEditsPerSecond     = 1_000_000
	MaxPerAddress         = 1_000_000     // of connections, and of joins a second
	MaxBytesPerAddress    = 1_000_000_000 // a second
)

// AdminSocket returns the path of the Unix socket: Admin, or admin.sock in DataDir.
func (c Config) AdminSocket() string {
	if c.Admin != "" {
		return c.Admin
	}
	return filepath.Join(c.DataDir, "admin.sock")
}

// BackupDirectory returns the directory of scheduled backups: BackupDir, or backups in DataDir.
func (c Config) BackupDirectory() string {
	if c.BackupDir != "" {
		return c.BackupDir
	}
	return filepath.Join(c.DataDir, "backups")
}

// maxSocketPath is the longest path of a Unix socket, in bytes, that all supported systems accept.
const maxSocketPath = 103

// Bootstrap is how a daemon enters the world that Join names.
type Bootstrap struct {
	Addrs  []string      // multiaddrs to dial, including those in tokens
	World  string        // world id of the tokens; "" without tokens
	Secret *trust.Secret // of the last token that has one
	Peers  []string      // peer ids that may see the secret: those in the tokens
	Absent []string      // files that should hold a token, but do not exist
}

// Bootstrap expands Join.
func (c Config) Bootstrap() (Bootstrap, error) {
	var problems []error
	var b Bootstrap
	for _, entry := range c.Join {
		if !IsToken(entry) {
			if err := checkPeer(entry); err != nil {
				problems = append(problems, err)
			}
			b.Addrs = append(b.Addrs, entry)
			continue
		}
		token, err := readToken(entry)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			b.Absent = append(b.Absent, strings.TrimPrefix(entry, tokenFile))
		case err != nil:
			problems = append(problems, err)
		case b.World != "" && token.World != b.World:
			problems = append(problems, fmt.Errorf("the tokens are of two worlds, %s and %s: "+
				"a daemon can join only one", b.World, token.World))
		default:
			b.World = token.World
			b.Addrs = append(b.Addrs, token.Addrs...)
			b.Peers = append(b.Peers, token.peers()...)
			b.Secret = cmp.Or(token.Secret, b.Secret)
		}
	}
	return b, errors.Join(problems...)
}

// tokenFile is the prefix of an entry of Join that names a file with a token.
const tokenFile = "@"

// readToken parses a token, or the one in a file.
func readToken(entry string) (Token, error) {
	path, isFile := strings.CutPrefix(entry, tokenFile)
	if !isFile {
		return ParseToken(entry)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return Token{}, fmt.Errorf("read join token: %w", err)
	}
	return ParseToken(string(text))
}

// Level returns LogLevel as a slog.Level.
func (c Config) Level() slog.Level {
	switch c.LogLevel {
	case "debug":
		return slog.LevelDebug
	case "warn":
		return slog.LevelWarn
	case "error":
		return slog.LevelError
	}
	return slog.LevelInfo
}
