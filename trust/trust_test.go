package trust_test

import (
	"crypto/ed25519"
	"crypto/sha256"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/voxelpopuli/voxeld/trust"
)

var (
	worldID = trust.World{1, 2, 3}
	now     = time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
)

// keyOf returns a private key that depends on its name only.
func keyOf(name string) trust.PrivateKey {
	seed := sha256.Sum256([]byte(name))
	return trust.PrivateKey(ed25519.NewKeyFromSeed(seed[:]))
}

func ok(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func want(t *testing.T, got, want any) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Fatalf("-want +got:\n%s", diff)
	}
}

// wantError fails the test if the error is another one than want, which may be nil.
func wantError(t *testing.T, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Fatalf("%v, want %v", err, want)
	}
}

func wantText(t *testing.T, err error, text string) {
	t.Helper()
	if err == nil || !strings.Contains(err.Error(), text) {
		t.Fatalf("%v, want %q in it", err, text)
	}
}

// newAuthority returns the authority of a world with three root keys, and one issuer.
func newAuthority(t *testing.T) *trust.Authority {
	t.Helper()
	a, err := trust.NewAuthority(worldID, []trust.Key{keyOf("root 1").Key(), keyOf("root 2").Key(), keyOf("root 3").Key()})
	ok(t, err)
	c := a.Charter()
	c.Number, c.Issuers = 1, []trust.Issuer{{Key: keyOf("issuer").Key(), Name: "founder"}}
	raw, err := c.Seal(keyOf("root 1"), keyOf("root 3"))
	ok(t, err)
	added, err := a.AddCharter(raw)
	ok(t, err)
	want(t, added, true)
	return a
}

func issued(t *testing.T, a *trust.Authority, node, operator string, at time.Time) []byte {
	t.Helper()
	raw, err := a.Issue(keyOf("issuer"), keyOf(node).Key(), operator, [16]byte{7}, trust.TokenID{9}, at)
	ok(t, err)
	return raw
}

func TestCertificates(t *testing.T) {
	a := newAuthority(t)
	node := keyOf("node").Key()
	raw := issued(t, a, "node", "Ada", now)

	c, err := a.Check(raw, node, now)
	ok(t, err)
	want(t, "Ada", c.Operator)
	want(t, now.Add(trust.Lifetime-trust.RenewBefore), c.RenewAt().UTC())

	for name, test := range map[string]struct {
		check func() (trust.Certificate, error)
		want  error
	}{
		"a day early, by the clock": {func() (trust.Certificate, error) { return a.Check(raw, node, now.Add(-24*time.Hour)) }, nil},
		"a day late, by the clock":  {func() (trust.Certificate, error) { return a.Check(raw, node, now.Add(trust.Lifetime+24*time.Hour)) }, nil},
		"two days early":            {func() (trust.Certificate, error) { return a.Check(raw, node, now.Add(-48*time.Hour)) }, trust.ErrExpired},
		"two days late":             {func() (trust.Certificate, error) { return a.Check(raw, node, now.Add(trust.Lifetime+48*time.Hour)) }, trust.ErrExpired},
		"shown by another node":     {func() (trust.Certificate, error) { return a.Check(raw, keyOf("thief").Key(), now) }, trust.ErrNotOwn},
		"signed by the node itself": {func() (trust.Certificate, error) { return a.Check(selfSigned(t), node, now) }, trust.ErrNotIssued},
		"the same in another world": {func() (trust.Certificate, error) { return elsewhere(t).Check(raw, node, now) }, trust.ErrNotOwn},
		"an issuer may be a node, too": {func() (trust.Certificate, error) {
			return a.Check(issued(t, a, "issuer", "Ada", now), keyOf("issuer").Key(), now)
		}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := test.check()
			wantError(t, err, test.want)
		})
	}
	for i := range raw {
		bad := append([]byte(nil), raw...)
		bad[i] ^= 1
		_, err := a.Check(bad, node, now)
		if err == nil {
			t.Errorf("no error: %v", i)
		}
	}
}

// elsewhere returns the authority of another world with the same keys.
func elsewhere(t *testing.T) *trust.Authority {
	t.Helper()
	a, err := trust.NewAuthority(trust.World{2}, []trust.Key{keyOf("root 1").Key()})
	ok(t, err)
	return a
}

