package rig

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
)

// Options configure daemons. The zero value of a field means its default.
type Options struct {
	Binary string   // path of voxeld (required)
	Dir    string   // parent of the data directories (required)
	CPUs   []int    // the cores that daemons may use; default all
	Procs  int      // GOMAXPROCS of each daemon; default the number of CPUs, or all
	Nice   int      // niceness of each daemon; a negative one takes priority over other programs and requires root
	Seed   int64    // of the world; default 1
	Args   []string // more flags of voxeld run

	Started func(n int) // called with the number of serving daemons after each daemon of a network has started, if not nil
}

// Daemon is one running voxeld.
type Daemon struct {
	Process
	Game string // host:port
	dir  string
	http *http.Client // client of the admin socket
}

// Network starts n daemons of one world: the first creates it, the others join it.
func Network(ctx context.Context, o Options, n int) ([]*Daemon, error) {
	var all []*Daemon
	var join []string
	for i := range n {
		d, err := start(ctx, o, i, join)
		if err != nil {
			StopAll(all)
			return nil, fmt.Errorf("start daemon %d of %d: %w", i+1, n, err)
		}
		all = append(all, d)
		if o.Started != nil {
			o.Started(len(all))
		}
		if i > 0 {
			continue
		}
		token, err := d.Invite(ctx)
		if err != nil {
			StopAll(all)
			return nil, err
		}
		join = []string{"--join", token}
	}
	return all, nil
}

// StopAll stops daemons, all at once.
func StopAll(all []*Daemon) {
	for _, d := range all {
		d.signal(syscall.SIGTERM)
	}
	for _, d := range all {
		d.Stop()
	}
}

// start runs the i-th daemon, on its own loopback address, and waits until it serves.
func start(ctx context.Context, o Options, i int, join []string) (*Daemon, error) {
	ip := fmt.Sprintf("127.%d.0.1", 101+i)
	if i > 150 {
		ip = fmt.Sprintf("127.%d.1.1", 101+i-150)
	}
	dir := filepath.Join(o.Dir, "node-"+strconv.Itoa(i))
	if join == nil {
		seed := o.Seed
		if seed == 0 {
			seed = 1
		}
		made := exec.CommandContext(ctx, o.Binary, "init", "--data-dir", dir, "--seed", strconv.FormatInt(seed, 10))
		if out, err := made.CombinedOutput(); err != nil {
			return nil, fmt.Errorf("make world: %w: %s", err, out)
		}
	}
	d := &Daemon{Game: ip + ":4002", dir: dir}
	d.Metrics = ip + ":9102"
	args := append([]string{
		"run", "--data-dir", dir, "--listen", "/ip4/" + ip + "/tcp/4001",
		"--game", d.Game, "--http", ip + ":8080", "--metrics", d.Metrics, "--log-level", "warn",
	}, join...)
	socket := filepath.Join(dir, "admin.sock")
	d.http = &http.Client{Transport: &http.Transport{
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "unix", socket)
		},
	}}
	if err := d.run(o, "node-"+strconv.Itoa(i), o.Binary, append(args, o.Args...)); err != nil {
		return nil, err
	}
	return d, d.Await(ctx, func() error { return d.ask(ctx, "/status", new(json.RawMessage)) })
}

// ask requests JSON from the admin socket.
func (d *Daemon) ask(ctx context.Context, path string, answer any) error {
	data, err := d.admin(ctx, path)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(data, answer); err != nil {
		return fmt.Errorf("request %s: %w", path, err)
	}
	return nil
}

func (d *Daemon) admin(ctx context.Context, path string) ([]byte, error) {
	return get(ctx, d.http, "http://admin"+path)
}

func get(ctx context.Context, client *http.Client, url string) ([]byte, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, err
	}
	response, err := client.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close() //nolint:errcheck // read to its end
	data, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode != http.StatusOK {
		err = errors.New(response.Status + ": " + string(bytes.TrimSpace(data)))
	}
	if err != nil {
		return nil, fmt.Errorf("get %s: %w", url, err)
	}
	return data, nil
}

// Invite returns a join token.
func (d *Daemon) Invite(ctx context.Context) (string, error) {
	var invite struct{ Token string }
	err := d.ask(ctx, "/invite", &invite)
	return invite.Token, err
}

// Collect makes the daemon collect its garbage now, so that its heap holds live objects only.
func (d *Daemon) Collect(ctx context.Context) error {
	_, err := d.admin(ctx, "/debug/pprof/heap?gc=1")
	return err
}

// Profile is a CPU profile as read by go tool pprof.
type Profile struct {
	Top   string             // the functions that used most, a table
	Below map[string]float64 // by function, its share of all samples, callees included; 0 to 1
}

// Profile writes a CPU profile of so many seconds to a file. ReadProfile reads it.
func (d *Daemon) Profile(ctx context.Context, seconds int, path string) error {
	data, err := d.admin(ctx, "/debug/pprof/profile?seconds="+strconv.Itoa(seconds))
	if err != nil {
		return err
	}
	if err := os.WriteFile(path, data, 0o644); err != nil {
		return fmt.Errorf("save profile: %w", err)
	}
	return nil
}

// ReadProfile reads one profile, or merges several. It keeps a core busy for a while.
func ReadProfile(ctx context.Context, paths ...string) (p Profile, err error) {
	read := func(flags ...string) (string, error) {
		out, err := exec.CommandContext(ctx, "go", slices.Concat([]string{"tool", "pprof", "-top"}, flags, paths)...).CombinedOutput()
		if err != nil {
			return "", fmt.Errorf("read profile: %w: %s", err, out)
		}
		return string(out), nil
	}
	if p.Top, err = read("-nodecount=25"); err != nil {
		return p, err
	}
	all, err := read("-cum", "-nodecount=100000", "-nodefraction=0")
	p.Below = sharesOf(all)
	return p, err
}

// sharesOf parses the table of go tool pprof -top.
func sharesOf(table string) map[string]float64 {
	shares := make(map[string]float64)
	for line := range strings.Lines(table) {
		cells := strings.Fields(line) // flat, flat%, sum%, cum, cum%, name
		if len(cells) < 6 || !strings.HasSuffix(cells[4], "%") {
			continue
		}
		if v, err := strconv.ParseFloat(strings.TrimSuffix(cells[4], "%"), 64); err == nil {
			shares[cells[5]] = v / 100
		}
	}
	return shares
}

// PlayersLed returns the number of players in the regions that this daemon leads.
func (d *Daemon) PlayersLed(ctx context.Context) (int, error) {
	var status struct{ Peer string }
	if err := d.ask(ctx, "/status", &status); err != nil {
		return 0, err
	}
	var regions []struct {
		Leader  string
		Players int
	}
	if err := d.ask(ctx, "/regions", &regions); err != nil {
		return 0, err
	}
	sum := 0
	for _, r := range regions {
		if r.Leader == status.Peer {
			sum += r.Players
		}
	}
	return sum, nil
}
