package admission_test

import (
	"bytes"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/libp2p/go-libp2p/core/network"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/voxelpopuli/voxeld/dht/admission"
	"github.com/voxelpopuli/voxeld/dht/internal/nettest"
	"github.com/voxelpopuli/voxeld/internal/kv"
	"github.com/voxelpopuli/voxeld/trust"
)

// clock is a node's wall clock, which tests set.
type clock struct{ ahead atomic.Int64 }

func (c *clock) now() time.Time       { return time.Now().Add(time.Duration(c.ahead.Load())) }
func (c *clock) set(by time.Duration) { c.ahead.Store(int64(by)) }

// startAt starts a node with a clock of its own.
func (w *testWorld) startAt(c *clock) *testNode {
	n := w.start()
	n.options.Now = c.now
	return n
}

// joinAt starts a node with a clock of its own, which an issuer admits.
func (w *testWorld) joinAt(issuer *testNode, c *clock) (*testNode, error) {
	w.t.Helper()
	secret, err := issuer.Invite(trust.Invitation{Operator: "Ada", Uses: 1}, time.Hour)
	if err != nil {
		w.t.Fatal(err)
	}
	n := w.startAt(c)
	if err := w.enroll(n, issuer, secret); err != nil {
		return nil, err
	}
	return w.open(n), nil
}

// A clock that is a day wrong does no harm. One that is wronger is named in the error.
func TestWrongClocks(t *testing.T) {
	w := newWorld(t)
	founder := w.found()
	right := w.join(founder, "Ada")
	for _, wrong := range []time.Duration{-24 * time.Hour, 24 * time.Hour, -30 * time.Hour} {
		c := new(clock)
		c.set(wrong)
		n, err := w.joinAt(founder, c)
		if wrong == -30*time.Hour {
			if !errors.Is(err, trust.ErrExpired) || !strings.Contains(err.Error(), "clock") {
				t.Errorf("joined with a clock that is %v off: %v", wrong, err)
			}
			continue
		}
		if err != nil {
			t.Fatalf("clock %v off: %v", wrong, err)
		}
		for i, err := range []error{n.play(t, right), right.play(t, n), n.play(t, founder)} {
			if err != nil {
				t.Errorf("clock %v off, pair %d: %v", wrong, i, err)
			}
		}
	}
}