// selfSigned returns a certificate which a node signed as if it were an issuer.
func selfSigned(t *testing.T) []byte {
	t.Helper()
	a, err := trust.NewAuthority(worldID, []trust.Key{keyOf("node").Key()})
	ok(t, err)
	c := a.Charter()
	c.Number, c.Issuers = 1, []trust.Issuer{{Key: keyOf("node").Key(), Name: "me"}}
	raw, err := c.Seal(keyOf("node"))
	ok(t, err)
	_, err = a.AddCharter(raw)
	ok(t, err)
	forged, err := a.Issue(keyOf("node"), keyOf("node").Key(), "Ada", [16]byte{}, trust.TokenID{}, now)
	ok(t, err)
	return forged
}

func TestCharters(t *testing.T) {
	a := newAuthority(t)
	old := issued(t, a, "node", "Ada", now)
	next := a.Charter()
	next.Number = 12 // of a restored world
	next.Roots = []trust.Key{keyOf("root 2").Key(), keyOf("successor").Key()}
	next.Issuers = []trust.Issuer{{Key: keyOf("second").Key(), Name: "second"}}

	sealed := func(c trust.Charter, signers ...string) []byte {
		var keys []trust.Signer
		for _, s := range signers {
			keys = append(keys, keyOf(s))
		}
		raw, err := c.Seal(keys...)
		ok(t, err)
		return raw
	}
	foreign := next
	foreign.World = trust.World{2}
	for name, raw := range map[string][]byte{
		"one of three root keys":      sealed(next, "root 1"),
		"one root key and a stranger": sealed(next, "root 1", "stranger"),
		"the issuer":                  sealed(next, "issuer"),
		"keys that it would bring":    sealed(next, "root 2", "successor"),
		"another world":               sealed(foreign, "root 1", "root 2"),
		"nothing":                     nil,
		"a certificate is no charter": old,
		"cut short":                   sealed(next, "root 1", "root 2")[:100],
		"more bytes than it needs":    append(sealed(next, "root 1", "root 2"), 0),
	} {
		added, err := a.AddCharter(raw)
		if err == nil {
			t.Errorf("no error: %v", name)
		}
		want(t, added, false)
	}
	raw := sealed(next, "root 1", "root 2")
	added, err := a.AddCharter(raw)
	ok(t, err)
	want(t, added, true)
	added, err = a.AddCharter(raw)
	ok(t, err)
	want(t, added, false) // it is known
	_, err = a.AddCharter(sealed(next, "root 1", "root 3"))
	ok(t, err) // the same with other signatures

	_, err = a.Check(old, keyOf("node").Key(), now)
	wantError(t, err, trust.ErrNotIssued) // its issuer is one no more
	_, err = a.Issue(keyOf("issuer"), keyOf("node").Key(), "Ada", [16]byte{}, trust.TokenID{}, now)
	if err == nil {
		t.Error("no error")
	}

	newcomer, err := trust.NewAuthority(worldID, []trust.Key{keyOf("root 1").Key(), keyOf("root 2").Key(), keyOf("root 3").Key()})
	ok(t, err)
	for _, raw := range a.Chain(0) {
		_, err := newcomer.AddCharter(raw)
		ok(t, err)
	}
	want(t, a.Charter(), newcomer.Charter())
	want(t, a.Digest(), newcomer.Digest())
	want(t, len(a.Chain(12)), 0)
	want(t, len(a.Chain(1<<63)), 0)
}

// Of two charters with the same number, one counts on all nodes, whichever a node gets first. A node that knows a later
// one refuses the other.
func TestRivalCharters(t *testing.T) {
	one, other := newAuthority(t), newAuthority(t)
	base := one.Charter()
	seal := func(number uint64, issuer string, signers ...string) []byte {
		c := base
		c.Number, c.Issuers = number, []trust.Issuer{{Key: keyOf(issuer).Key(), Name: issuer}}
		var keys []trust.Signer
		for _, s := range signers {
			keys = append(keys, keyOf(s))
		}
		raw, err := c.Seal(keys...)
		ok(t, err)
		return raw
	}
	a, b := seal(12, "a", "root 1", "root 2"), seal(12, "b", "root 2", "root 3")
	for _, raw := range [][]byte{a, b} {
		_, err := one.AddCharter(raw)
		ok(t, err)
	}
	for _, raw := range [][]byte{b, a} {
		_, err := other.AddCharter(raw)
		ok(t, err)
	}
	want(t, one.Charter(), other.Charter())
	want(t, one.Digest(), other.Digest())
	winner, loser := a, b
	if one.Charter().Issuers[0].Name == "b" {
		winner, loser = b, a
	}
	added, err := one.AddCharter(loser)
	ok(t, err)
	want(t, added, false)
	for i := range 20 { // whatever its hash is
		forged := seal(12, "c"+strings.Repeat("c", i), "root 1", "stranger")
		if added, _ := one.AddCharter(forged); added {
			t.Fatal("a charter of one root key and a stranger counts")
		}
	}
	for _, x := range []*trust.Authority{one, other} {
		added, err = x.AddCharter(seal(13, "later", "root 1", "root 2"))
		ok(t, err)
		want(t, added, true)
	}
	_, err = one.AddCharter(loser)
	wantText(t, err, "there are two with number 12")
	wantError(t, err, trust.ErrContrary)
	for _, junk := range [][]byte{seal(12, "d", "root 1", "stranger"), seal(14, "e", "stranger"), []byte("junk")} {
		if _, err = one.AddCharter(junk); err == nil || errors.Is(err, trust.ErrContrary) {
			t.Errorf("a charter without a majority of root keys: %v", err)
		}
	}
	_, err = one.AddCharter(winner)
	ok(t, err)
}

