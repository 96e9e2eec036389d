// Package daemon runs voxeld for tests, benchmarks and fault injection, and reads its admin socket, its metrics and its
// CPU profiles. Daemons share a machine, each on its own loopback address (or in its own network namespace), at the
// usual ports: so a restarted daemon has its old addresses.
//
// A Daemon belongs to one goroutine, except that any goroutine may make its requests.
package daemon

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/voxelpopuli/voxeld/test/testkit/metrics"
	"github.com/voxelpopuli/voxeld/test/testkit/process"
)

// startTimeout is the time limit for a daemon to serve, on a machine that is busy starting a hundred of them.
const startTimeout = 2 * time.Minute

// Options configure a daemon. The zero value of a field means its default.
type Options struct {
	Binary   string // path of voxeld (required)
	Dir      string // data directory (required)
	IP       string // address of its sockets (required)
	Admin    string // admin socket; default admin.sock in Dir
	LogLevel string // default warn
	Args     []string
	Init     []string // further flags of voxeld init, for the first daemon of a Network
	// Prepare, if not nil, is called with the data directory of each daemon of a Network, which exists, before it
	// starts.
	Prepare func(dir string) error
	process.Options
}

// Daemon is one voxeld. Process is that of its latest start; nil before.
type Daemon struct {
	*process.Process
	Game, HTTP, Metrics string // host:port
	Listen              string // libp2p address for other nodes

	o     Options
	admin *http.Client
}

// New returns a daemon that does not run yet.
func New(o Options) *Daemon {
	if o.Admin == "" {
		o.Admin = filepath.Join(o.Dir, "admin.sock")
	}
	if o.LogLevel == "" {
		o.LogLevel = "warn"
	}
	d := &Daemon{Listen: "/ip4/" + o.IP + "/tcp/4001", Game: o.IP + ":4002", HTTP: o.IP + ":8080", Metrics: o.IP + ":9102", o: o}
	d.admin = &http.Client{Transport: &http.Transport{
		DisableKeepAlives: true,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "unix", o.Admin)
		},
	}}
	return d
}

// UseBinary makes later starts run another build of voxeld.
func (d *Daemon) UseBinary(path string) { d.o.Binary = path }

// Init configures a new world in the data directory, with the flags of voxeld init.
func (d *Daemon) Init(ctx context.Context, flags ...string) error {
	c := exec.CommandContext(ctx, d.o.Binary, append([]string{"init", "--data-dir", d.o.Dir}, flags...)...)
	if out, err := c.CombinedOutput(); err != nil {
		return fmt.Errorf("voxeld init: %w: %s", err, out)
	}
	return nil
}

// Launch runs the daemon without waiting until it serves. A new one joins the world of an invitation, unless it is
// empty.
func (d *Daemon) Launch(invitation string) (err error) {
	args := append([]string{
		"run", "--data-dir", d.o.Dir, "--admin", d.o.Admin, "--listen", d.Listen,
		"--game", d.Game, "--http", d.HTTP, "--metrics", d.Metrics, "--log-level", d.o.LogLevel,
	}, d.o.Args...)
	if invitation != "" {
		args = append(args, "--join", invitation)
	}
	d.Process, err = process.Start(d.o.Options, d.o.Binary, args...)
	return err
}

// Await waits until a launched daemon serves players. If it does not in time, it is killed.
func (d *Daemon) Await(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	err := d.Process.Await(ctx, func() error {
		if !strings.Contains(d.Output(), "\n  Play:") {
			return errors.New("it has not printed where to play")
		}
		return nil
	})
	if ctx.Err() != nil {
		d.Kill()
	}
	return err
}

// Start runs the daemon, and waits until it serves players.
func (d *Daemon) Start(ctx context.Context, invitation string) error {
	if err := d.Launch(invitation); err != nil {
		return err
	}
	return d.Await(ctx)
}

// Ask makes a request to the admin socket, and decodes the JSON of the answer.
func (d *Daemon) Ask(ctx context.Context, path string, answer any) error {
	return d.ask(ctx, http.MethodGet, path, answer)
}

