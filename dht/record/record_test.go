package record

import (
	"bytes"
	"crypto/ed25519"
	"crypto/rand"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/libp2p/go-libp2p/core/crypto"
	"github.com/libp2p/go-libp2p/core/peer"

	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/player"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
)

const testWorld = "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff"

func cellOf(n int) grid.Cell {
	return grid.CellAt(grid.ChunkPos{X: int32(n) * 16, Z: int32(-n) * 16}, grid.FoundingLabel)
}

// signer is a node without a network.
type signer struct {
	key crypto.PrivKey
	id  string
}

func newSigner(t testing.TB) signer {
	t.Helper()
	key, _, err := crypto.GenerateEd25519Key(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	id, err := peer.IDFromPrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return signer{key, id.String()}
}

func (s signer) region(cell grid.Cell, epoch, term uint64) nodemsg.Region {
	return nodemsg.Region{ID: 7, Cell: cell, Epoch: epoch, Term: term, Leader: s.id, Members: []nodemsg.Member{{Peer: s.id, Game: "127.0.0.1:4002"}}}
}

func (s signer) player(name string, seq uint64) nodemsg.PlayerRecord {
	return nodemsg.PlayerRecord{Player: player.GuestID(name), Name: name, Guest: true, Seq: seq, Gateway: s.id, SavedAt: 1}
}

func (s signer) seal(t testing.TB, world, key string, payload []byte, err error) []byte {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	value, err := Seal(s.key, world, key, payload)
	if err != nil {
		t.Fatal(err)
	}
	return value
}

func (s signer) sealRegion(t testing.TB, key string, r nodemsg.Region) []byte {
	t.Helper()
	payload, err := nodemsg.EncodeRegion(r)
	return s.seal(t, testWorld, key, payload, err)
}

func (s signer) sealPlayer(t testing.TB, key string, p nodemsg.PlayerRecord) []byte {
	t.Helper()
	payload, err := nodemsg.EncodePlayerRecord(p)
	return s.seal(t, testWorld, key, payload, err)
}

func testValidators(p grid.Placement) (*Regions, *Players) {
	return NewValidators(testWorld, p, time.Now)
}

func TestEnvelope(t *testing.T) {
	s := newSigner(t)
	good := s.seal(t, testWorld, "/chunk/x", []byte("payload"), nil)
	got, err := open(testWorld, "/chunk/x", good)
	if err != nil || string(got.payload) != "payload" || got.signer.String() != s.id {
		t.Fatalf("opened %q by %s, %v", got.payload, got.signer, err)
	}
	if _, err := open(testWorld, "/chunk/y", good); err == nil {
		t.Error("a record can be filed under another key")
	}
	if _, err := open(strings.Repeat("0", 64), "/chunk/x", good); err == nil {
		t.Error("a record can be carried to another world")
	}
	for i := range good { // every single byte matters
		bad := bytes.Clone(good)
		bad[i] ^= 1
		if _, err := open(testWorld, "/chunk/x", bad); err == nil {
			t.Errorf("byte %d can be changed", i)
		}
	}
	if _, err := open(testWorld, "/chunk/x", append(bytes.Clone(good), 0)); err == nil {
		t.Error("a byte can be appended")
	}
	loose := append([]byte{0xbf}, good[1:]...) // a map of indefinite length
	if _, err := open(testWorld, "/chunk/x", append(loose, 0xff)); err == nil {
		t.Error("a record can be written in two ways")
	}
	if _, err := Seal(s.key, testWorld, "/chunk/x", make([]byte, maxRecord)); err == nil {
		t.Error("a record can be longer than 4 KiB")
	}
	if _, err := decodeEnvelope(make([]byte, maxRecord+1)); err == nil {
		t.Error("a record of more than 4 KiB is read")
	}
	ecdsa, _, err := crypto.GenerateECDSAKeyPair(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	other, err := Seal(ecdsa, testWorld, "/chunk/x", []byte("payload"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := open(testWorld, "/chunk/x", other); err == nil || !strings.Contains(err.Error(), "Ed25519") {
		t.Errorf("a key of another type returns %v", err)
	}
}

func TestChunkValidator(t *testing.T) {
	s, other := newSigner(t), newSigner(t)
	cell, next := cellOf(1), cellOf(2)
	for _, placement := range []grid.Placement{grid.PlacementHash, grid.PlacementWalkad} {
		v, _ := testValidators(placement)
		key := placement.Key(cell)
		change := func(f func(*nodemsg.Region)) nodemsg.Region {
			r := s.region(cell, 1, 1)
			f(&r)
			return r
		}
		for _, test := range []struct {
			name  string
			key   string
			value []byte
			want  string // part of the error; empty: valid
		}{
			{"honest", key, s.sealRegion(t, key, s.region(cell, 1, 1)), ""},
			{"honest catalog", grid.CatalogKey, s.sealRegion(t, grid.CatalogKey, change(func(r *nodemsg.Region) { r.ID = catalogID })), ""},
			{"another's region", key, other.sealRegion(t, key, s.region(cell, 1, 1)), "not signed by the leader"},
			{"another cell", key, s.sealRegion(t, key, s.region(next, 1, 1)), "its key of"},
			{"no leader", key, s.sealRegion(t, key, change(func(r *nodemsg.Region) { r.Leader = "" })), "not signed by the leader"},
			{"catalog's id", key, s.sealRegion(t, key, change(func(r *nodemsg.Region) { r.ID = catalogID })), "covers no cell"},
			{"no catalog", grid.CatalogKey, s.sealRegion(t, grid.CatalogKey, s.region(cell, 1, 1)), "not the catalog"},
			{"unbeatable epoch", key, s.sealRegion(t, key, s.region(cell, math.MaxUint64, 1)), "implausibly large"},
			{"unbeatable term", key, s.sealRegion(t, key, s.region(cell, 1, maxCount)), "implausibly large"},
			{"member without an id", key, s.sealRegion(t, key, change(func(r *nodemsg.Region) {
				r.Members = append(r.Members, nodemsg.Member{Peer: "abc", Game: "127.0.0.1:1"})
			})), "not a peer id"},
			{"a player's record", key, s.sealPlayer(t, key, s.player("ann", 1)), "decode"},
			{"no key at all", "/chunk/rubbish", s.sealRegion(t, "/chunk/rubbish", s.region(cell, 1, 1)), "parse key"},
			{"nothing", key, nil, "decode"},
		} {
			err := v.Validate(test.key, test.value)
			if test.want == "" && err != nil || test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)) {
				t.Errorf("%s, %s: %v; want an error with %q", placement, test.name, err, test.want)
			}
		}
		wrong := key + "0" // ten times the nonce; hash placement has no nonce
		if err := v.Validate(wrong, s.sealRegion(t, wrong, s.region(cell, 1, 1))); err == nil {
			t.Errorf("%s: the key %s is accepted for cell %v", placement, wrong, cell)
		}
	}
	// A later nonce with the same place would allow a second key for the cell.
	v, _ := testValidators(grid.PlacementWalkad)
	key := grid.PlacementHash.Key(cell)
	if err := v.Validate(key, s.sealRegion(t, key, s.region(cell, 1, 1))); err == nil {
		t.Error("walkad accepts the key of hash placement")
	}
}

func TestPlayerValidator(t *testing.T) {
	s, other := newSigner(t), newSigner(t)
	_, v := testValidators(grid.PlacementHash)
	key := player.GuestID("ann").Key()
	change := func(f func(*nodemsg.PlayerRecord)) nodemsg.PlayerRecord {
		p := s.player("ann", 1)
		f(&p)
		return p
	}
	for _, test := range []struct {
		name  string
		key   string
		value []byte
		want  string
	}{
		{"honest", key, s.sealPlayer(t, key, s.player("ann", 1)), ""},
		{"another's gateway", key, other.sealPlayer(t, key, s.player("ann", 1)), "not signed by the gateway"},
		{"another player", key, s.sealPlayer(t, key, s.player("bob", 1)), "it is of player"},
		{"unbeatable", key, s.sealPlayer(t, key, s.player("ann", uint64(time.Now().AddDate(0, 0, 3).UnixMilli()))), "implausibly large"},
		{"never saved", key, s.sealPlayer(t, key, change(func(p *nodemsg.PlayerRecord) { p.SavedAt = 0 })), "time of saving is missing"},
		{"a region's record", key, s.sealRegion(t, key, s.region(cellOf(1), 1, 1)), "decode"},
		{"nothing", key, nil, "decode"},
	} {
		err := v.Validate(test.key, test.value)
		if test.want == "" && err != nil || test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)) {
			t.Errorf("%s: %v; want an error with %q", test.name, err, test.want)
		}
	}
}