// What an issuer had issued before it was dismissed stays valid, until it ends. What it issues later does not count,
// and neither does anything from before a charter without issuers.
func TestDismissedIssuer(t *testing.T) {
	a := newAuthority(t)
	add := func(at time.Time, issuers ...string) {
		next := a.Charter().Next(at)
		next.Issuers = nil
		for _, name := range issuers {
			next.Issuers = append(next.Issuers, trust.Issuer{Key: keyOf(name).Key(), Name: name})
		}
		raw, err := next.Seal(keyOf("root 1"), keyOf("root 2"))
		ok(t, err)
		added, err := a.AddCharter(raw)
		ok(t, err)
		want(t, added, true)
	}
	add(now, "issuer", "second")
	before := issued(t, a, "node", "Ada", now.Add(time.Hour))
	dismissed := now.Add(5 * 24 * time.Hour)
	backdated := issued(t, a, "node", "Ada", dismissed.Add(2*24*time.Hour)) // under the charter of before
	add(dismissed, "second")
	_, err := a.Check(before, keyOf("node").Key(), dismissed.Add(time.Hour))
	ok(t, err)
	_, err = a.Check(before, keyOf("node").Key(), now.Add(32*24*time.Hour))
	wantError(t, err, trust.ErrExpired)
	_, err = a.Check(backdated, keyOf("node").Key(), dismissed.Add(2*24*time.Hour))
	wantError(t, err, trust.ErrNotIssued)

	raw, err := trust.Revocation{World: worldID, Kind: trust.RevokeNode, Subject: []byte(trust.NodeSubject(keyOf("issuer").Key()).Name), At: dismissed.UnixMilli(), Reason: "it lies"}.Seal(keyOf("second"))
	ok(t, err)
	_, _, err = a.AddRevocation(raw, dismissed)
	ok(t, err)
	_, err = a.Check(before, keyOf("node").Key(), dismissed.Add(time.Hour))
	wantError(t, err, trust.ErrRevoked)
	raw, err = trust.Revocation{World: worldID, Kind: trust.RevokeNode, Subject: []byte(trust.NodeSubject(keyOf("issuer").Key()).Name), At: dismissed.UnixMilli() + 1, Lifted: true, Reason: "-"}.Seal(keyOf("second"))
	ok(t, err)
	_, _, err = a.AddRevocation(raw, dismissed)
	ok(t, err)
	_, err = a.Check(before, keyOf("node").Key(), dismissed.Add(time.Hour))
	ok(t, err)
	add(dismissed.Add(time.Hour))
	_, err = a.Check(before, keyOf("node").Key(), dismissed.Add(time.Hour))
	wantError(t, err, trust.ErrNotIssued)
}

func TestCharterBounds(t *testing.T) {
	for name, change := range map[string]func(*trust.Charter){
		"no root key":        func(c *trust.Charter) { c.Roots = nil },
		"a root key twice":   func(c *trust.Charter) { c.Roots = append(c.Roots, c.Roots[0]) },
		"many root keys":     func(c *trust.Charter) { c.Roots = make([]trust.Key, trust.MaxRoots+1) },
		"an issuer twice":    func(c *trust.Charter) { c.Issuers = append(c.Issuers, c.Issuers[0]) },
		"many issuers":       func(c *trust.Charter) { c.Issuers = make([]trust.Issuer, trust.MaxIssuers+1) },
		"no name":            func(c *trust.Charter) { c.Issuers[0].Name = "" },
		"a long name":        func(c *trust.Charter) { c.Issuers[0].Name = strings.Repeat("x", 65) },
		"an unprintable one": func(c *trust.Charter) { c.Issuers[0].Name = "a\x1b[31m" },
	} {
		c := newAuthority(t).Charter()
		change(&c)
		if c.Validate() == nil {
			t.Errorf("no error: %v", name)
		}
	}
}

