package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"path/filepath"
	"strings"
	"sync"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/voxelpopuli/voxeld/region"
	"github.com/voxelpopuli/voxeld/region/actor"
	"github.com/voxelpopuli/voxeld/replica"
	"github.com/voxelpopuli/voxeld/store"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
)

// network connects members in this process.
type network struct {
	ctx context.Context //nolint:containedctx // of all members, like a program's own
	dir string

	mu      sync.Mutex
	members map[string]*member
	tasks   sync.WaitGroup
}

// member is a node that holds a replica of the catalog, and nothing else.
type member struct {
	net     *network
	peer    string
	db      *store.DB
	host    *replica.Host
	catalog *actor.Catalog
	stop    func()
	inbox   chan message
}

type message struct {
	from  string
	group uint64
	data  []byte
}

func (n *network) member(peer string) *member {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.members[peer]
}

// path returns the path of a member's store.
func (n *network) path(peer string) string { return filepath.Join(n.dir, peer+".db") }

// start opens a member's store and starts its replicas.
func (n *network) start(peer string) (*member, error) {
	db, err := store.Open(store.Options{Path: n.path(peer)})
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(n.ctx)
	m := &member{net: n, peer: peer, db: db, inbox: make(chan message, 1<<14)}
	var tasks sync.WaitGroup
	m.host, err = replica.NewHost(replica.Options{Storage: db, Self: peer, Send: m.send, SendSnapshot: m.sendSnapshot})
	if err != nil {
		cancel()
		return nil, errors.Join(err, db.Close())
	}
	tasks.Go(func() { db.Run(ctx) })     //nolint:errcheck // errors show in the measurement
	tasks.Go(func() { m.host.Run(ctx) }) //nolint:errcheck // likewise
	tasks.Go(func() {
		for {
			select {
			case <-ctx.Done():
				return
			case got := <-m.inbox:
				m.host.Receive(got.from, got.group, got.data) //nolint:errcheck // raft sends again
			}
		}
	})
	m.stop = sync.OnceFunc(func() {
		n.mu.Lock()
		delete(n.members, peer)
		n.mu.Unlock()
		if m.catalog != nil {
			m.catalog.Close("the measurement is over")
			<-m.catalog.Done()
		}
		cancel()
		tasks.Wait()
		db.Close() //nolint:errcheck // it is not needed any more
	})
	n.mu.Lock()
	defer n.mu.Unlock()
	n.members[peer] = m
	return m, nil
}

// run runs the catalog of an open group.
func (m *member) run(g *replica.Group) (err error) {
	m.catalog, err = actor.NewCatalog(actor.Options{
		Self: nodeNamed(m.peer), Logger: slog.New(slog.DiscardHandler), Metrics: actor.NewMetrics(prometheus.NewRegistry()),
		Start: func(task func(context.Context)) bool {
			m.net.tasks.Go(func() { task(m.net.ctx) })
			return true
		},
		Describe: func(_ context.Context, peer string) (nodemsg.Member, error) { return nodeNamed(peer), nil },
		Changed:  func(nodemsg.Region) {},
	}, region.CatalogRows(m.db, "", nil), g)
	if err != nil {
		return err
	}
	m.net.tasks.Go(func() {
		m.catalog.Run(m.net.ctx)
		m.catalog.Finish()
	})
	return nil
}

func (m *member) send(peer string, group uint64, data []byte) {
	to := m.net.member(peer)
	if to == nil {
		return
	}
	select {
	case to.inbox <- message{m.peer, group, data}:
	default: // as a network would
	}
}

func (m *member) sendSnapshot(peer string, group uint64, write func(w io.Writer) error, done func(error)) {
	to := m.net.member(peer)
	if to == nil {
		done(errors.New("unreachable"))
		return
	}
	r, w := io.Pipe()
	m.net.tasks.Go(func() { w.CloseWithError(write(w)) })
	m.net.tasks.Go(func() {
		err := to.host.ReceiveSnapshot(m.net.ctx, m.peer, group, r)
		r.CloseWithError(err)
		done(err)
	})
}

// nodeNamed returns a description as long as that of a daemon.
func nodeNamed(peer string) nodemsg.Member {
	return nodemsg.Member{Peer: peer, Game: "203.0.113.100:4002"}
}

// peerNamed returns a name as long as a peer id.
func peerNamed(i int) string {
	return "12D3KooW" + strings.ReplaceAll(fmt.Sprintf("%044d", i), "0", "a") // base58 has no 0
}
