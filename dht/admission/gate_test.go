package admission_test

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/libp2p/go-libp2p/core/event"
	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/voxelpopuli/voxeld/dht/admission"
	"github.com/voxelpopuli/voxeld/dht/internal/nettest"
	"github.com/voxelpopuli/voxeld/dht/transport"
	"github.com/voxelpopuli/voxeld/trust"
)

const game = "/game/1" // any protocol of admitted nodes

// testWorld is a world with one root key.
type testWorld struct {
	t       testing.TB
	id      trust.World
	root    trust.PrivateKey
	genesis []byte
	nodes   int
}

func newWorld(t testing.TB) *testWorld {
	_, root, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return &testWorld{t: t, id: trust.World{1}, root: trust.PrivateKey(root), genesis: []byte("genesis")}
}

// testNode is a node with its gate.
type testNode struct {
	*admission.Gate
	host    *transport.Host
	storage *nettest.Memory
	options admission.Options
}

// key returns the node's key.
func (n *testNode) key(t *testing.T) trust.Key {
	t.Helper()
	key, err := admission.KeyOf(n.host.LibP2P().ID())
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func (w *testWorld) roots([]byte, []trust.Key) ([]trust.Key, error) {
	return []trust.Key{w.root.Key()}, nil
}

// start starts a node that has no certificate yet, and no gate.
func (w *testWorld) start() *testNode { return w.startWith(nettest.NewMemory()) }

func (w *testWorld) startWith(storage *nettest.Memory) *testNode {
	w.t.Helper()
	w.nodes++
	host, err := transport.NewHost(transport.Options{Storage: storage, Listen: []string{fmt.Sprintf("/ip4/127.51.0.%d/tcp/0", w.nodes)}})
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() {
		if err := host.Close(); err != nil {
			w.t.Error(err)
		}
	})
	host.HandleAsk(game, func(context.Context, string, []byte) ([]byte, error) { return []byte("played"), nil })
	n := &testNode{host: host, storage: storage, options: admission.Options{
		World: w.id, Genesis: w.genesis, Storage: storage, Host: host, Root: func() (trust.Signer, error) { return w.root, nil }, Logger: slog.New(slog.DiscardHandler),
	}}
	return n
}

// open opens the node's gate.
func (w *testWorld) open(n *testNode) *testNode {
	w.t.Helper()
	n.options.Roots, n.options.Registerer = []trust.Key{w.root.Key()}, prometheus.NewRegistry()
	var err error
	if n.Gate, err = admission.Open(n.options); err != nil {
		w.t.Fatal(err)
	}
	n.host.HandleAsk(admission.Protocol, n.Answer)
	n.host.SetGate(n)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		n.Run(ctx) //nolint:errcheck // it returns nil
	}()
	w.t.Cleanup(func() {
		cancel()
		<-done
	})
	return n
}

// found starts the first node.
func (w *testWorld) found() *testNode {
	w.t.Helper()
	n := w.open(w.start())
	if err := n.Gate.Appoint("Ada", w.root); err != nil {
		w.t.Fatal(err)
	}
	return n
}

// join starts a node that an issuer admits.
func (w *testWorld) join(issuer *testNode, operator string) *testNode {
	w.t.Helper()
	secret, err := issuer.Invite(trust.Invitation{Operator: operator, Uses: 1}, time.Hour)
	if err != nil {
		w.t.Fatal(err)
	}
	n := w.start()
	if err := w.enroll(n, issuer, secret); err != nil {
		w.t.Fatal(err)
	}
	return w.open(n)
}

func (w *testWorld) enroll(n, issuer *testNode, secret trust.Secret) error {
	id, err := n.host.Connect(nettest.Context(w.t), issuer.host.Addrs()[0])
	if err != nil {
		return err
	}
	return admission.Enroll(nettest.Context(w.t), n.options, id, secret, w.roots)
}

// play asks a peer a question of a protocol for admitted nodes.
func (n *testNode) play(t testing.TB, other *testNode) error {
	t.Helper()
	ctx, cancel := context.WithTimeout(nettest.Context(t), 10*time.Second)
	defer cancel()
	id, err := n.host.Connect(ctx, other.host.Addrs()[0])
	if err != nil {
		return err
	}
	_, err = n.host.Ask(ctx, id, game, nil)
	return err
}

func TestNodesWithCertificatesAreServed(t *testing.T) {
	w := newWorld(t)
	founder := w.found()
	a, b := w.join(founder, "Ada"), w.join(founder, "Ben")
	for i, pair := range [][2]*testNode{{a, founder}, {a, b}, {founder, b}, {b, a}} {
		if err := pair[0].play(t, pair[1]); err != nil {
			t.Errorf("pair %d: %v", i, err)
		}
	}
}

