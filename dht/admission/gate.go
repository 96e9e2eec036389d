package admission

import (
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/voxelpopuli/voxeld/dht/transport"
	"github.com/voxelpopuli/voxeld/trust"
)

// Options configure a Gate.
type Options struct {
	World   trust.World
	Roots   []trust.Key // of the world's genesis, or of its closing
	WasOpen bool        // the genesis names no root keys: the world was open until it was closed
	Genesis []byte      // encoded; given to newcomers
	Storage Storage
	Host    *transport.Host
	Root    func() (trust.Signer, error) // returns a root key, if it is on this node; nil if not

	Logger     *slog.Logger
	Registerer prometheus.Registerer

	Now     func() time.Time // nil: time.Now
	Settled func() bool      // reports whether what is too old by it may be forgotten; nil: it may
}

func (o Options) now() time.Time {
	if o.Now == nil {
		return time.Now()
	}
	return o.Now()
}

// Gate judges the certificates of the nodes that this one is connected to.
type Gate struct {
	Options
	self    self
	metrics *metrics
	Seen    *Seen
	changed chan struct{} // has room for one: charters, revocations or the own certificate are to be passed on

	mu struct {
		sync.Mutex
		authority *trust.Authority
		own       []byte                  // sealed certificate; nil until the node has one
		admitted  map[peer.ID]verified    // peers that are connected, and have shown a valid certificate
		refused   map[peer.ID]struct{}    // peers that are connected, and have shown one that is not valid
		running   map[peer.ID]*exchanging // exchanges that this node began
		warned    time.Time               // when the log last said that another node refuses this one
		contrary  Contrary                // the last charter that was refused
		warnedOf  time.Time               // when the log last named one
	}
}

// Contrary is a charter of another node, signed with root keys of the world, that this one has refused.
type Contrary struct {
	Peer string
	Err  error
	At   time.Time // zero: there was none
}

// Open returns the gate of a node, with what is stored.
func Open(o Options) (*Gate, error) {
	g := &Gate{Options: o, self: selfOf(o.Host), Seen: newSeen(), changed: make(chan struct{}, 1)}
	g.mu.admitted, g.mu.refused, g.mu.running = make(map[peer.ID]verified), make(map[peer.ID]struct{}), make(map[peer.ID]*exchanging)
	if err := g.Reload(); err != nil {
		return nil, err
	}
	g.metrics = newMetrics(o.Registerer, g)
	return g, nil
}

// Founded reports whether the world has an issuer, as far as this node knows.
func (g *Gate) Founded() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.mu.authority.Charter().Number > 0
}

// Reload reads this node's certificate, the charters and the revocations again, as after Enroll. What it knew before
// does not count: Enroll may have replaced charters that are contrary to those of the world.
func (g *Gate) Reload() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	authority, err := trust.NewAuthority(g.World, g.Roots)
	if err != nil {
		return err
	}
	own, tooMany, err := load(g.Storage, authority, g.now())
	if err != nil {
		return fmt.Errorf("read certificates: %w", err)
	}
	if tooMany > 0 {
		g.Logger.Warn("more revocations are stored than a world keeps: the oldest do not count on this node", "too_many", tooMany, "kept", trust.MaxRevocations)
	}
	g.mu.authority, g.mu.own = authority, own
	g.Seen.addOwn(g.Host, own)
	return nil
}

// ownCertificate returns what this node's certificate says, valid or not, and who issued it. If it has none, only the
// node is named. The lock is held.
func (g *Gate) ownCertificate() (trust.Certificate, trust.Key) {
	v, err := g.Seen.read(g.Host.LibP2P().ID(), g.mu.own)
	if err != nil {
		return trust.Certificate{Node: g.self.Key()}, trust.Key{}
	}
	return v.certificate, v.issuer
}

// certifySelf issues this node's own certificate. The lock is held.
func (g *Gate) certifySelf(operator string) error {
	var placement [16]byte
	var token trust.TokenID
	if old, _, err := trust.ReadCertificate(g.mu.own); err == nil {
		operator, placement, token = old.Operator, old.Placement, old.Token
	} else {
		rand.Read(placement[:])
	}
	raw, err := g.mu.authority.Issue(g.self, g.self.Key(), operator, placement, token, g.now())
	if err != nil {
		return err
	}
	return g.setOwn(raw)
}

