package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/rpc"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/test/testkit/process"
)

// regionSystem is three processes of runNode.
type regionSystem struct {
	nodes []*nodeProcess
	rate  float64
	keys  bool
}

// nodeProcess is one of them, and the client of its pipes.
type nodeProcess struct {
	*process.Process
	*rpc.Client
	metrics string // host:port
	led     int
}

func startRegions(ctx context.Context, o options, net int) (system, error) {
	f, err := startNodes(ctx, o, net, 3)
	if err != nil {
		return nil, err
	}
	if err := f.found(regionsAt(spreadOver)); err != nil {
		f.stop()
		return nil, err
	}
	return f, nil
}

// startNodes starts nodes, and waits until they are connected, so that each region gets as many members as it can.
func startNodes(ctx context.Context, o options, net, count int) (*regionSystem, error) {
	f := &regionSystem{rate: o.rate, keys: o.keys}
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	join := ""
	var metrics []string
	for i := range count {
		name, ip := fmt.Sprintf("region-%d", i), fmt.Sprintf("127.%d.0.1", net+i)
		dir := filepath.Join(o.dir, name)
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return nil, err
		}
		p, in, out, err := process.StartPiped(process.Options{Log: filepath.Join(o.dir, name+".log")}, self, "node", "-dir", dir, "-ip", ip, "-join", join)
		if err != nil {
			f.stop()
			return nil, err
		}
		n := &nodeProcess{Process: p, Client: rpc.NewClient(nodePipes{out, in}), metrics: ip + ":9102"}
		f.nodes, metrics = append(f.nodes, n), append(metrics, n.metrics)
		addr := ""
		if err := n.Call("Node.Addr", true, &addr); err != nil {
			f.stop()
			return nil, fmt.Errorf("start a node: %w: %s", err, p.Log())
		}
		if join == "" {
			join = addr
		}
	}
	if err := knowEachOther(ctx, metrics); err != nil {
		f.stop()
		return nil, err
	}
	return f, nil
}

// nodePipes are the connection with a node.
type nodePipes struct {
	io.Reader
	io.WriteCloser
}

// spreadOver is the number of regions that the writers are spread over.
const spreadOver = 64

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

// found founds the regions.
func (f *regionSystem) found(regions []grid.ChunkPos) error {
	if err := f.nodes[0].Call("Node.Found", regions, new(bool)); err != nil {
		return fmt.Errorf("found regions: %w", err)
	}
	for i, n := range f.nodes {
		if err := n.Call("Node.Adopt", regions, &n.led); err != nil {
			return fmt.Errorf("link to regions: %w", err)
		}
		fmt.Fprintf(os.Stderr, "  node %d leads %d regions\n", i, n.led)
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
	var all sync.WaitGroup
	took, errs := make([][]time.Duration, len(f.nodes)), make([]error, len(f.nodes))
	for i, n := range f.nodes {
		if shares[i] == 0 {
			continue
		}
		w := Writing{Writers: shares[i], Keys: f.keys, Rate: f.rate * float64(shares[i]) / float64(writers), Warm: warm, Duration: duration}
		all.Go(func() { errs[i] = n.Call("Node.Write", w, &took[i]) })
	}
	all.Wait()
	return percentiles(slices.Concat(took...), duration), errors.Join(errs...)
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
		n.Close() //nolint:errcheck // it may have ended
		n.Kill()  // its data is not needed
	}
}
