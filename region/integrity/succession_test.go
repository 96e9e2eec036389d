package integrity

import (
	"context"
	"crypto/ed25519"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/voxelpopuli/voxeld/replica"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
	"github.com/voxelpopuli/voxeld/world"
)

const theWorld = "a world"

var issuer = ed25519.NewKeyFromSeed(make([]byte, ed25519.SeedSize))

func issuers(key ed25519.PrivateKey) *Issuers {
	public := key.Public().(ed25519.PublicKey)
	return &Issuers{
		World: theWorld, Key: public, Charter: func() uint64 { return 3 },
		Sign: func(text []byte) ([]byte, error) { return ed25519.Sign(key, text), nil },
		Issued: func(charter uint64, node ed25519.PublicKey) (bool, error) {
			return charter == 3 && node.Equal(issuer.Public()), nil
		},
	}
}

// status is what a node says of a group: its configuration.
func status(id, epoch uint64, members ...nodemsg.Replica) nodemsg.RegionStatus {
	s := nodemsg.RegionStatus{Region: id, State: nodemsg.StateOpen, Epoch: epoch, Recovered: epoch / nodemsg.RecoveredEpoch}
	for _, m := range members {
		s.Members = append(s.Members, nodemsg.MemberStatus{Replica: m})
	}
	return s
}

// A copy is dropped if most of the voters of its configuration have a later one without it, if the catalog lists the
// region without it, or if an issuer has signed a configuration of the catalog without it; never on one node's word.
func TestJudge(t *testing.T) {
	a, b, c, d := nodemsg.Replica{ID: 1, Peer: "A"}, nodemsg.Replica{ID: 2, Peer: "B"}, nodemsg.Replica{ID: 3, Peer: "C"}, nodemsg.Replica{ID: 4, Peer: "D"}
	const land, recovered = 77, nodemsg.RecoveredEpoch + 5
	signed := func(s nodemsg.RegionStatus) nodemsg.RegionStatus { issuers(issuer).Vouch(&s); return s }
	forged := func(s nodemsg.RegionStatus) nodemsg.RegionStatus {
		i := issuers(ed25519.NewKeyFromSeed([]byte("a node that is no issuer, 32 byte")[:32]))
		i.Issued = func(uint64, ed25519.PublicKey) (bool, error) { return true, nil } // it believes so
		i.Vouch(&s)
		return s
	}
	changed := func(s nodemsg.RegionStatus) nodemsg.RegionStatus { s.Epoch++; return s }
	listed := func(epoch uint64, members ...nodemsg.Member) *nodemsg.Region {
		return &nodemsg.Region{ID: land, Epoch: epoch, Members: members}
	}
	again := nodemsg.Replica{ID: 3, Peer: "D"}
	for name, test := range map[string]struct {
		id     uint64
		said   map[string]nodemsg.RegionStatus
		listed *nodemsg.Region
		want   Verdict
		blamed string
	}{
		"all agree":                   {land, map[string]nodemsg.RegionStatus{"A": status(land, 9, a, b, c), "B": status(land, 9, a, b, c)}, nil, Verdict{}, ""},
		"a later one with it":         {land, map[string]nodemsg.RegionStatus{"A": status(land, 12, a, c), "B": status(land, 12, a, c)}, nil, Verdict{}, ""},
		"nobody answers":              {land, nil, listed(12, nodemsg.Member{Peer: "A", Replica: 1}), Verdict{}, ""},
		"a liar":                      {land, map[string]nodemsg.RegionStatus{"A": status(land, 1<<47, a), "B": status(land, 9, a, b, c)}, listed(9, nodemsg.Member{Peer: "A"}, nodemsg.Member{Peer: "B"}, nodemsg.Member{Peer: "C"}), Verdict{Claimed: true}, "A"},
		"a liar, the catalog is away": {land, map[string]nodemsg.RegionStatus{"A": status(land, 1<<47, a)}, nil, Verdict{Claimed: true}, ""},
		"most say so":                 {land, map[string]nodemsg.RegionStatus{"A": status(land, 12, a, b, again), "B": status(land, 11, a, b)}, nil, Verdict{Claimed: true, Confirmed: true}, ""},
		"recovered on A":              {land, map[string]nodemsg.RegionStatus{"A": status(land, recovered, d), "B": status(land, 9, a, b, c)}, listed(recovered, nodemsg.Member{Peer: "A", Replica: 4}), Verdict{Claimed: true, Confirmed: true}, ""},
		"an issuer, of a region":      {land, map[string]nodemsg.RegionStatus{"A": signed(status(land, recovered, a))}, nil, Verdict{Claimed: true}, ""},
		"a liar, of the catalog":      {world.CatalogID, map[string]nodemsg.RegionStatus{"A": status(world.CatalogID, 1<<47, a), "B": status(world.CatalogID, 9, a, b, c)}, nil, Verdict{Claimed: true}, "A"},
		"an issuer":                   {world.CatalogID, map[string]nodemsg.RegionStatus{"A": signed(status(world.CatalogID, recovered, a))}, nil, Verdict{Claimed: true, Confirmed: true}, ""},
		"an issuer that A names":      {world.CatalogID, map[string]nodemsg.RegionStatus{"A": status(world.CatalogID, 12, a, d), "D": signed(status(world.CatalogID, 12, a, d))}, nil, Verdict{Claimed: true, Confirmed: true}, ""},
		"no issuer":                   {world.CatalogID, map[string]nodemsg.RegionStatus{"A": forged(status(world.CatalogID, recovered, a))}, nil, Verdict{Claimed: true}, ""},
		"changed since":               {world.CatalogID, map[string]nodemsg.RegionStatus{"A": changed(signed(status(world.CatalogID, recovered, a)))}, nil, Verdict{Claimed: true}, ""},
		"signed with it":              {world.CatalogID, map[string]nodemsg.RegionStatus{"A": status(world.CatalogID, 1<<47, a), "B": signed(status(world.CatalogID, 12, a, b, c))}, nil, Verdict{Claimed: true}, "A"},
	} {
		blamed := ""
		j := Judge{
			Self: "C", Suspected: func(string) bool { return false }, Suspect: func(string) {}, Vouched: issuers(issuer).Vouched,
			Contradicted: func(peer, _ string) { blamed += peer },
			Ask: func(_ context.Context, peer string, _ nodemsg.StatusRequest) ([]nodemsg.RegionStatus, time.Duration, error) {
				if s, answers := test.said[peer]; answers {
					return []nodemsg.RegionStatus{s}, 0, nil
				}
				return nil, 0, errors.New("no answer")
			},
			Listed: func(context.Context, uint64) (nodemsg.Region, error) {
				if test.listed == nil {
					return nodemsg.Region{}, errors.New("no leader")
				}
				return *test.listed, nil
			},
		}
		own := replica.Position{Replica: 3, Members: replica.Configured{Index: 9}}
		for _, m := range []nodemsg.Replica{a, b, c} {
			own.Members.Members = append(own.Members.Members, replica.Member{ID: m.ID, Peer: m.Peer})
		}
		if got := j.Judge(t.Context(), test.id, own); got.Claimed != test.want.Claimed || got.Confirmed != test.want.Confirmed || blamed != test.blamed {
			t.Errorf("%s: %+v and blames %q, want %+v and %q", name, got, blamed, test.want, test.blamed)
		}
	}
	if s := signed(status(world.CatalogID, 12, a)); slices.Equal(s.VouchedText(theWorld, 3), s.VouchedText("another", 3)) {
		t.Error("a signature counts in another world")
	}
}

