package dht

import (
	"bytes"
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"strings"
	"testing"
	"time"

	record "github.com/libp2p/go-libp2p-record"
	"github.com/libp2p/go-libp2p/core/peer"

	"github.com/voxelpopuli/voxeld/grid"
)

// rpc is one of Kademlia's calls, from one node to another, which holds value under key.
type rpc struct {
	name string
	call func(ctx context.Context, from *node, to peer.ID, key string, value []byte) error
}

func rpcs() []rpc {
	store := func(ctx context.Context, from *node, to peer.ID, key string, value []byte) error {
		return from.holders.send.PutValue(ctx, to, record.MakePutRecord(key, value))
	}
	find := func(ctx context.Context, from *node, to peer.ID, key string, _ []byte) error {
		rec, _, err := from.holders.send.GetValue(ctx, to, key)
		if err == nil && rec == nil {
			return fmt.Errorf("%s has no record of %s", to, key)
		}
		return err
	}
	return []rpc{
		{"PING", func(ctx context.Context, from *node, to peer.ID, _ string, _ []byte) error {
			return from.holders.send.Ping(ctx, to)
		}},
		{"STORE_CHUNK", store},
		{"STORE_PLAYER", store},
		{"FIND_NODE", func(ctx context.Context, from *node, to peer.ID, key string, _ []byte) error {
			_, err := from.holders.send.GetClosestPeers(ctx, to, peer.ID(key))
			return err
		}},
		{"FIND_CHUNK", find},
		{"FIND_PLAYER", find},
	}
}

// BenchmarkRPC times each of Kademlia's calls in networks of 10 to 60 daemons, as figure 4.1 of the VoxelPopuli
// dissertation does, and prints a table in markdown (research/measured.md): mean and standard deviation of a question
// and its answer over a TCP connection that is open. All daemons run in this process.
func BenchmarkRPC(b *testing.B) {
	const trials = 100 // of each call, at least
	ctx := b.Context()
	var nodes []*node
	s := setup{options: Options{Placement: grid.PlacementWalkad, RedialEvery: time.Second}}
	var table strings.Builder
	table.WriteString("\n| nodes |")
	for _, call := range rpcs() {
		table.WriteString(" " + call.name + " |")
	}
	table.WriteString("\n|---|---:|---:|---:|---:|---:|---:|\n")
	for _, size := range []int{10, 20, 30, 40, 50, 60} {
		for len(nodes) < size {
			nodes = append(nodes, startNode(b, len(nodes)+1, s))
			s.bootstrap = nodes[0].host.Addrs()[:1]
		}
		settle(b, nodes)
		found(b, nodes, uint64(size))
		if err := nodes[0].PutPlayer(ctx, nodes[0].saved("ann", uint64(size))); err != nil {
			b.Fatal(err)
		}
		chunk, player := nodes[0].regions.Key(cellOf(0)), nodes[0].saved("ann", 1).Player.Key()
		fmt.Fprintf(&table, "| %d |", size)
		for _, call := range rpcs() {
			key, choose := chunk, nodes[0].regions.Select
			if call.name == "STORE_PLAYER" || call.name == "FIND_PLAYER" {
				key, choose = player, nodes[0].players.Select
			}
			b.Run(fmt.Sprintf("nodes=%d/%s", size, call.name), func(b *testing.B) {
				holders, value := holdersOf(ctx, b, nodes, key, choose)
				var took spread
				for b.Loop() {
					took = append(took, timed(ctx, b, call, nodes, holders, key, value))
				}
				for len(took) < trials {
					took = append(took, timed(ctx, b, call, nodes, holders, key, value))
				}
				mean, square := took.mean(), 0.0
				for _, v := range took {
					square += (v - mean) * (v - mean)
				}
				fmt.Fprintf(&table, " %.0f ± %.0f |", mean, math.Sqrt(square/float64(len(took))))
			})
		}
		table.WriteString("\n")
	}
	fmt.Fprintln(os.Stdout, table.String())
}

// holdersOf returns the nodes that hold the newest version of a record, and that version. choose selects the newest.
func holdersOf(ctx context.Context, b *testing.B, nodes []*node, key string, choose func(string, [][]byte) (int, error)) (holders []*node, newest []byte) {
	var values [][]byte
	for i, n := range nodes {
		asker := nodes[(i+1)%len(nodes)]
		if rec, _, err := asker.holders.send.GetValue(ctx, n.kad.PeerID(), key); err == nil && rec != nil {
			holders, values = append(holders, n), append(values, rec.GetValue())
		}
	}
	best, err := choose(key, values)
	if err != nil {
		b.Fatalf("hold %s: %v", key, err)
	}
	var with []*node
	for i, n := range holders {
		if bytes.Equal(values[i], values[best]) {
			with = append(with, n)
		}
	}
	return with, values[best]
}

// timed makes one call from a random node to a random holder, and returns the time it took, in microseconds.
func timed(ctx context.Context, b *testing.B, call rpc, nodes, holders []*node, key string, value []byte) float64 {
	from, to := nodes[rand.IntN(len(nodes))], holders[rand.IntN(len(holders))]
	for from == to {
		from = nodes[rand.IntN(len(nodes))]
	}
	if err := from.holders.send.Ping(ctx, to.kad.PeerID()); err != nil { // opens the connection and the stream
		b.Fatal(err)
	}
	began := time.Now()
	if err := call.call(ctx, from, to.kad.PeerID(), key, value); err != nil {
		b.Fatalf("%s: %v", call.name, err)
	}
	return float64(time.Since(began).Nanoseconds()) / 1000
}