func revocation(t *testing.T, s trust.Subject, at time.Time, lifted bool, signers ...string) []byte {
	t.Helper()
	r := trust.Revocation{World: worldID, Kind: s.Kind, Subject: []byte(s.Name), At: at.UnixMilli(), Lifted: lifted, Reason: "lies"}
	var keys []trust.Signer
	for _, s := range signers {
		keys = append(keys, keyOf(s))
	}
	raw, err := r.Seal(keys...)
	ok(t, err)
	return raw
}

func TestRevocations(t *testing.T) {
	a := newAuthority(t)
	node := keyOf("node").Key()
	raw := issued(t, a, "node", "Ada", now)
	add := func(raw []byte) bool {
		_, added, err := a.AddRevocation(raw, now)
		ok(t, err)
		return added
	}
	for _, subject := range []trust.Subject{trust.NodeSubject(node), trust.OperatorSubject("Ada"), trust.TokenSubject(trust.TokenID{9}), trust.NodeSubject(keyOf("issuer").Key())} {
		want(t, add(revocation(t, subject, now, false, "issuer")), true)
		want(t, add(revocation(t, subject, now, false, "issuer")), false) // it is known
		_, err := a.Check(raw, node, now)
		wantError(t, err, trust.ErrRevoked)
		wantText(t, err, "lies")
		want(t, add(revocation(t, subject, now.Add(-time.Minute), true, "root 1", "root 2")), false) // an earlier one
		want(t, add(revocation(t, subject, now.Add(time.Minute), true, "root 1", "root 2")), true)
		_, err = a.Check(raw, node, now)
		ok(t, err)
	}
	for name, raw := range map[string][]byte{
		"an issuer itself":  revocation(t, trust.NodeSubject(keyOf("issuer").Key()), now.Add(2*time.Minute), true, "issuer"), // lifted
		"a node":            revocation(t, trust.NodeSubject(node), now, false, "node"),
		"one of three keys": revocation(t, trust.NodeSubject(node), now, false, "root 1"),
		"from the future":   revocation(t, trust.NodeSubject(node), now.Add(48*time.Hour), false, "issuer"),
	} {
		_, _, err := a.AddRevocation(raw, now)
		if err == nil {
			t.Errorf("no error: %v", name)
		}
	}

	_, err := a.Issue(keyOf("issuer"), node, "Eve", [16]byte{}, trust.TokenID{9}, now)
	ok(t, err)
	want(t, add(revocation(t, trust.OperatorSubject("Eve"), now, false, "issuer")), true)
	_, err = a.Issue(keyOf("issuer"), node, "Eve", [16]byte{}, trust.TokenID{9}, now)
	wantError(t, err, trust.ErrRevoked) // a revoked operator gets no new certificate

	before := len(a.Revocations())
	want(t, a.Forget(now), false)
	want(t, a.Forget(now.Add(trust.RenewAfter)), false)
	want(t, a.Forget(now.Add(trust.RenewAfter+60*24*time.Hour)), true)
	want(t, len(a.Revocations()) < before, true)
	_, revoked := a.Revoked(trust.OperatorSubject("Eve"))
	want(t, revoked, true) // operators stay revoked

	next := a.Charter()
	next.Number, next.Issuers = next.Number+1, nil
	sealed, err := next.Seal(keyOf("root 1"), keyOf("root 2"))
	ok(t, err)
	_, err = a.AddCharter(sealed)
	ok(t, err)
	_, revoked = a.Revoked(trust.OperatorSubject("Eve"))
	want(t, revoked, false) // what an issuer revoked ends with the issuer
}

