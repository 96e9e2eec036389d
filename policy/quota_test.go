package policy

import (
	"net/netip"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestExceeded(t *testing.T) {
	q := Quota{Names: 1, Claims: 2}
	for kind, want := range map[Kind]string{NewName: "registered 1 name", NewClaim: "claimed land 2 times", AnyCommand: "given 30 commands"} {
		for who, err := range map[string]error{"address": q.Exceeded(kind), "node": q.GatewayExceeded(kind)} {
			if !strings.HasPrefix(err.Error(), "players of your "+who+" have "+want+" within a day") {
				t.Errorf("%s, %v: %v", who, kind, err)
			}
		}
	}
}

func TestSetQuota(t *testing.T) {
	s := newTown(t)
	for _, step := range []struct{ text, want string }{
		{"set quota 203.0.113.0/24 200 300", "The players of each address in 203.0.113.0/24 may register 200 names and 300 claims a day."},
		{"set quota 203.0.113.7 0 1", "The players of each address in 203.0.113.7/32 may register 0 names and 1 claim a day."},
		{"set quota 2001:db8::9/48 50 50", "The players of each address in 2001:db8::/48 may register 50 names and 50 claims a day."},
		{"set quota 2001:db8:7::9 7 7", "The players of each address in 2001:db8:7::/64 may register 7 names and 7 claims a day."},
		{"set quota all 5 6", "The players of an address may register 5 names and 6 claims a day."},
		{"set quota gateway 50 60", "The players of a gateway may register 50 names and 60 claims a day."},
		{"set quota 203.0.113.0/24 200", "! write how many names, and how many claims, 0 to 100000"},
		{"set quota all 5 100001", "! write how many names, and how many claims, 0 to 100000"},
		{"set quota school 5 5", `! "school" is not all, gateway, an address or a range such as 203.0.113.0/24`},
		{"set quota ::ffff:203.0.113.0/120 5 5", `! "::ffff:203.0.113.0/120" is not all, gateway, an address or a range such as 203.0.113.0/24`},
		{"set quota", "! usage: /set quota all|gateway|RANGE NAMES CLAIMS | all|gateway|RANGE default"},
	} {
		if got := s.say("", step.text); got != step.want {
			t.Errorf("/%s: %q, want %q", step.text, got, step.want)
		}
	}
	for address, want := range map[string]Quota{
		"203.0.113.8": {200, 300}, "203.0.113.7": {0, 1}, "203.0.114.1": {5, 6}, "::ffff:203.0.113.8": {200, 300},
		"2001:db8:0:77::1": {50, 50}, "2001:db9::1": {5, 6}, "2001:db8:7::1": {7, 7},
	} {
		if got := s.Settings().QuotaOf(netip.MustParseAddr(address)); got != want {
			t.Errorf("the quota of %s is %v, want %v", address, got, want)
		}
	}
	for _, text := range []string{"set quota 203.0.113.7 default", "set quota all default", "set quota gateway default"} {
		s.say("", text)
	}
	if got := s.Settings(); got.QuotaOf(netip.MustParseAddr("203.0.113.7")) != (Quota{200, 300}) || got.AddressQuota != defaultAddressQuota || got.GatewayQuota != defaultGatewayQuota {
		t.Errorf("after default: %+v", got)
	}
}

func TestQuotaKinds(t *testing.T) {
	for text, want := range map[string]Kind{
		"register": NewName, "Register": NewName, "claim 1,2 30,40 x": NewClaim, "unclaim x": AnyCommand, "trust x eve": AnyCommand, "undo": AnyCommand,
		"claims": Free, "help": Free, "nonsense": Free,
	} {
		if got := QuotaKind(text, Builder); got != want {
			t.Errorf("/%s takes %v, want %v", text, got, want)
		}
		if got := QuotaKind(text, Moderator); got != Free {
			t.Errorf("a moderator's /%s takes %v", text, got)
		}
	}
	if got, want := defaultAddressQuota.Exceeded(NewName).Error(), "players of your address have registered 20 names within a day, and that is all they may: go on tomorrow, or ask an operator to raise the quota of your address (set quota)"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// Whatever is written after /set quota, it is refused or sets a quota within the bounds, which the restore of a backup
// makes again.
func TestAnyQuota(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		s := New()
		words := rapid.SliceOfN(rapid.SampledFrom([]string{"all", "gateway", "default", "10.0.0.0/8", "0.0.0.0/0", "::/0", "1.2.3.4", "fe80::1%eth0", "0", "7", "100000", "100001", "-1", "x", ""}), 0, 4).Draw(r, "words")
		for range 3 {
			if do, err := setQuota(s, author{}, words); err == nil {
				do()
			}
		}
		fresh := New()
		for _, text := range quotaCommands(s.settings) {
			if do, err := setQuota(fresh, author{}, strings.Fields(text)[2:]); err != nil {
				r.Fatal(text, err)
			} else {
				do()
			}
		}
		for _, address := range []string{"10.1.1.1", "1.2.3.4", "fe80::1", "2001:db8::1"} {
			got, want := fresh.settings.QuotaOf(netip.MustParseAddr(address)), s.settings.QuotaOf(netip.MustParseAddr(address))
			if got != want || got.Names > maxQuota || got.Claims > maxQuota {
				r.Fatalf("%s has %v, want %v", address, got, want)
			}
		}
	})
}