// waited is a context that reports when somebody waits for its end.
type waited struct {
	context.Context //nolint:containedctx // it is one itself
	on              chan struct{}
}

func (w waited) Done() <-chan struct{} {
	select {
	case w.on <- struct{}{}:
	default:
	}
	return w.Context.Done()
}

// Whoever waits for an exchange that another one has begun, and had no more time for, begins it again.
func TestImpatienceIsNotShared(t *testing.T) {
	w := newWorld(t)
	founder := w.found()
	a := w.join(founder, "Ada")
	if err := a.play(t, founder); err != nil {
		t.Fatal(err)
	}
	id, err := peer.Decode(founder.host.PeerID())
	if err != nil {
		t.Fatal(err)
	}
	a.Forget(id)
	end := a.BeginExchange(id)
	ctx, answer := waited{nettest.Context(t), make(chan struct{}, 1)}, make(chan error)
	go func() { answer <- a.Await(ctx, id) }()
	<-ctx.on
	end()
	if err := <-answer; err != nil {
		t.Error(err)
	}
}

func TestStrangersAreNotServed(t *testing.T) {
	w := newWorld(t)
	founder := w.found()
	stranger := w.start() // without a gate it talks to anybody
	if err := stranger.play(t, founder); err == nil {
		t.Error("a stranger was served")
	}
	if err := founder.play(t, stranger); err == nil {
		t.Error("a node talked to a stranger")
	}
	impostor := w.open(w.start())
	if err := impostor.play(t, founder); err == nil {
		t.Error("a node without a certificate was served")
	}
	other := newWorld(t)
	other.nodes = 10
	if err := other.found().play(t, founder); err == nil {
		t.Error("a node that founded the same world with other keys was served")
	}
	for name, secret := range map[string]trust.Secret{"made up": {1, 2, 3}, "zero": {}} {
		if err := w.enroll(w.start(), founder, secret); err == nil || !strings.Contains(err.Error(), trust.ErrNoInvitation.Error()) {
			t.Errorf("%s secret: %v", name, err)
		}
	}
}

