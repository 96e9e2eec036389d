// Package bundle collects in one file what whoever looks into a problem of a node asks for first, without secrets.
//
// WriteSettings and WriteProcess run in the node, Collect in the command.
package bundle

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"time"

	"github.com/voxelpopuli/voxeld/cmd/voxeld/internal/admin"
	"github.com/voxelpopuli/voxeld/cmd/voxeld/internal/redact"
	"github.com/voxelpopuli/voxeld/internal/config"
	"github.com/voxelpopuli/voxeld/wire"
)

// Paths on the admin socket.
const (
	LogPath     = "/debug/log"
	ConfigPath  = "/debug/config"
	ProcessPath = "/debug/process"
)

// Options of a bundle.
type Options struct {
	Socket    string // of the node
	Version   string // of this command
	Addresses bool   // IP addresses are left in it
	Now       time.Time
}

// part is a file of a bundle that the node answers.
type part struct {
	name, path string
	profile    bool // it is no text
}

// profileSeconds is how long the processors are watched.
const profileSeconds = 5

var parts = []part{
	{name: "status.json", path: "/status"},
	{name: "doctor.json", path: "/doctor"},
	{name: "peers.json", path: "/peers"},
	{name: "regions.json", path: "/regions"},
	{name: "metrics.txt", path: "/metrics"},
	{name: "log.txt", path: LogPath},
	{name: "config.json", path: ConfigPath},
	{name: "process.txt", path: ProcessPath},
	{name: "goroutines.txt", path: "/debug/pprof/goroutine?debug=2"},
	{name: "heap.pprof", path: "/debug/pprof/heap", profile: true},
	{name: "cpu.pprof", path: fmt.Sprintf("/debug/pprof/profile?seconds=%d", profileSeconds), profile: true},
}

const (
	// partTime bounds how long the node may take for a part: it may be one that hangs.
	partTime = profileSeconds*time.Second + 15*time.Second
	// maxPart bounds the size of a part.
	maxPart = 64 << 20
)

// Collect writes a bundle to w. A part that the node does not answer is missing in it, and reported as an error: the
// bundle is whole even so.
func Collect(ctx context.Context, w io.Writer, o Options) (missing []error, err error) {
	packed := gzip.NewWriter(w)
	out := tar.NewWriter(packed)
	add := func(name string, content []byte) error {
		header := tar.Header{
			Name: path.Join("voxeld-bundle-"+o.Now.UTC().Format("20060102T150405Z"), name), Mode: 0o600, Size: int64(len(content)), ModTime: o.Now,
		}
		if err := out.WriteHeader(&header); err != nil {
			return err
		}
		_, err := out.Write(content)
		return err
	}
	var addresses redact.Addresses
	text := func(content []byte) []byte {
		lines := strings.SplitAfter(string(content), "\n")
		for i, line := range lines {
			if lines[i] = redact.Tokens(line); !o.Addresses {
				lines[i] = addresses.Replace(lines[i])
			}
		}
		return []byte(strings.Join(lines, ""))
	}
	answers, failures := make([][]byte, len(parts)), make([]error, len(parts))
	var asking sync.WaitGroup // at once: each may take as long as it may
	for i, p := range parts {
		asking.Go(func() { answers[i], failures[i] = ask(ctx, o.Socket, p.path) })
	}
	asking.Wait()
	for i, p := range parts {
		content := answers[i]
		if failures[i] != nil {
			missing = append(missing, fmt.Errorf("%s: %w", p.name, failures[i]))
			continue
		}
		if !p.profile {
			content = text(content)
		}
		if err := add(p.name, content); err != nil {
			return missing, err
		}
	}
	about := fmt.Appendf(nil, "voxeld debug bundle of %s, by %s\n", o.Now.UTC().Format(time.RFC3339), o.Version)
	if !o.Addresses {
		about = append(about, "IP addresses are replaced by names: the same address has the same name everywhere.\n"...)
	}
	for _, failed := range missing {
		about = fmt.Appendf(about, "missing: %s\n", wire.ErrorText(failed))
	}
	return missing, errors.Join(add("machine.txt", text(machine())), add("about.txt", text(about)), out.Close(), packed.Close())
}

func ask(ctx context.Context, socket, path string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, partTime)
	defer cancel()
	response, err := admin.Request(ctx, socket, http.MethodGet, path)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close() //nolint:errcheck // it was only read
	content, err := io.ReadAll(io.LimitReader(response.Body, maxPart))
	if err != nil {
		return nil, fmt.Errorf("query the node: %w", err)
	}
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("the node answers %s", response.Status)
	}
	return content, nil
}

// WriteSettings writes the configuration of a node, without the secrets of tokens.
func WriteSettings(w io.Writer, all []config.Setting) {
	type setting struct {
		Option string `json:"option"`
		Value  string `json:"value"`
		Origin string `json:"origin"`
	}
	shown := []setting{}
	for _, s := range all {
		origin := s.Origin
		if origin == "" {
			origin = string(s.Source)
		}
		value := s.Redacted()
		if s.Option.Name == "acme-email" && value != "" {
			value = "(set)"
		}
		shown = append(shown, setting{s.Option.Key(), value, origin})
	}
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	e.Encode(shown) //nolint:errcheck,errchkjson // the command left
}

// WriteProcess writes what the kernel says of this process, its control group and the disk of its data directory.
func WriteProcess(w io.Writer, dataDir string) {
	var b bytes.Buffer
	fmt.Fprintf(&b, "%s %s/%s, GOMAXPROCS %d, %d goroutines\n", runtime.Version(), runtime.GOOS, runtime.GOARCH, runtime.GOMAXPROCS(0), runtime.NumGoroutine())
	files := []string{"/proc/self/status", "/proc/self/limits", "/proc/self/io", "/proc/self/cgroup"}
	if group, err := os.ReadFile("/proc/self/cgroup"); err == nil {
		name, _, _ := strings.Cut(strings.TrimPrefix(string(group), "0::"), "\n") // of v2
		for _, file := range []string{"cpu.max", "cpu.stat", "cpu.pressure", "memory.max", "memory.current", "memory.events", "io.pressure"} {
			files = append(files, filepath.Join("/sys/fs/cgroup", name, file))
		}
	}
	show(&b, files...)
	fmt.Fprintf(&b, "== %s\n", dataDir)
	entries, err := os.ReadDir(dataDir)
	if err != nil {
		fmt.Fprintf(&b, "%v\n", err)
	}
	for _, e := range entries {
		if info, err := e.Info(); err == nil {
			fmt.Fprintf(&b, "%v %12d %s %s\n", info.Mode(), info.Size(), info.ModTime().UTC().Format(time.RFC3339), e.Name())
		}
	}
	w.Write(b.Bytes()) //nolint:errcheck // the command left
}

// machine returns what the kernel says of the machine.
func machine() []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, "%d processors\n", runtime.NumCPU())
	show(&b, "/etc/os-release", "/proc/version", "/proc/uptime", "/proc/loadavg", "/proc/meminfo", "/proc/pressure/cpu", "/proc/pressure/memory",
		"/proc/pressure/io", "/proc/net/snmp", "/sys/devices/system/clocksource/clocksource0/current_clocksource")
	return b.Bytes()
}

// maxShown bounds what is shown of a file.
const maxShown = 16 << 10

// show writes the files that can be read.
func show(w io.Writer, files ...string) {
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			continue // not on this system, or not in this sandbox
		}
		fmt.Fprintf(w, "== %s\n%s\n", file, bytes.TrimSpace(content[:min(len(content), maxShown)]))
	}
}
