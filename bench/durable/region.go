package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/testkit/process"
)

// regionSystem is three processes of runNode.
type regionSystem struct {
	nodes   []*nodeProcess
	profile string
	rate    float64
	rounds  int
}

// nodeProcess is one of them, with the pipes for commands and answers.
type nodeProcess struct {
	*process.Process
	metrics  string // host:port
	commands io.WriteCloser
	answers  *bufio.Reader
	led      int
}

func startRegions(ctx context.Context, o options, net int) (system, error) {
	f, err := startNodes(o, net, 3)
	if err != nil {
		return nil, err
	}
	if err := f.found(ctx, regionsAt(o.regions)); err != nil {
		f.stop()
		return nil, err
	}
	return f, nil
}

func startNodes(o options, net, count int) (*regionSystem, error) {
	f := &regionSystem{profile: o.pprof, rate: o.rate}
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	join := ""
	for i := range count {
		name, ip := fmt.Sprintf("region-%d", i), fmt.Sprintf("127.%d.0.1", net+i)
		dir := filepath.Join(o.dir, name)
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return nil, err
		}
		n, hello, err := startNode(o.dir, name, self, "node", "-dir", dir, "-ip", ip, "-join", join)
		if err != nil {
			f.stop()
			return nil, err
		}
		n.metrics = ip + ":9102"
		f.nodes = append(f.nodes, n)
		if join == "" {
			join = hello.Addr
		}
	}
	return f, nil
}

// regionsAt returns a chunk in the middle of each of n regions, in a square.
func regionsAt(n int) []grid.ChunkPos {
	side := 1
	for side*side < n {
		side++
	}
	all := make([]grid.ChunkPos, n)
	for i := range all {
		all[i] = grid.ChunkPos{X: int32(i%side)*16 + 8, Z: int32(i/side)*16 + 8}
	}
	return all
}

func startNode(dir, name, path string, args ...string) (*nodeProcess, answer, error) {
	p, in, out, err := process.StartPiped(process.Options{Log: filepath.Join(dir, name+".log")}, path, args...)
	if err != nil {
		return nil, answer{}, err
	}
	n := &nodeProcess{Process: p, commands: in, answers: bufio.NewReader(out)}
	hello, err := n.answer()
	return n, hello, err
}

func (n *nodeProcess) answer() (a answer, err error) {
	line, err := n.answers.ReadBytes('\n')
	if err != nil {
		return a, fmt.Errorf("a node ended: %w: %s", err, n.Log())
	}
	if err := json.Unmarshal(line, &a); err != nil {
		return a, err
	}
	if a.Error != "" {
		return a, errors.New(a.Error)
	}
	return a, nil
}

func (n *nodeProcess) request(o command) (answer, error) {
	line, err := json.Marshal(o)
	if err != nil {
		return answer{}, err
	}
	if _, err := n.commands.Write(append(line, '\n')); err != nil {
		return answer{}, err
	}
	return n.answer()
}

// found founds the regions once all nodes are connected, so that each gets three members.
func (f *regionSystem) found(ctx context.Context, regions []grid.ChunkPos) error {
	for _, n := range f.nodes {
		err := waitFor(ctx, "every node knows the others", 30*time.Second, func() bool {
			peers, err := metric(ctx, n.metrics, "voxeld_dht_table_peers")
			return err == nil && peers >= 2
		})
		if err != nil {
			return err
		}
	}
	if _, err := f.nodes[0].request(command{Found: regions}); err != nil {
		return fmt.Errorf("found regions: %w", err)
	}
	for i, n := range f.nodes {
		a, err := n.request(command{Adopt: regions})
		if err != nil {
			return fmt.Errorf("link to regions: %w", err)
		}
		n.led = a.Led
		fmt.Fprintf(os.Stderr, "  node %d leads %d regions\n", i, a.Led)
	}
	return nil
}

// load distributes the writers over the nodes like the regions. A single writer is on the node that leads most.
func (f *regionSystem) load(_ context.Context, writers int, warm, duration time.Duration) (result, error) {
	total, most := 0, 0
	for i, n := range f.nodes {
		total += n.led
		if n.led > f.nodes[most].led {
			most = i
		}
	}
	shares := make([]int, len(f.nodes))
	left := writers
	for i, n := range f.nodes {
		shares[i] = writers * n.led / total
		left -= shares[i]
	}
	shares[most] += left
	f.rounds++
	var all sync.WaitGroup
	answers, errs := make([]answer, len(f.nodes)), make([]error, len(f.nodes))
	for i, n := range f.nodes {
		if shares[i] == 0 {
			continue
		}
		o := command{Writers: shares[i], Rate: f.rate * float64(shares[i]) / float64(writers), Warm: warm, Duration: duration}
		if f.profile != "" {
			o.Profile = fmt.Sprintf("%s-%d-%d-%d", f.profile, writers, f.rounds, i)
		}
		all.Go(func() { answers[i], errs[i] = n.request(o) })
	}
	all.Wait()
	var took []time.Duration
	for _, a := range answers {
		took = append(took, a.Took...)
	}
	return percentiles(took, duration), errors.Join(errs...)
}

func (f *regionSystem) usage() (u usage, err error) {
	for _, n := range f.nodes {
		if err := u.add(n.Process, n.metrics, "voxeld_store_fsyncs_total"); err != nil {
			return u, err
		}
	}
	return u, nil
}

func (f *regionSystem) stop() {
	for _, n := range f.nodes {
		n.commands.Close() //nolint:errcheck // it ends with its input
		n.Kill()           // its data is not needed
	}
}