func TestSelect(t *testing.T) {
	s, s2 := newSigner(t), newSigner(t)
	chunks, players := testValidators(grid.PlacementHash)
	cell := cellOf(1)
	ckey, pkey := grid.PlacementHash.Key(cell), player.GuestID("ann").Key()
	r := func(s signer, epoch, term uint64) []byte { return s.sealRegion(t, ckey, s.region(cell, epoch, term)) }
	p := func(s signer, seq uint64) []byte { return s.sealPlayer(t, pkey, s.player("ann", seq)) }
	for i, test := range []struct {
		key    string
		values [][]byte
		want   int
	}{
		{ckey, [][]byte{r(s, 1, 1), r(s, 1, 2)}, 1},
		{ckey, [][]byte{r(s, 1, 9), r(s, 2, 1)}, 1}, // the epoch counts before the term
		{ckey, [][]byte{r(s, 2, 1), r(s, 1, 9)}, 0},
		{ckey, [][]byte{r(s, 1, 1), r(s2, 1, 1)}, 0}, // a tie: the first
		{ckey, [][]byte{r(s2, 1, 1), r(s, 1, 1), r(s, 1, 1)}, 0},
		{ckey, [][]byte{[]byte("rubbish"), r(s, 1, 1)}, 1},
		{pkey, [][]byte{p(s, 1), p(s, 3), p(s, 2)}, 1},
		{pkey, [][]byte{p(s, 1), p(s2, 1)}, 0},
	} {
		got, err := chunks.Select(test.key, test.values)
		if test.key == pkey {
			got, err = players.Select(test.key, test.values)
		}
		if err != nil || got != test.want {
			t.Errorf("case %d: %d, %v; want %d", i, got, err, test.want)
		}
	}
	if _, err := chunks.Select(ckey, [][]byte{nil}); err == nil {
		t.Error("selected among invalid records")
	}
}

