package hostile

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/voxelpopuli/voxeld/dht/admission"
	"github.com/voxelpopuli/voxeld/dht/transport"
	"github.com/voxelpopuli/voxeld/internal/kv"
	regiontransport "github.com/voxelpopuli/voxeld/region/transport"
)

// A Stranger is a node without a certificate.
type Stranger struct {
	Host   *transport.Host
	Peer   string // whom it attacks
	victim string
}

// NewStranger returns a stranger that is connected to a victim, at an address as in /ip4/127.0.0.1/tcp/4001. It must be
// closed.
func NewStranger(ctx context.Context, listen, victim string) (*Stranger, error) {
	host, err := transport.NewHost(transport.Options{Storage: forgetful{}, Listen: []string{listen}})
	if err != nil {
		return nil, err
	}
	peer, err := host.Connect(ctx, victim)
	if err != nil {
		return nil, errors.Join(err, host.Close())
	}
	return &Stranger{host, peer, victim}, nil
}

// Close disconnects the stranger.
func (s *Stranger) Close() error { return s.Host.Close() }

// Flood opens up to 800 streams a second until ctx ends, and sends half of a frame on each. It returns how many were
// opened.
func (s *Stranger) Flood(ctx context.Context, world string) int64 {
	s.Host.HandleAsk(admission.Protocol, func(ctx context.Context, _ string, _ []byte) ([]byte, error) {
		<-ctx.Done() // it does not answer the node's question for its certificate
		return nil, ctx.Err()
	})
	half := append([]byte{0, 0, 0xff, 0}, make([]byte, 60<<10)...)
	var wg sync.WaitGroup
	var opened atomic.Int64
	for i := range 4 {
		protocol := []string{"/voxeld/" + world[:16] + regiontransport.RaftProtocol, admission.Protocol}[i%2]
		wg.Go(func() {
			again := time.NewTicker(5 * time.Millisecond)
			defer again.Stop()
			for ; ctx.Err() == nil; <-again.C {
				stream, err := s.Host.Open(ctx, s.Peer, protocol)
				if err != nil {
					s.Host.Connect(ctx, s.victim) //nolint:errcheck // it is tried again
					continue
				}
				stream.Write(half) //nolint:errcheck // it may be refused
				opened.Add(1)
			}
		})
	}
	wg.Wait()
	return opened.Load()
}

// forgetful stores nothing: a stranger has a new identity each time.
type forgetful struct{}

func (forgetful) Get(string, []byte) ([]byte, error)                       { return nil, nil }
func (forgetful) Scan(string, []byte, func(key, value []byte) error) error { return nil }
func (forgetful) Commit([]kv.Write) error                                  { return nil }