func TestTokensAreForSomeNodes(t *testing.T) {
	w := newWorld(t)
	founder := w.found()
	secret, err := founder.Invite(trust.Invitation{Operator: "Ada", Uses: 1}, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	first := w.start()
	for range 2 { // the answer may be lost
		if err := w.enroll(first, founder, secret); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.enroll(w.start(), founder, secret); err == nil || !strings.Contains(err.Error(), trust.ErrUsed.Error()) {
		t.Errorf("a second node: %v", err)
	}
	if _, err := w.open(first).Invite(trust.Invitation{Operator: "Ada", Uses: 1}, time.Hour); err == nil {
		t.Error("a node that is no issuer gives out tokens")
	}
}

// TestRevocationReachesAll revokes a node at the issuer, which is connected to one other node only.
func TestRevocationReachesAll(t *testing.T) {
	w := newWorld(t)
	founder := w.found()
	a, b, bad := w.join(founder, "Ada"), w.join(founder, "Ben"), w.join(founder, "Eve")
	for _, pair := range [][2]*testNode{{founder, a}, {a, b}, {bad, b}} {
		if err := pair[0].play(t, pair[1]); err != nil {
			t.Fatal(err)
		}
	}
	founder.host.LibP2P().Network().ClosePeer(b.host.LibP2P().ID())
	founder.host.LibP2P().Network().ClosePeer(bad.host.LibP2P().ID())
	if err := founder.Revoke(trust.OperatorSubject("Eve"), "forged edits", false); err != nil {
		t.Fatal(err)
	}
	nettest.Eventually(t, "the revocation to spread", func() bool { return !b.Admitted(bad.host.LibP2P().ID()) })
	for _, n := range []*testNode{founder, a, b} {
		if err := bad.play(t, n); err == nil {
			t.Error("a revoked node was served")
		}
	}
	if err := a.play(t, b); err != nil {
		t.Errorf("the others: %v", err)
	}
	if err := founder.Revoke(trust.OperatorSubject("Eve"), "a mistake", true); err != nil {
		t.Fatal(err)
	}
	if err := bad.play(t, founder); err != nil {
		t.Errorf("after the revocation was lifted: %v", err)
	}
	if err := a.Revoke(trust.OperatorSubject("Ben"), "envy", false); err == nil {
		t.Error("a node that is no issuer revokes")
	}
}

// TestGateAfterRestart checks that what a node knows is stored.
func TestGateAfterRestart(t *testing.T) {
	w := newWorld(t)
	founder := w.found()
	a := w.join(founder, "Ada")
	if err := founder.Revoke(trust.OperatorSubject("Eve"), "forged edits", false); err != nil {
		t.Fatal(err)
	}
	if err := a.play(t, founder); err != nil {
		t.Fatal(err)
	}
	again := w.open(w.startWith(a.storage))
	if again.host.PeerID() != a.host.PeerID() {
		t.Fatal("another node")
	}
	if err := again.play(t, founder); err != nil {
		t.Error(err)
	}
	bad := w.start()
	secret, err := founder.Invite(trust.Invitation{Operator: "Eve", Uses: 1}, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	if err := w.enroll(bad, founder, secret); err == nil || !strings.Contains(err.Error(), trust.ErrRevoked.Error()) {
		t.Errorf("a revoked operator's node: %v", err)
	}
}

// TestSecondIssuer checks that a world goes on without the node that created it.
func TestSecondIssuer(t *testing.T) {
	w := newWorld(t)
	founder := w.found()
	secret, err := founder.Invite(trust.Invitation{Operator: "Ada", Uses: 1, Issuer: true}, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	second := w.start()
	if err := w.enroll(second, founder, secret); err != nil {
		t.Fatal(err)
	}
	w.open(second)
	early := w.join(founder, "Ben")
	if err := founder.host.Close(); err != nil {
		t.Fatal(err)
	}
	late := w.join(second, "Cem")
	for i, pair := range [][2]*testNode{{late, early}, {second, early}, {early, late}} { // early has never met second
		if err := pair[0].play(t, pair[1]); err != nil {
			t.Errorf("pair %d: %v", i, err)
		}
	}
}

// A revoked issuer takes with it the nodes that it admitted.
func TestRevokedIssuerTakesWhatItAdmitted(t *testing.T) {
	w := newWorld(t)
	founder, second := w.found(), w.start()
	w.joinAsIssuer(second, founder)
	early, late := w.join(founder, "Ben"), w.join(second, "Cem")
	for _, n := range []*testNode{second, early, late} {
		if err := n.play(t, founder); err != nil {
			t.Fatal(err)
		}
	}
	subject := trust.NodeSubject(second.key(t))
	for n, want := range map[*testNode]bool{founder: false, second: true, early: false, late: true} {
		if founder.Gate.Concerns(subject, n.host.PeerID()) != want {
			t.Errorf("the revocation would exclude %s: %t", n.host.PeerID(), !want)
		}
	}
	for _, revoked := range []bool{true, false} {
		if err := founder.Revoke(subject, "it lies", !revoked); err != nil {
			t.Fatal(err)
		}
		for n, of := range map[*testNode]bool{founder: false, second: true, early: false, late: true} {
			if founder.Gate.Excluded(n.host.PeerID()) != (of && revoked) {
				t.Errorf("revoked %t: %s is excluded: %t", revoked, n.host.PeerID(), !of || !revoked)
			}
		}
	}
}

// BenchmarkFirstQuestion times a new connection and the first question and answer on it, between nodes that show each
// other certificates and between nodes that do not.
func BenchmarkFirstQuestion(b *testing.B) {
	w := newWorld(b)
	founder := w.found()
	pairs := []struct {
		name     string
		from, to *testNode
	}{
		{"certificates", w.join(founder, "Ada"), w.join(founder, "Ben")},
		{"none", w.start(), w.start()},
	}
	for _, pair := range pairs {
		b.Run(pair.name, func(b *testing.B) {
			from, to := pair.from.host.LibP2P(), pair.to.host.LibP2P()
			changes, err := to.EventBus().Subscribe(new(event.EvtPeerConnectednessChanged))
			if err != nil {
				b.Fatal(err)
			}
			defer changes.Close()
			for b.Loop() {
				if err := pair.from.play(b, pair.to); err != nil {
					b.Fatal(err)
				}
				b.StopTimer()
				if err := from.Network().ClosePeer(to.ID()); err != nil {
					b.Fatal(err)
				}
				for to.Network().Connectedness(from.ID()) == network.Connected {
					<-changes.Out()
				}
				b.StartTimer()
			}
		})
	}
}

// A world that was open begins with a charter by which its operators' commands from before go on counting, on all
// nodes. In a world that an earlier version closed the first charter has the time as its number.
func TestClosingCharter(t *testing.T) {
	for _, test := range []struct{ wasOpen, closing, want bool }{{true, true, true}, {true, false, false}, {false, false, false}} {
		w := newWorld(t)
		first := w.start()
		first.options.WasOpen = test.closing
		w.open(first)
		if err := first.Gate.Appoint("Ada", w.root); err != nil {
			t.Fatal(err)
		}
		secret, err := first.Invite(trust.Invitation{Operator: "Bob", Uses: 1}, time.Hour)
		if err != nil {
			t.Fatal(err)
		}
		n := w.start()
		n.options.WasOpen = test.wasOpen
		if err := w.enroll(n, first, secret); err != nil {
			t.Fatal(err)
		}
		if got := w.open(n).Gate.CountsOpen(); got != test.want {
			t.Errorf("%+v: %v", test, got)
		}
	}
}