// A verdict says whether those were asked that had to be: a node that says so is asked even if it is suspected, and
// silence is not consent.
func TestJudgeKnowsWhoAnswered(t *testing.T) {
	const land = 77
	a, b, c := nodemsg.Replica{ID: 1, Peer: "A"}, nodemsg.Replica{ID: 2, Peer: "B"}, nodemsg.Replica{ID: 3, Peer: "C"}
	same := status(land, 9, a, b, c)
	for name, test := range map[string]struct {
		own       []nodemsg.Replica
		said      map[string]nodemsg.RegionStatus
		suspected string
		also      []string
		want      Verdict
	}{
		"all answer":        {[]nodemsg.Replica{a, b, c}, map[string]nodemsg.RegionStatus{"A": same, "B": same}, "", nil, Verdict{Heard: true, Settled: true}},
		"most answer":       {[]nodemsg.Replica{a, b, c}, map[string]nodemsg.RegionStatus{"A": same}, "", []string{"A"}, Verdict{Heard: true, Settled: true}},
		"one has no copy":   {[]nodemsg.Replica{a, b, c}, map[string]nodemsg.RegionStatus{"A": {Region: land}}, "", []string{"A"}, Verdict{Heard: true}},
		"nobody answers":    {[]nodemsg.Replica{a, b, c}, nil, "", []string{"A"}, Verdict{}},
		"another one":       {[]nodemsg.Replica{a, b, c}, map[string]nodemsg.RegionStatus{"A": same}, "", []string{"B"}, Verdict{Settled: true}},
		"all are suspected": {[]nodemsg.Replica{a, b, c}, map[string]nodemsg.RegionStatus{"A": same, "B": same}, "A B", nil, Verdict{Heard: true}},
		"it says so":        {[]nodemsg.Replica{a, b, c}, map[string]nodemsg.RegionStatus{"A": status(land, nodemsg.RecoveredEpoch+5, a)}, "A B", []string{"A"}, Verdict{Claimed: true, Heard: true, Settled: true}},
		"alone":             {[]nodemsg.Replica{c}, nil, "", nil, Verdict{Heard: true, Settled: true}},
		"there is no copy":  {nil, nil, "", []string{"A"}, Verdict{Heard: true}},
	} {
		j := Judge{
			Self: "C", Suspected: func(peer string) bool { return strings.Contains(test.suspected, peer) }, Suspect: func(string) {},
			Contradicted: func(string, string) {},
			Ask: func(_ context.Context, peer string, _ nodemsg.StatusRequest) ([]nodemsg.RegionStatus, time.Duration, error) {
				if s, answers := test.said[peer]; answers {
					return []nodemsg.RegionStatus{s}, 0, nil
				}
				return nil, 0, errors.New("no answer")
			},
			Listed: func(context.Context, uint64) (nodemsg.Region, error) {
				return nodemsg.Region{}, errors.New("no leader")
			},
		}
		var own replica.Position
		for _, m := range test.own {
			own.Members.Index, own.Replica = 9, 3
			own.Members.Members = append(own.Members.Members, replica.Member{ID: m.ID, Peer: m.Peer})
		}
		if got := j.Judge(t.Context(), land, own, test.also...); got != test.want {
			t.Errorf("%s: %+v, want %+v", name, got, test.want)
		}
	}
}