// setOwn stores this node's certificate, and shows it from now on. The lock is held.
func (g *Gate) setOwn(raw []byte) error {
	c, err := g.mu.authority.Check(raw, g.self.Key(), g.now())
	if err != nil {
		return err
	}
	if err := storeCertificate(g.Storage, raw); err != nil {
		return err
	}
	renewed := len(g.mu.own) > 0
	g.mu.own = raw
	g.Seen.addOwn(g.Host, raw)
	if renewed && !g.now().After(c.RenewAt()) { // one that is due at once, since clocks differ, would be renewed again and again
		g.notifyChanged() // connected peers judge by the certificate that they were shown last
	}
	return nil
}

// addCharters stores the next charters, all or none, and applies them once they are stored: they cannot be taken back
// after. The lock is held.
func (g *Gate) addCharters(sealed ...[]byte) error {
	next := g.mu.authority.Clone()
	var fresh [][]byte
	for _, raw := range sealed {
		added, err := next.AddCharter(raw)
		if err != nil {
			return err
		}
		if added {
			fresh = append(fresh, raw)
		}
	}
	if len(fresh) == 0 {
		return nil
	}
	if err := storeCharters(g.Storage, fresh); err != nil {
		return fmt.Errorf("store charters: %w", err)
	}
	g.mu.authority = next
	g.notifyChanged()
	return nil
}

// addRevocation stores a revocation, and applies it. The lock is held.
func (g *Gate) addRevocation(raw []byte) error {
	r, added, err := g.mu.authority.AddRevocation(raw, g.now())
	if err != nil || !added {
		return err
	}
	g.notifyChanged()
	return storeRevocation(g.Storage, r.Of(), raw)
}

func (g *Gate) notifyChanged() {
	select {
	case g.changed <- struct{}{}:
	default:
	}
}

// Protocol returns the protocol that strangers may use.
func (g *Gate) Protocol() string { return Protocol }

// Admitted reports whether a peer has shown a valid certificate on a connection that is open.
func (g *Gate) Admitted(id peer.ID) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	_, there := g.mu.admitted[id]
	return there
}

// Forget forgets a peer to which no connection is open any more.
func (g *Gate) Forget(id peer.ID) {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.mu.admitted, id)
	delete(g.mu.refused, id)
}

// Refused reports whether a peer has shown a certificate that is not valid, on a connection that is open.
func (g *Gate) Refused(id peer.ID) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	_, there := g.mu.refused[id]
	return there
}

// judge checks a peer's certificate, and admits the peer. The lock is held.
func (g *Gate) judge(id peer.ID, raw []byte) error {
	key, err := KeyOf(id)
	if err != nil {
		return err
	}
	if len(raw) == 0 {
		return errNone
	}
	v, err := g.Seen.read(id, raw)
	if err != nil {
		return err
	}
	if err := g.mu.authority.CheckRead(v.certificate, v.issuer, key, g.now()); err != nil {
		return err
	}
	before, there := g.mu.admitted[id]
	if !there {
		transport.Admit(g.Host, id)
	} else if before.certificate.NewerThan(v.certificate) && g.mu.authority.CheckRead(before.certificate, before.issuer, key, g.now()) == nil {
		return nil // it was renewed, and an answer from before has arrived later
	}
	g.mu.admitted[id] = v
	g.Seen.add(id, v)
	delete(g.mu.refused, id)
	return nil
}

// judgeAgain disconnects peers whose certificates are not valid any more. The lock is held.
func (g *Gate) judgeAgain() {
	for id, a := range g.mu.admitted {
		if err := g.judge(id, a.raw); err != nil {
			delete(g.mu.admitted, id)
			g.metrics.refused.WithLabelValues(reason(err)).Inc()
			g.Logger.Warn("node disconnected", "peer", id.String(), "operator", a.certificate.Operator, "error", err)
			go g.disconnect(id)
		}
	}
}

func (g *Gate) disconnect(id peer.ID) {
	if err := g.Host.LibP2P().Network().ClosePeer(id); err != nil {
		g.Logger.Debug("connection not closed", "peer", id.String(), "error", err)
	}
}

var (
	errNone    = errors.New("it has shown no certificate")
	errNoOwn   = errors.New("it has no certificate")
	errRefused = errors.New("it does not admit this node")
)

// reason returns the label of an error in metrics.
func reason(err error) string {
	for _, r := range []struct {
		err  error
		name string
	}{
		{errNone, "none"},
		{trust.ErrExpired, "expired"},
		{trust.ErrRevoked, "revoked"},
		{trust.ErrNotIssued, "issuer"},
		{trust.ErrNoInvitation, "token"},
		{trust.ErrUsed, "token"},
		{trust.ErrTooLate, "token"},
	} {
		if errors.Is(err, r.err) {
			return r.name
		}
	}
	return "invalid"
}