// owner is a player with a key.
type owner struct {
	key  ed25519.PrivateKey
	name string
}

func newOwner(name string) owner {
	return owner{ed25519.NewKeyFromSeed(bytes.Repeat([]byte{7}, ed25519.SeedSize)), name}
}

func (o owner) id() player.ID { return player.IDOf(o.key.Public().(ed25519.PublicKey)) }

// logsIn returns the owner's login at a gateway.
func (o owner) logsIn(gateway string, at int64) *player.Login {
	l := player.Login{Key: [32]byte(o.key.Public().(ed25519.PublicKey)), At: at, Salt: [16]byte{1}}
	l.Signature = [64]byte(ed25519.Sign(o.key, player.ProofText(l.Nonce(gateway), testWorld)))
	return &l
}

// saved returns the record that a gateway makes of the owner, with a login there.
func (o owner) saved(s signer, at int64, seq uint64) nodemsg.PlayerRecord {
	return nodemsg.PlayerRecord{Player: o.id(), Name: o.name, Seq: seq, Gateway: s.id, SavedAt: 1, Login: o.logsIn(s.id, at)}
}

// Only a gateway at which a player has logged in can make a record that replaces those with a login, and only until the
// player logs in elsewhere.
func TestLogins(t *testing.T) {
	honest, liar, ann := newSigner(t), newSigner(t), newOwner("ann")
	_, v := testValidators(grid.PlacementHash)
	key := ann.id().Key()
	highest := uint64(time.Now().Add(47 * time.Hour).UnixMilli())
	change := func(r nodemsg.PlayerRecord, f func(*nodemsg.PlayerRecord)) nodemsg.PlayerRecord { f(&r); return r }
	good := ann.saved(honest, 5000, 1)
	visited := ann.saved(liar, 4000, highest) // ann was there before
	alone := change(visited, func(r *nodemsg.PlayerRecord) { r.Login = nil })
	for name, forged := range map[string]nodemsg.PlayerRecord{
		"login elsewhere": change(visited, func(r *nodemsg.PlayerRecord) { r.Login = good.Login }),
		"later login":     change(visited, func(r *nodemsg.PlayerRecord) { l := *r.Login; l.At = 6000; r.Login = &l }),
		"other salt":      change(visited, func(r *nodemsg.PlayerRecord) { l := *r.Login; l.Salt[0]++; r.Login = &l }),
		"in the future": change(visited, func(r *nodemsg.PlayerRecord) {
			r.Login = ann.logsIn(liar.id, time.Now().Add(53*time.Hour).UnixMilli())
		}),
	} {
		if err := v.Validate(key, liar.sealPlayer(t, key, forged)); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
	// Another key's login.
	eve := owner{ed25519.NewKeyFromSeed(make([]byte, ed25519.SeedSize)), "eve"}
	if _, err := nodemsg.EncodePlayerRecord(change(visited, func(r *nodemsg.PlayerRecord) { r.Login = eve.logsIn(liar.id, 6000) })); err == nil {
		t.Error("a record with the login of another player is valid")
	}
	for name, values := range map[string][]nodemsg.PlayerRecord{
		"never there": {alone, good}, "there before": {visited, good},
	} {
		sealed := [][]byte{liar.sealPlayer(t, key, values[0]), honest.sealPlayer(t, key, values[1])}
		if got, err := v.Select(key, sealed); err != nil || got != 1 {
			t.Errorf("%s: the liar's record wins: %v", name, err)
		}
		sealed[0], sealed[1] = sealed[1], sealed[0]
		if got, err := v.Select(key, sealed); err != nil || got != 0 {
			t.Errorf("%s: the liar's record wins if it is the second: %v", name, err)
		}
	}
	// A record of a version without logins counts while there is no other.
	if err := v.Validate(key, liar.sealPlayer(t, key, alone)); err != nil {
		t.Errorf("a record without a login: %v", err)
	}
}

func FuzzEnvelope(f *testing.F) {
	s := newSigner(f)
	cell := cellOf(1)
	key := grid.PlacementHash.Key(cell)
	f.Add(s.sealRegion(f, key, s.region(cell, 1, 1)))
	f.Add(s.sealPlayer(f, key, s.player("ann", 1)))
	f.Add([]byte{0xa3, 1, 0x40, 2, 0x40, 3, 0x40})
	f.Add([]byte{0xa3, 1, 0x5b, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff})
	chunks, players := testValidators(grid.PlacementHash)
	f.Fuzz(func(t *testing.T, raw []byte) {
		e, err := decodeEnvelope(raw)
		if err == nil {
			again, err := envelopeEnc.Marshal(e)
			if err != nil || !bytes.Equal(again, raw) {
				t.Fatalf("%x decodes, but encodes to %x, %v", raw, again, err)
			}
		}
		if chunks.Validate(key, raw) == nil && err != nil {
			t.Fatalf("%x is valid, but does not decode", raw)
		}
		players.Validate("/player/x", raw) //nolint:errcheck // only a panic would be an error
	})
}

// FuzzPayload tries everything that an attacker can sign: any payload, correctly signed.
func FuzzPayload(f *testing.F) {
	s := newSigner(f)
	cell := cellOf(1)
	key, pkey := grid.PlacementHash.Key(cell), player.GuestID("ann").Key()
	region, err := nodemsg.EncodeRegion(s.region(cell, 1, 1))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(region)
	rec, err := nodemsg.EncodePlayerRecord(s.player("ann", 1))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(rec)
	keyed, err := nodemsg.EncodePlayerRecord(newOwner("ann").saved(s, 5000, 1))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(keyed)
	chunks, players := testValidators(grid.PlacementHash)
	f.Fuzz(func(t *testing.T, payload []byte) {
		if len(payload) > maxRecord-200 {
			return
		}
		if r, err := chunks.Open(key, s.seal(t, testWorld, key, payload, nil)); err == nil {
			if r.Cell != cell || r.Leader != s.id || r.Epoch >= maxCount {
				t.Fatalf("accepted %+v", r)
			}
		}
		if p, err := players.Open(pkey, s.seal(t, testWorld, pkey, payload, nil)); err == nil {
			if p.Player.Key() != pkey || p.Login != nil || p.Gateway != s.id || !p.Plausible(time.Now()) {
				t.Fatalf("accepted %+v", p)
			}
		}
	})
}