// A certificate is renewed in time, by itself. One that was not is refused, and renewed as soon as its node meets an
// issuer, unless it is revoked. After more than a year a new token helps.
func TestRenewalAndExpiry(t *testing.T) {
	w := newWorld(t)
	c := new(clock)
	founder := w.open(w.startAt(c))
	if err := founder.Gate.Appoint("Ada", w.root); err != nil {
		t.Fatal(err)
	}
	awake, err := w.joinAt(founder, c)
	if err != nil {
		t.Fatal(err)
	}
	asleep, err := w.joinAt(founder, c)
	if err != nil {
		t.Fatal(err)
	}
	revoked, err := w.joinAt(founder, c)
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range []*testNode{awake, asleep} {
		if err := n.play(t, founder); err != nil {
			t.Fatal(err)
		}
	}
	before, err := awake.Own()
	if err != nil {
		t.Fatal(err)
	}
	for _, days := range []time.Duration{11, 22, 33} {
		c.set(days * 24 * time.Hour)
		founder.KeepUp(nettest.Context(t))
		if !founder.Admitted(awake.host.LibP2P().ID()) {
			t.Errorf("a connected node that renews its certificate is not admitted after %v", days*24*time.Hour)
		}
		awake.KeepUp(nettest.Context(t))
		own, err := awake.Own()
		if err != nil {
			t.Fatal(err)
		}
		nettest.Eventually(t, "the new certificate to be known", func() bool {
			known, _ := founder.Certificate(awake.host.PeerID())
			return known.Expires().Equal(own.Expires())
		})
	}
	after, err := awake.Own()
	if err != nil {
		t.Fatal(err)
	}
	if after.Placement != before.Placement || after.Token != before.Token || after.Expires().Sub(before.Expires()) < 32*24*time.Hour {
		t.Errorf("renewed: %+v, before %+v", after, before)
	}
	if err := awake.play(t, founder); err != nil {
		t.Error(err)
	}
	if _, err := asleep.Own(); !errors.Is(err, trust.ErrExpired) {
		t.Errorf("own certificate: %v", err)
	}
	if founder.Admitted(asleep.host.LibP2P().ID()) {
		t.Error("a node whose certificate has expired is still admitted")
	}
	if err := asleep.play(t, awake); err == nil {
		t.Error("a node whose certificate has expired is served")
	}
	if err := asleep.play(t, founder); err != nil {
		t.Errorf("an issuer does not renew a certificate that has ended: %v", err)
	}
	if _, err := asleep.Own(); err != nil {
		t.Errorf("the renewed certificate: %v", err)
	}
	nettest.Eventually(t, "the renewed certificate to be known", func() bool { return asleep.play(t, awake) == nil })
	// Only now: each change of the revocations makes all nodes look at their certificates.
	if err := founder.Revoke(trust.NodeSubject(revoked.key(t)), "a test", false); err != nil {
		t.Fatal(err)
	}
	certificate := admission.OwnBytes(revoked.Gate) // it may have been renewed when the others were, before the revocation
	c.set(64 * 24 * time.Hour)
	founder.KeepUp(nettest.Context(t))
	revoked.KeepUp(nettest.Context(t))
	if err := revoked.play(t, founder); err == nil {
		t.Error("a node that is revoked is served")
	}
	if issued, err := admission.RenewedBy(nettest.Context(t), revoked.Gate, founder.Gate); err == nil || len(issued) > 0 || !bytes.Equal(admission.OwnBytes(revoked.Gate), certificate) {
		t.Error("the certificate of a node that is revoked is renewed")
	}

	c.set(64*24*time.Hour + trust.RenewAfter + trust.Lifetime)
	founder.KeepUp(nettest.Context(t))
	asleep.KeepUp(nettest.Context(t))
	if _, err := asleep.Own(); !errors.Is(err, trust.ErrExpired) || asleep.Renewable() {
		t.Errorf("a certificate that ended long ago: %v", err)
	}
	secret, err := founder.Invite(trust.Invitation{Operator: "Ada", Uses: 1}, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	if err := asleep.host.Close(); err != nil { // its process ends, and is started with the token
		t.Fatal(err)
	}
	nettest.Eventually(t, "the issuer to have no connection to the node", func() bool {
		return founder.host.LibP2P().Network().Connectedness(asleep.host.LibP2P().ID()) != network.Connected
	})
	again := w.startWith(asleep.storage)
	again.options.Now = c.now
	if err := w.enroll(again, founder, secret); err != nil {
		t.Fatal(err)
	}
	if err := w.open(again).play(t, founder); err != nil {
		t.Error(err)
	}
}

// An issuer whose clock was far ahead when it certified itself is cut off from all, until its clock is right. Then it
// certifies itself anew.
func TestIssuerAhead(t *testing.T) {
	w := newWorld(t)
	c := new(clock)
	founder := w.open(w.startAt(c))
	if err := founder.Gate.Appoint("Ada", w.root); err != nil {
		t.Fatal(err)
	}
	a := w.join(founder, "Ada")
	c.set(400 * 24 * time.Hour)
	founder.KeepUp(nettest.Context(t))
	if err := a.play(t, founder); err == nil {
		t.Fatal("a certificate of next year is valid: the test shows nothing")
	}
	c.set(0)
	founder.KeepUp(nettest.Context(t))
	nettest.Eventually(t, "the issuer to be admitted again", func() bool { return a.play(t, founder) == nil && founder.play(t, a) == nil })
}

// Whoever has the root key replaces issuers that are lost. The root key can be replaced, too.
func TestRotation(t *testing.T) {
	w := newWorld(t)
	founder := w.found()
	a, b := w.join(founder, "Ada"), w.join(founder, "Ben")
	if err := a.play(t, b); err != nil {
		t.Fatal(err)
	}
	if err := founder.host.Close(); err != nil {
		t.Fatal(err)
	}
	if err := a.Gate.Appoint("Ada", w.root); err != nil {
		t.Fatal(err)
	}
	c := w.join(a, "Cem")
	for i, pair := range [][2]*testNode{{c, b}, {b, c}, {a, c}} {
		if err := pair[0].play(t, pair[1]); err != nil {
			t.Errorf("pair %d: %v", i, err)
		}
	}

	_, fresh, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	next := a.Charter()
	next.Number, next.Roots = next.Number+1, []trust.Key{trust.PrivateKey(fresh).Key()}
	raw, err := next.Seal(w.root)
	if err != nil {
		t.Fatal(err)
	}
	if err := a.AddCharter(raw); err != nil {
		t.Fatal(err)
	}
	nettest.Eventually(t, "the charter to spread", func() bool { return b.Charter().Number >= next.Number })
	if err := b.Gate.Appoint("Ben", w.root); err == nil {
		t.Error("the former root key still counts")
	}
	if err := b.Gate.Appoint("Ben", trust.PrivateKey(fresh)); err != nil {
		t.Error(err)
	}
	if err := c.play(t, a); err != nil {
		t.Error(err)
	}
}

// An issuer is dismissed: the nodes that it admitted get certificates of another one, and none of them is cut off. The
// tokens of the former issuer are worth nothing.
func TestDismissal(t *testing.T) {
	w := newWorld(t)
	founder := w.found()
	a, b := w.join(founder, "Ada"), w.join(founder, "Ben")
	for _, pair := range [][2]*testNode{{a, b}, {a, founder}, {b, founder}} {
		if err := pair[0].play(t, pair[1]); err != nil {
			t.Fatal(err)
		}
	}
	secret, err := founder.Invite(trust.Invitation{Operator: "Cem", Uses: 1}, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	if err := founder.Gate.Dismiss(founder.key(t)); err == nil || !strings.Contains(err.Error(), "root.key") {
		t.Errorf("the holder of the root key dismisses itself: %v", err)
	}
	if err := founder.Gate.AppointOther(a.key(t), "Ada"); err != nil {
		t.Fatal(err)
	}
	before, err := b.Own()
	if err != nil {
		t.Fatal(err)
	}
	nettest.Eventually(t, "the charter to be known", func() bool { return a.Issues(a.host.PeerID()) && b.Issues(a.host.PeerID()) })
	if err := a.Gate.Dismiss(b.key(t)); err == nil {
		t.Error("a node that is no issuer is dismissed")
	}
	if err := a.Gate.Dismiss(founder.key(t)); err != nil {
		t.Fatal(err)
	}
	nettest.Eventually(t, "new certificates", func() bool {
		b.KeepUp(nettest.Context(t))
		founder.KeepUp(nettest.Context(t))
		after, err := b.Own()
		own, ownErr := founder.Own()
		return err == nil && ownErr == nil && after.Charter > before.Charter && own.Charter > before.Charter && after.Placement == before.Placement
	})
	for i, pair := range [][2]*testNode{{a, b}, {b, founder}, {founder, b}} {
		if !pair[0].Admitted(pair[1].host.LibP2P().ID()) {
			t.Errorf("pair %d was cut off", i)
		}
		if err := pair[0].play(t, pair[1]); err != nil {
			t.Errorf("pair %d: %v", i, err)
		}
	}
	if err := w.enroll(w.start(), founder, secret); err == nil {
		t.Error("a token of the former issuer admits a node")
	}
	if err := w.join(a, "Dia").play(t, b); err != nil {
		t.Error(err)
	}
	// Revoked after that, it does not take with it the nodes that it admitted.
	subject := trust.NodeSubject(founder.key(t))
	if a.Gate.Concerns(subject, b.host.PeerID()) {
		t.Error("its revocation would exclude a node that it admitted")
	}
	if err := a.Revoke(subject, "stolen", false); err != nil {
		t.Fatal(err)
	}
	if !a.Gate.Excluded(founder.host.PeerID()) || a.Gate.Excluded(b.host.PeerID()) {
		t.Error("the former issuer is not excluded, or who it admitted is")
	}
}

// What an issuer has revoked stays revoked when it is dismissed, and when the root key is replaced.
func TestRevocationsOutliveTheirSigner(t *testing.T) {
	w := newWorld(t)
	founder := w.found()
	a, out := w.join(founder, "Ada"), w.join(founder, "Out")
	if err := out.play(t, a); err != nil {
		t.Fatal(err)
	}
	if err := founder.Gate.AppointOther(a.key(t), "Ada"); err != nil {
		t.Fatal(err)
	}
	if err := founder.Revoke(trust.NodeSubject(out.key(t)), "it lies", false); err != nil {
		t.Fatal(err)
	}
	if err := founder.Revoke(trust.OperatorSubject("Bob"), "he lies", false); err != nil {
		t.Fatal(err)
	}
	if err := a.play(t, founder); err != nil {
		t.Fatal(err)
	}
	nettest.Eventually(t, "charter and revocations to be known", func() bool { return a.Issues(a.host.PeerID()) && len(a.Revoked()) == 2 })
	number := a.Charter().Number
	if err := a.Gate.Dismiss(founder.key(t)); err != nil {
		t.Fatal(err)
	}
	nettest.Eventually(t, "the dismissal to be known", func() bool { return founder.Charter().Number > number })
	nettest.Eventually(t, "the revocations of before", func() bool { return len(a.Revoked()) == 2 && len(founder.Revoked()) == 2 })
	for _, n := range []*testNode{a, founder} {
		if err := out.play(t, n); err == nil || n.Admitted(out.host.LibP2P().ID()) {
			t.Errorf("a node that the former issuer had revoked is served: %v", err)
		}
	}
	_, fresh, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	if err := a.Gate.ReplaceRoot(trust.PrivateKey(fresh)); err != nil {
		t.Fatal(err)
	}
	if err := out.play(t, a); err == nil || len(a.Revoked()) != 2 {
		t.Errorf("with another root key: %v, revoked %v", err, a.Revoked())
	}
	again := w.open(w.startWith(a.storage))
	if !again.Gate.Excluded(out.host.PeerID()) || len(again.Revoked()) != 2 {
		t.Errorf("after a restart: revoked %v", again.Revoked())
	}
	if err := a.Revoke(trust.OperatorSubject("Bob"), "he may", true); err != nil || len(a.Revoked()) != 1 {
		t.Errorf("lifted: %v, revoked %v", err, a.Revoked())
	}
}

// A token that is revoked admits nobody, also after the certificates have ended that it had brought.
func TestRevokedTokenStaysUseless(t *testing.T) {
	w := newWorld(t)
	c := new(clock)
	founder := w.open(w.startAt(c))
	if err := founder.Gate.Appoint("Ada", w.root); err != nil {
		t.Fatal(err)
	}
	secret, err := founder.Invite(trust.Invitation{Operator: "Ada"}, 365*24*time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	if err := founder.Revoke(trust.TokenSubject(secret.ID()), "it was published", false); err != nil {
		t.Fatal(err)
	}
	c.set(34 * 24 * time.Hour)
	founder.KeepUp(nettest.Context(t))
	if err := w.enroll(w.startAt(c), founder, secret); err == nil || !strings.Contains(err.Error(), trust.ErrRevoked.Error()) {
		t.Errorf("a newcomer with the token: %v", err)
	}
}

// copyRevocations stores on a node what another one has stored of revocations, as an exchange does.
func copyRevocations(t *testing.T, from, to *testNode) {
	t.Helper()
	var rows []kv.Write
	err := from.storage.Scan("trust", []byte("revocation/"), func(key, raw []byte) error {
		rows = append(rows, kv.Write{Table: "trust", Key: bytes.Clone(key), Value: bytes.Clone(raw)})
		return nil
	})
	if err := errors.Join(err, to.storage.Commit(rows)); err != nil {
		t.Fatal(err)
	}
}

// An issuer that another one revokes cannot lift that. If the holder of the root key revokes it, it is no issuer any
// more, and what it did to exclude that holder has ended.
func TestRevokedIssuer(t *testing.T) {
	w := newWorld(t)
	founder, bad := w.found(), w.start()
	other := w.start()
	other.options.Root = func() (trust.Signer, error) { return nil, fs.ErrNotExist }
	w.joinAsIssuer(bad, founder)
	w.joinAsIssuer(other, founder)
	subject := trust.NodeSubject(bad.key(t))
	nettest.Eventually(t, "two more issuers", func() bool { return other.Issues(bad.host.PeerID()) && bad.Issues(other.host.PeerID()) })
	if err := other.Revoke(subject, "it lies", false); err != nil {
		t.Fatal(err)
	}
	if !other.Issues(bad.host.PeerID()) {
		t.Error("an issuer without the root key has dismissed another one")
	}
	if err := bad.Revoke(subject, "it does not", true); err == nil || !strings.Contains(err.Error(), "itself") {
		t.Errorf("an issuer lifts its own revocation: %v", err)
	}
	for _, s := range []trust.Subject{trust.NodeSubject(founder.key(t)), trust.OperatorSubject("Ada")} {
		if err := bad.Revoke(s, "it does not lie", false); err != nil {
			t.Fatal(err)
		}
	}
	if err := founder.host.Close(); err != nil {
		t.Fatal(err)
	}
	for _, n := range []*testNode{founder, other} {
		copyRevocations(t, bad, n)
	}
	if err := other.Reload(); err != nil {
		t.Fatal(err)
	}
	other.KeepUp(nettest.Context(t))
	restart := func(excluded bool) {
		t.Helper()
		founder = w.open(w.startWith(founder.storage))
		if err := founder.Gate.Appoint("Ada", w.root); err != nil {
			t.Fatal(err)
		}
		err := founder.play(t, other)
		for _, n := range []*testNode{founder, other} {
			if out := n.Gate.Excluded(founder.host.PeerID()); out != excluded || (err != nil) != excluded {
				t.Fatalf("the founder is excluded: %v, and served with %v", out, err)
			}
		}
	}
	restart(true)
	if err := founder.Revoke(subject, "it lies", false); err != nil {
		t.Fatal(err)
	}
	// The other node may still close the connection over which it refused the founder.
	nettest.Eventually(t, "the founder to be served after it has revoked the issuer that had revoked it", func() bool { return founder.play(t, other) == nil })
	for _, n := range []*testNode{founder, other} {
		nettest.Eventually(t, "the dismissal", func() bool { return !n.Issues(bad.host.PeerID()) })
		if !n.Gate.Excluded(bad.host.PeerID()) {
			t.Error("with the dismissal the revocation has ended")
		}
	}
	if err := founder.host.Close(); err != nil {
		t.Fatal(err)
	}
	restart(false)
	if _, err := founder.Own(); err != nil {
		t.Error(err)
	}
}

// joinAsIssuer has a node of the operator Bob join as an issuer, and returns the token.
func (w *testWorld) joinAsIssuer(n, issuer *testNode) trust.Secret {
	w.t.Helper()
	secret, err := issuer.Invite(trust.Invitation{Operator: "Bob", Uses: 1, Issuer: true}, time.Hour)
	if err != nil {
		w.t.Fatal(err)
	}
	if err := w.enroll(n, issuer, secret); err != nil {
		w.t.Fatal(err)
	}
	if err := w.open(n).play(w.t, issuer); err != nil {
		w.t.Fatal(err)
	}
	nettest.Eventually(w.t, "another issuer", func() bool { return n.Issues(n.host.PeerID()) })
	return secret
}

// No issuer excludes itself, by its operator or token either: nobody would hear of it when it lifts that.
func TestNoIssuerExcludesItself(t *testing.T) {
	w := newWorld(t)
	founder, other := w.found(), w.start()
	secret := w.joinAsIssuer(other, founder)
	for i, c := range []struct {
		on *testNode
		s  trust.Subject
	}{
		{founder, trust.OperatorSubject("Ada")},
		{founder, trust.NodeSubject(founder.key(t))},
		{other, trust.OperatorSubject("Bob")},
		{other, trust.TokenSubject(secret.ID())},
	} {
		if err := c.on.Revoke(c.s, "a mistake", false); err == nil || !strings.Contains(err.Error(), "itself") || len(c.on.Revoked()) != 0 {
			t.Errorf("%d: %v, revoked %v", i, err, c.on.Revoked())
		}
	}
	for _, s := range []trust.Subject{trust.OperatorSubject("Bob"), trust.TokenSubject(secret.ID())} {
		if err := founder.Revoke(s, "it lies", false); err != nil || !founder.Gate.Excluded(other.host.PeerID()) {
			t.Errorf("another issuer: %v", err)
		}
		if err := founder.Revoke(s, "it does not", true); err != nil {
			t.Error(err)
		}
	}
}

// An issuer revokes the one that has admitted it: it certifies itself, and remains. So it does if that one has revoked
// it, and the root key is here.
func TestIssuerRevokesItsOwnIssuer(t *testing.T) {
	for _, revoked := range []bool{false, true} {
		w := newWorld(t)
		founder, other := w.start(), w.start()
		holder := founder // of the root key
		for _, n := range []*testNode{founder, other} {
			n.options.Root = func() (trust.Signer, error) {
				if holder != n {
					return nil, fs.ErrNotExist
				}
				return w.root, nil
			}
		}
		if err := w.open(founder).Gate.Appoint("Ada", w.root); err != nil {
			t.Fatal(err)
		}
		w.joinAsIssuer(other, founder)
		if holder = nil; revoked {
			if err := founder.Revoke(trust.NodeSubject(other.key(t)), "it does not lie", false); err != nil {
				t.Fatal(err)
			}
			copyRevocations(t, founder, other)
			if err := other.Reload(); err != nil {
				t.Fatal(err)
			}
			holder = other
		}
		if err := other.Revoke(trust.NodeSubject(founder.key(t)), "it lies", false); err != nil {
			t.Fatal(err)
		}
		other.KeepUp(nettest.Context(t))
		if own, err := other.Own(); err != nil || own.Operator != "Bob" {
			t.Errorf("revoked %v: own certificate %+v: %v", revoked, own, err)
		}
		if err := w.join(other, "Cem").play(t, other); err != nil {
			t.Errorf("revoked %v: %v", revoked, err)
		}
	}
}

// A node starts also with more revocations than a world keeps, as earlier versions may have stored them. The newest
// count.
func TestTooManyStoredRevocations(t *testing.T) {
	w := newWorld(t)
	founder := w.found()
	var rows []kv.Write
	for i := range trust.MaxRevocations + 1 { // the newest comes first, and is the last row
		token := binary.BigEndian.AppendUint64(make([]byte, 8), uint64(i))
		raw, err := trust.Revocation{
			World: w.id, Kind: trust.RevokeToken, Subject: token, At: time.Now().Add(-time.Duration(i) * time.Minute).UnixMilli(), Reason: "it was published",
		}.Seal(w.root)
		if err != nil {
			t.Fatal(err)
		}
		rows = append(rows, kv.Write{Table: "trust", Key: fmt.Appendf(nil, "revocation/%05d", trust.MaxRevocations-i), Value: raw})
	}
	if err := founder.storage.Commit(rows); err != nil {
		t.Fatal(err)
	}
	if err := founder.Reload(); err != nil {
		t.Fatal(err)
	}
	all := founder.Revoked()
	revoked := func(i uint64) bool {
		return slices.ContainsFunc(all, func(r trust.Exclusion) bool { return binary.BigEndian.Uint64(r.Subject[8:]) == i })
	}
	if len(all) != trust.MaxRevocations || !revoked(0) || revoked(trust.MaxRevocations) {
		t.Errorf("%d count; the newest: %v, the oldest: %v", len(all), revoked(0), revoked(trust.MaxRevocations))
	}
	if err := founder.Revoke(trust.OperatorSubject("Bob"), "they lie", false); err == nil || !strings.Contains(err.Error(), "operators") {
		t.Errorf("one more: %v", err)
	}
}

// What an issuer has revoked whose clock is a day ahead is lifted at once.
func TestLiftAfterWrongClock(t *testing.T) {
	w := newWorld(t)
	founder, c := w.found(), new(clock)
	c.set(24 * time.Hour)
	ahead, err := w.joinAt(founder, c)
	if err != nil {
		t.Fatal(err)
	}
	if err := ahead.play(t, founder); err != nil {
		t.Fatal(err)
	}
	if err := founder.Gate.AppointOther(ahead.key(t), "Ada"); err != nil {
		t.Fatal(err)
	}
	nettest.Eventually(t, "another issuer", func() bool { return ahead.Issues(ahead.host.PeerID()) })
	if err := ahead.Revoke(trust.OperatorSubject("Bob"), "they lie", false); err != nil {
		t.Fatal(err)
	}
	nettest.Eventually(t, "the revocation to spread", func() bool { return len(founder.Revoked()) == 1 })
	if err := founder.Revoke(trust.OperatorSubject("Bob"), "a mistake", true); err != nil || len(founder.Revoked()) != 0 {
		t.Errorf("lifted: %v; revoked: %v", err, founder.Revoked())
	}
	nettest.Eventually(t, "the lift to spread", func() bool { return len(ahead.Revoked()) == 0 })
}

// Two holders of the root key replace it, each by another one. A token of one side takes a node of the other side over,
// whichever was first.
func TestTokenOfTheOtherSide(t *testing.T) {
	for _, later := range []time.Duration{-time.Hour, time.Hour} {
		w := newWorld(t)
		c := new(clock)
		c.set(later)
		wrong, right := w.open(w.start()), w.open(w.startAt(c))
		n := w.start()
		n.options.Roots, n.options.Registerer = []trust.Key{w.root.Key()}, prometheus.NewRegistry()
		var gate *admission.Gate
		for i, side := range []*testNode{wrong, right} {
			if err := side.Gate.Appoint("Ada", w.root); err != nil {
				t.Fatal(err)
			}
			_, fresh, err := ed25519.GenerateKey(rand.Reader)
			if err != nil {
				t.Fatal(err)
			}
			if err := side.Gate.ReplaceRoot(trust.PrivateKey(fresh)); err != nil {
				t.Fatal(err)
			}
			secret, err := side.Invite(trust.Invitation{Operator: "Ada", Uses: 1}, time.Hour)
			if err != nil {
				t.Fatal(err)
			}
			if err := w.enroll(n, side, secret); err != nil {
				t.Fatal(err)
			}
			if i == 0 {
				if gate, err = admission.Open(n.options); err != nil {
					t.Fatal(err)
				}
			}
		}
		check := func() {
			t.Helper()
			if _, err := gate.Own(); err != nil {
				t.Errorf("%v later: own certificate: %v", later, err)
			}
			if got, want := (admission.Attester{Gate: gate}).Charters(), (admission.Attester{Gate: right.Gate}).Charters(); !slices.EqualFunc(got, want, slices.Equal) {
				t.Errorf("%v later: the node has %d charters, and not the %d of the other side", later, len(got), len(want))
			}
		}
		if err := gate.Reload(); err != nil {
			t.Fatalf("%v later: %v", later, err)
		}
		check()
		n.options.Registerer = prometheus.NewRegistry()
		var err error
		if gate, err = admission.Open(n.options); err != nil {
			t.Fatal(err)
		}
		check()
	}
}

// A charter that cannot be stored does not count: after a restart it would be unknown here, and the root key is not
// replaced.
func TestCharterThatIsNotStored(t *testing.T) {
	w := newWorld(t)
	founder := w.found()
	before := founder.Charter()
	_, fresh, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	full := errors.New("the disk is full")
	founder.storage.Fail(full)
	err = founder.Gate.ReplaceRoot(trust.PrivateKey(fresh))
	founder.storage.Fail(nil)
	if !errors.Is(err, full) || !founder.Charter().Equal(before) {
		t.Errorf("root key replaced: %v, charter %+v", err, founder.Charter())
	}
	if err := founder.Gate.ReplaceRoot(trust.PrivateKey(fresh)); err != nil || founder.Charter().Roots[0] != trust.PrivateKey(fresh).Key() {
		t.Errorf("root key not replaced: %v", err)
	}
}

// Anybody can send a charter that their own keys signed: it is refused, and no sign that somebody has the root key. One
// that a former root key signed is.
func TestContraryCharters(t *testing.T) {
	w, forged := newWorld(t), newWorld(t)
	founder := w.found()
	forged.nodes = 100
	stranger := forged.found()
	send := func(n *testNode) {
		t.Helper()
		if err := n.play(t, founder); err == nil {
			t.Fatal("the node is admitted: the test shows nothing")
		}
	}
	send(stranger)
	if c := founder.Gate.LastContrary(); !c.At.IsZero() {
		t.Errorf("the charter of a stranger counts as one of the root key: %v", c.Err)
	}
	_, fresh, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	if err := founder.Gate.ReplaceRoot(trust.PrivateKey(fresh)); err != nil {
		t.Fatal(err)
	}
	chain := admission.Attester{Gate: founder.Gate}.Charters()
	for _, raw := range chain[1:] { // the one that names the new key, and what follows
		rival, _, err := trust.ReadCharter(raw)
		if err != nil {
			t.Fatal(err)
		}
		for i := range 256 { // some have a greater hash
			rival.Roots, rival.Issuers = []trust.Key{w.root.Key()}, []trust.Issuer{{Key: stranger.key(t), Name: strconv.Itoa(i)}}
			raw, err := rival.Seal(w.root)
			if err != nil {
				t.Fatal(err)
			}
			founder.AddCharter(raw) //nolint:errcheck // what counts is below
		}
	}
	if now := (admission.Attester{Gate: founder.Gate}).Charters(); !slices.EqualFunc(now, chain, slices.Equal) {
		t.Fatal("the former root key has replaced a charter")
	}
	thief := w.found() // with the former root key
	next := thief.Charter()
	next.Number = founder.Charter().Number + 100
	raw, err := next.Seal(w.root)
	if err != nil {
		t.Fatal(err)
	}
	if err := thief.AddCharter(raw); err != nil {
		t.Fatal(err)
	}
	send(thief)
	c := founder.Gate.LastContrary()
	if !errors.Is(c.Err, trust.ErrContrary) || c.Peer != thief.host.PeerID() {
		t.Errorf("last contrary charter: %+v", c)
	}
	send(stranger)
	if now := founder.Gate.LastContrary(); now.At != c.At {
		t.Errorf("the charter of a stranger replaces the other one: %+v", now)
	}
}

// Two holders of the root key give one number to two charters while they do not see each other. When they do, one
// counts everywhere.
func TestRivalCharters(t *testing.T) {
	w := newWorld(t)
	c := new(clock)
	founder := w.open(w.startAt(c))
	if err := founder.Gate.Appoint("Ada", w.root); err != nil {
		t.Fatal(err)
	}
	a, err := w.joinAt(founder, c)
	if err != nil {
		t.Fatal(err)
	}
	if err := founder.host.LibP2P().Network().ClosePeer(a.host.LibP2P().ID()); err != nil {
		t.Fatal(err)
	}
	number := a.Charter().Number + 100
	for i, n := range []*testNode{founder, a} {
		next := n.Charter()
		next.Number = number
		next.Issuers = append(slices.Clone(next.Issuers), trust.Issuer{Key: trust.Key{byte(i + 1)}, Name: "other"})
		raw, err := next.Seal(w.root)
		if err != nil {
			t.Fatal(err)
		}
		if err := n.AddCharter(raw); err != nil {
			t.Fatal(err)
		}
	}
	if founder.Charter().Equal(a.Charter()) {
		t.Fatal("the charters are the same: the test shows nothing")
	}
	if err := founder.play(t, a); err != nil {
		t.Fatal(err)
	}
	nettest.Eventually(t, "one charter", func() bool { return founder.Charter().Equal(a.Charter()) })
}
