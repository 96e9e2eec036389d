package config

import (
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// Config is the configuration of a daemon. Load fills it. Default returns the defaults: start from those, because the
// zero value of a field is not its default. The `koanf` tag is the key in TOML. docs/configuration.md explains each
// option to operators.
type Config struct {
	DataDir string `koanf:"data_dir"` // directory of everything that is stored

	Listen   []string `koanf:"listen"`   // multiaddrs of the Kademlia side
	Announce []string `koanf:"announce"` // multiaddrs announced to other nodes; empty: those it listens on
	Game     string   `koanf:"game"`     // host:port of the game server (TCP)
	HTTP     string   `koanf:"http"`     // host:port of client, /ws, /healthz, /readyz
	Admin    string   `koanf:"admin"`    // path of the Unix socket; empty: see AdminSocket
	Metrics  string   `koanf:"metrics"`  // host:port of /metrics; empty: none

	AdvertiseGame string `koanf:"advertise_game"` // host:port advertised to others; empty: derived by cmd
	AdvertiseHTTP string `koanf:"advertise_http"` // URL that players open, advertised to others; empty: derived by cmd

	Join      []string `koanf:"join"`      // tokens and multiaddrs of bootstrap nodes; see Bootstrap
	Placement string   `koanf:"placement"` // walkad or hash; used when a world is created, ignored for an existing one

	Replicas     int    `koanf:"replicas"`      // members of a region's raft group, 1 to 7
	ReplaceAfter string `koanf:"replace_after"` // duration, see Grace: how long a member may be silent before it is replaced
	ScrubEvery   string `koanf:"scrub_every"`   // duration, see Scrub: how often the replicas of a region are compared

	BackupEvery string `koanf:"backup_every"` // duration, see BackupInterval: how often this node backs up the world
	BackupKeep  int    `koanf:"backup_keep"`  // scheduled backups that are kept
	BackupDir   string `koanf:"backup_dir"`   // directory of scheduled backups; empty: see BackupDirectory

	ViewDistance       int    `koanf:"view_distance"`        // maximum view distance, in chunks in each direction
	Guests             bool   `koanf:"guests"`               // whether players without a key may join
	SessionsPerAddress int    `koanf:"sessions_per_address"` // maximum of one IP address
	MotionBudget       int    `koanf:"motion_budget"`        // bytes/s of movement updates sent to one session
	EditsPerSecond     int    `koanf:"edits_per_second"`     // maximum of one session
	Overlay            string `koanf:"overlay"`              // relay, psense or areacast

	LogLevel  string `koanf:"log_level"`  // debug, info, warn or error
	LogFormat string `koanf:"log_format"` // text or json
}

// Bounds of options.
const (
	MaxViewDistance       = 12 // wire.MaxView
	MaxSessionsPerAddress = 1 << 16
	MinMotionBudget       = 1_000
	MaxMotionBudget       = 10_000_000
	MaxReplicas           = 7
	MaxBackups            = 10_000
	MaxEditsPerSecond     = 1_000_000
)

// AdminSocket returns the path of the Unix socket: Admin, or admin.sock in DataDir.
func (c Config) AdminSocket() string {
	if c.Admin != "" {
		return c.Admin
	}
	return filepath.Join(c.DataDir, "admin.sock")
}

// maxSocketPath is the longest path of a Unix socket, in bytes, that all supported systems accept.
const maxSocketPath = 103

// Validate returns nil, or all problems joined. Each error names the remedy.
func (c Config) Validate() error {
	var problems []error
	problem := func(key, format string, args ...any) {
		problems = append(problems, fmt.Errorf("%s: %s", key, fmt.Sprintf(format, args...)))
	}
	if c.DataDir == "" {
		problem("data_dir", "is empty: name a directory that this daemon can write to")
	}
	if path := c.AdminSocket(); len(path) > maxSocketPath {
		problem("admin", "%q is %d bytes long; the path of a socket may have at most %d: choose a shorter one",
			path, len(path), maxSocketPath)
	}
	if len(c.Listen) == 0 {
		problem("listen", "is empty: set at least one multiaddr, such as /ip4/0.0.0.0/tcp/4001")
	}
	for _, addr := range c.Listen {
		if err := checkListen(addr); err != nil {
			problem("listen", "%v", err)
		}
	}
	for _, addr := range c.Announce {
		if err := checkDialable(addr); err != nil {
			problem("announce", "%v", err)
		}
	}
	for _, a := range []struct{ key, addr string }{{"game", c.Game}, {"http", c.HTTP}, {"metrics", c.Metrics}} {
		if a.key == "metrics" && a.addr == "" {
			continue
		}
		if err := checkHostPort(a.addr, false); err != nil {
			problem(a.key, "%v", err)
		}
	}
	if c.AdvertiseGame != "" {
		if err := checkHostPort(c.AdvertiseGame, true); err != nil {
			problem("advertise_game", "%v", err)
		}
	}
	if c.AdvertiseHTTP != "" {
		if err := checkURL(c.AdvertiseHTTP); err != nil {
			problem("advertise_http", "%v", err)
		}
	}
	if _, _, err := c.Bootstrap(); err != nil {
		problems = append(problems, err)
	}
	for _, n := range []struct {
		key            string
		is, least, top int
	}{
		{"replicas", c.Replicas, 1, MaxReplicas},
		{"backup_keep", c.BackupKeep, 1, MaxBackups},
		{"view_distance", c.ViewDistance, 1, MaxViewDistance},
		{"sessions_per_address", c.SessionsPerAddress, 1, MaxSessionsPerAddress},
		{"motion_budget", c.MotionBudget, MinMotionBudget, MaxMotionBudget},
		{"edits_per_second", c.EditsPerSecond, 1, MaxEditsPerSecond},
	} {
		if n.is < n.least || n.is > n.top {
			problem(n.key, "%d is out of range: choose %d to %d", n.is, n.least, n.top)
		}
	}
	if d, err := time.ParseDuration(c.ReplaceAfter); err != nil || d < time.Second {
		problem("replace_after", "%q is not a duration of at least 1s: write one such as 90s or 5m", c.ReplaceAfter)
	}
	if d, err := time.ParseDuration(c.ScrubEvery); err != nil || d < 0 || d > 0 && d < time.Second {
		problem("scrub_every", "%q is neither 0 nor a duration of at least 1s: write one such as 30m or 6h", c.ScrubEvery)
	}
	if d, err := time.ParseDuration(c.BackupEvery); err != nil || d < 0 || d > 0 && d < time.Minute {
		problem("backup_every", "%q is neither 0 nor a duration of at least 1m: write one such as 6h or 24h", c.BackupEvery)
	}
	for _, w := range []struct {
		key, is string
		words   []string
	}{
		{"placement", c.Placement, []string{"walkad", "hash"}},
		{"overlay", c.Overlay, []string{"relay", "psense", "areacast"}}, // p2p.Overlays
		{"log_level", c.LogLevel, []string{"debug", "info", "warn", "error"}},
		{"log_format", c.LogFormat, []string{"text", "json"}},
	} {
		if err := checkWord(w.is, w.words); err != nil {
			problem(w.key, "%v", err)
		}
	}
	return errors.Join(problems...)
}

func checkWord(is string, words []string) error {
	if slices.Contains(words, is) {
		return nil
	}
	return fmt.Errorf("%q is not known: choose one of %s%s", is, strings.Join(words, ", "), didYouMean(is, words))
}

// Bootstrap expands Join. It returns the multiaddrs to dial, including those in tokens, and the world id
// of the tokens ("" without tokens).
func (c Config) Bootstrap() (addrs []string, world string, err error) {
	var problems []error
	for _, entry := range c.Join {
		if !IsToken(entry) {
			if err := checkPeer(entry); err != nil {
				problems = append(problems, fmt.Errorf("join: %w", err))
			}
			addrs = append(addrs, entry)
			continue
		}
		token, err := ParseToken(entry)
		switch {
		case err != nil:
			problems = append(problems, fmt.Errorf("join: %w", err))
		case world != "" && token.World != world:
			problems = append(problems, fmt.Errorf("join: the tokens are of two worlds, %s and %s: "+
				"a daemon can join only one", world, token.World))
		default:
			world = token.World
			addrs = append(addrs, token.Addrs...)
		}
	}
	if err := errors.Join(problems...); err != nil {
		return nil, "", err
	}
	return addrs, world, nil
}

// Grace returns ReplaceAfter as a duration; 0 if that is invalid.
func (c Config) Grace() time.Duration {
	d, err := time.ParseDuration(c.ReplaceAfter)
	if err != nil {
		return 0
	}
	return d
}

// Scrub returns ScrubEvery as a duration; 0 if it is invalid or scrubbing is disabled.
func (c Config) Scrub() time.Duration {
	d, err := time.ParseDuration(c.ScrubEvery)
	if err != nil {
		return 0
	}
	return d
}

// BackupInterval returns BackupEvery as a duration; 0 if it is invalid or there are no scheduled backups.
func (c Config) BackupInterval() time.Duration {
	d, err := time.ParseDuration(c.BackupEvery)
	if err != nil {
		return 0
	}
	return d
}

// BackupDirectory returns the directory of scheduled backups: BackupDir, or backups in DataDir.
func (c Config) BackupDirectory() string {
	if c.BackupDir != "" {
		return c.BackupDir
	}
	return filepath.Join(c.DataDir, "backups")
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
