package main

import (
	"context"
	"encoding/hex"
	"fmt"
	"log/slog"
	"path/filepath"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/voxelpopuli/voxeld/dht"
	"github.com/voxelpopuli/voxeld/dht/admission"
	"github.com/voxelpopuli/voxeld/dht/transport"
	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/internal/config"
	"github.com/voxelpopuli/voxeld/store"
	"github.com/voxelpopuli/voxeld/test/testkit/daemon"
	"github.com/voxelpopuli/voxeld/test/testkit/histogram"
	"github.com/voxelpopuli/voxeld/test/testkit/process"
	"github.com/voxelpopuli/voxeld/trust"
)

// ownNode makes this program a node of the daemons' DHT. stop removes it again.
func ownNode(ctx context.Context, d *daemon.Daemon, dir string) (node *dht.DHT, stop func(), err error) {
	invite, err := d.Invite(ctx, false)
	if err != nil {
		return nil, nil, err
	}
	token, err := config.ParseToken(invite)
	if err != nil {
		return nil, nil, err
	}
	db, err := store.Open(store.Options{Path: filepath.Join(dir, "own.db")})
	if err != nil {
		return nil, nil, err
	}
	ctx, end := context.WithCancel(ctx)
	var wg sync.WaitGroup
	wg.Go(func() { db.Run(ctx) }) //nolint:errcheck // errors show in the measurement
	stop = func() {
		end()
		wg.Wait()
		db.Close() //nolint:errcheck // its contents are not needed
	}
	host, err := transport.NewHost(transport.Options{Storage: db, Listen: []string{"/ip4/127.100.0.1/tcp/4001"}, Bootstrap: token.Addrs})
	if err != nil {
		stop()
		return nil, nil, err
	}
	gate, err := admit(ctx, host, db, token)
	if err != nil {
		stop()
		return nil, nil, err
	}
	node, err = dht.Join(host, dht.Options{
		World: token.World, Placement: grid.PlacementWalkad, Storage: db, Certificate: gate.Seen.Certificate,
	})
	if err != nil {
		stop()
		return nil, nil, err
	}
	wg.Go(func() { gate.Run(ctx) }) //nolint:errcheck // errors show in the measurement
	wg.Go(func() { node.Run(ctx) }) //nolint:errcheck // errors show in the measurement
	inner := stop
	stop = func() {
		node.Close() //nolint:errcheck // its contents are not needed
		host.Close() //nolint:errcheck // its contents are not needed
		inner()
	}
	return node, stop, process.Pause(ctx, 15*time.Second) // until its routing table is full
}

// admit obtains a certificate for the host with the token, and has the host show it.
func admit(ctx context.Context, host *transport.Host, db *store.DB, token config.Token) (*admission.Gate, error) {
	id, err := hex.DecodeString(token.World)
	if err != nil || len(id) != len(trust.World{}) || token.Secret == nil {
		return nil, fmt.Errorf("the daemon's token admits nobody to world %q", token.World)
	}
	o := admission.Options{
		World: trust.World(id), Storage: db, Host: host, Logger: slog.New(slog.DiscardHandler), Registerer: prometheus.NewRegistry(),
	}
	issuer, err := host.Connect(ctx, token.Addrs[0])
	if err != nil {
		return nil, err
	}
	believe := func(genesis []byte, named []trust.Key) ([]trust.Key, error) {
		o.Genesis, o.Roots = genesis, named
		return named, nil
	}
	if err := admission.Enroll(ctx, o, issuer, *token.Secret, believe); err != nil {
		return nil, err
	}
	gate, err := admission.Open(o)
	if err != nil {
		return nil, err
	}
	host.HandleAsk(admission.Protocol, gate.Answer)
	host.SetGate(gate)
	return gate, nil
}

// plainGets gets the cells' records, each a few times.
func plainGets(ctx context.Context, node *dht.DHT, land []grid.ChunkPos) (took *histogram.Histogram, err error) {
	took = new(histogram.Histogram)
	for i := range 5 * len(land) {
		began := time.Now()
		if _, err := node.Region(ctx, grid.CellAt(land[i%len(land)], grid.FoundingLabel)); err != nil {
			return took, err
		}
		took.Add(time.Since(began).Seconds())
	}
	return took, nil
}