// A token admits nodes, and an issuer certifies itself, for longer than a certificate is valid: they stay revoked. So
// does an issuer that is dismissed later, as it can backdate certificates.
func TestLongRevocations(t *testing.T) {
	a := newAuthority(t)
	base := a.Charter()
	add := func(number uint64, issuers ...string) {
		t.Helper()
		next := base
		next.Number, next.Issuers = number, nil
		for _, name := range issuers {
			next.Issuers = append(next.Issuers, trust.Issuer{Key: keyOf(name).Key(), Name: name})
		}
		raw, err := next.Seal(keyOf("root 1"), keyOf("root 2"))
		ok(t, err)
		_, err = a.AddCharter(raw)
		ok(t, err)
	}
	add(2, "issuer", "second")
	token, second, node := trust.TokenSubject(trust.TokenID{9}), trust.NodeSubject(keyOf("second").Key()), trust.NodeSubject(keyOf("node").Key())
	var sealed [][]byte
	for _, subject := range []trust.Subject{token, second, node} {
		sealed = append(sealed, revocation(t, subject, now, false, "issuer"))
	}
	later := now.Add(trust.Lifetime + trust.RenewAfter + 4*trust.Skew)
	check := func() {
		t.Helper()
		a.Forget(later)
		for _, raw := range sealed { // as a node does that starts again, or was down
			_, _, err := a.AddRevocation(raw, later)
			ok(t, err)
		}
		for subject, stays := range map[trust.Subject]bool{token: true, second: true, node: false} {
			if _, revoked := a.Revoked(subject); revoked != stays {
				t.Errorf("kind %d is revoked: %v, want %v", subject.Kind, revoked, stays)
			}
		}
	}
	for _, raw := range sealed {
		_, _, err := a.AddRevocation(raw, now)
		ok(t, err)
	}
	check()
	add(3, "issuer")
	check()
}

// A revocation counts from now on, also if the clock of whoever signed the one before was ahead.
func TestRevokeAt(t *testing.T) {
	a := newAuthority(t)
	bob := trust.OperatorSubject("Bob")
	want(t, a.RevokeAt(bob, now), now.UnixMilli())
	ahead := now.Add(24 * time.Hour)
	for i, lifted := range []bool{false, true, false} {
		at := ahead
		if i > 0 {
			at = time.UnixMilli(a.RevokeAt(bob, now))
		}
		_, added, err := a.AddRevocation(revocation(t, bob, at, lifted, "issuer"), now)
		ok(t, err)
		want(t, added, true)
		_, revoked := a.Revoked(bob)
		want(t, revoked, !lifted)
	}
	want(t, a.RevokeAt(bob, now.Add(48*time.Hour)), now.Add(48*time.Hour).UnixMilli())
}

func TestInvitations(t *testing.T) {
	secret := trust.Secret{1}
	i := trust.Invitation{Token: secret.ID(), Operator: "Ada", NotAfter: now.Add(time.Hour).Unix(), Uses: 2}
	redeem := func(node string, at time.Time) error {
		next, err := i.Redeem(keyOf(node).Key(), at)
		if err == nil {
			i, err = trust.DecodeInvitation(next.Encode())
		}
		return err
	}
	ok(t, redeem("a", now))
	ok(t, redeem("a", now)) // the answer was lost
	ok(t, redeem("b", now))
	wantError(t, redeem("c", now), trust.ErrUsed)
	wantError(t, redeem("a", now.Add(2*time.Hour)), trust.ErrTooLate)
	i.Uses, i.Nodes = 0, nil
	for _, node := range []string{"a", "b", "c", "d"} {
		ok(t, redeem(node, now))
	}
	want(t, len(i.Nodes), 0)
	want(t, trust.Secret{2}.ID() == secret.ID(), false)
	i.Uses = trust.MaxUses + 1
	if i.Validate() == nil {
		t.Error("no error")
	}
}

func FuzzDocuments(f *testing.F) {
	a, err := trust.NewAuthority(worldID, []trust.Key{keyOf("root 1").Key()})
	if err != nil {
		f.Fatal(err)
	}
	c := a.Charter()
	c.Number, c.Issuers = 1, []trust.Issuer{{Key: keyOf("issuer").Key(), Name: "founder"}}
	charter, err := c.Seal(keyOf("root 1"))
	if err != nil {
		f.Fatal(err)
	}
	if _, err := a.AddCharter(charter); err != nil {
		f.Fatal(err)
	}
	certificate, err := a.Issue(keyOf("issuer"), keyOf("node").Key(), "Ada", [16]byte{}, trust.TokenID{}, now)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(charter)
	f.Add(certificate)
	f.Add(trust.Invitation{Operator: "Ada"}.Encode())
	f.Fuzz(func(t *testing.T, raw []byte) {
		if _, err := a.AddCharter(raw); err == nil && string(raw) != string(charter) {
			t.Fatal("a forged charter")
		}
		if _, _, err := a.AddRevocation(raw, now); err == nil {
			t.Fatal("a forged revocation")
		}
		if _, err := a.Check(raw, keyOf("node").Key(), now); err == nil && string(raw) != string(certificate) {
			t.Fatal("a forged certificate")
		}
		if i, err := trust.DecodeInvitation(raw); err == nil && errors.Is(i.Validate(), nil) && len(i.Nodes) > trust.MaxUses {
			t.Fatal("an invitation without a bound")
		}
	})
}