func (d *Daemon) ask(ctx context.Context, method, path string, answer any) error {
	data, err := d.request(ctx, method, path)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(data, answer); err != nil {
		return fmt.Errorf("request %s: %w", path, err)
	}
	return nil
}

func (d *Daemon) request(ctx context.Context, method, path string) ([]byte, error) {
	request, err := http.NewRequestWithContext(ctx, method, "http://admin"+path, nil)
	if err != nil {
		return nil, err
	}
	response, err := d.admin.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close() //nolint:errcheck // read to its end
	data, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode != http.StatusOK {
		err = errors.New(response.Status + ": " + string(bytes.TrimSpace(data)))
	}
	if err != nil {
		return nil, fmt.Errorf("request %s: %w", path, err)
	}
	return data, nil
}

// Invite returns a join token for any number of nodes; if issuers, they may give out tokens, too (a world has room for
// trust.MaxIssuers of them).
func (d *Daemon) Invite(ctx context.Context, issuers bool) (string, error) {
	var invite struct{ Token, Error string }
	err := d.ask(ctx, http.MethodPost, fmt.Sprintf("/invite?uses=0&issuer=%t", issuers), &invite)
	if err != nil && strings.Contains(err.Error(), http.StatusText(http.StatusMethodNotAllowed)) {
		err = d.Ask(ctx, "/invite", &invite) // a binary from before certificates
	}
	if err != nil {
		return "", err
	}
	if invite.Error != "" {
		return "", errors.New(invite.Error)
	}
	return invite.Token, nil
}

// Status is what a daemon reports about itself.
type Status struct {
	Peer    string // its id
	Peers   int    // nodes that it is connected with
	Catalog string // peer that leads the catalog; empty if unknown
	// NodeRegions counts the regions that the node holds a replica of, and the catalog, by their state.
	NodeRegions map[string]int `json:"node_regions"`
}

// Status asks the daemon for its status.
func (d *Daemon) Status(ctx context.Context) (s Status, err error) {
	return s, d.Ask(ctx, "/status", &s)
}

// Region is a region that is open on a daemon.
type Region struct {
	ID      string
	Cell    string
	Leader  string   // peer
	Members []string // peers
	Voters  int
	Term    uint64
	Players int
}

// Regions asks the daemon for its regions.
func (d *Daemon) Regions(ctx context.Context) (all []Region, err error) {
	err = d.Ask(ctx, "/regions", &all)
	return all, err
}

// Split splits the region of a cell between the halves of the cell.
func (d *Daemon) Split(ctx context.Context, cell string) error {
	return d.restructure(ctx, "/split", cell)
}

// Merge merges the halves of a cell again.
func (d *Daemon) Merge(ctx context.Context, cell string) error {
	return d.restructure(ctx, "/merge", cell)
}

func (d *Daemon) restructure(ctx context.Context, path, cell string) error {
	return d.post(ctx, path, url.Values{"cell": {cell}})
}

// post has the daemon do something.
func (d *Daemon) post(ctx context.Context, path string, q url.Values) error {
	var done struct{ Error string }
	if err := d.ask(ctx, http.MethodPost, path+"?"+q.Encode(), &done); err != nil {
		return err
	}
	if done.Error != "" {
		return errors.New(done.Error)
	}
	return nil
}

// Command has the daemon carry out a command of the world's operator, as "setspawn 0 20 0".
func (d *Daemon) Command(ctx context.Context, text string) error {
	return d.post(ctx, "/policy", url.Values{"text": {text}})
}

// Revoke has the daemon revoke a node, whatever that costs.
func (d *Daemon) Revoke(ctx context.Context, peer, reason string) error {
	return d.post(ctx, "/peers/revoke", url.Values{"kind": {"node"}, "subject": {peer}, "reason": {reason}, "force": {"true"}})
}

// Scrape reads the daemon's metrics.
func (d *Daemon) Scrape(ctx context.Context) (metrics.Metrics, error) {
	return metrics.Scrape(ctx, d.Metrics)
}
