package netaddr

import (
	"net"
	"net/netip"
	"testing"
)

func TestAddresses(t *testing.T) {
	for text, want := range map[string]string{
		"192.0.2.7":            "192.0.2.7",
		"::ffff:192.0.2.7":     "192.0.2.7",
		"2001:db8::1":          "2001:db8::/64",
		"2001:db8::ffff:1:2:3": "2001:db8::/64",
		"fe80::1":              "fe80::/64",
		"192.0.2.0/24":         "192.0.2.0/24",
		"192.0.2.9/24":         "192.0.2.0/24",
		"2001:db8::9/48":       "2001:db8::/48",
		"2001:db8::9/128":      "2001:db8::/64",
		"2001:db8::9/65":       "2001:db8::/64",
		"::ffff:1.2.3.4/120":   "",
		"fe80::1%eth0":         "",
		"ann":                  "",
		"":                     "",
	} {
		network, ok := Parse(text)
		if ok != (want != "") || ok && Text(network) != want {
			t.Errorf("%q: %s, %v; want %q", text, network, ok, want)
		}
	}
	if got := Charged(netip.MustParseAddr("fe80::1%eth0")); got != netip.MustParsePrefix("fe80::/64") {
		t.Errorf("with a zone: %s", got)
	}
	if got := Charged(netip.Addr{}); got.IsValid() {
		t.Errorf("of no address: %s", got)
	}
	if got := ChargedFrom(&net.UnixAddr{Name: "x"}); got.IsValid() {
		t.Errorf("of a Unix socket: %s", got)
	}
	if got := ChargedFrom(&net.TCPAddr{IP: net.ParseIP("192.0.2.7"), Port: 9}); got != netip.MustParsePrefix("192.0.2.7/32") {
		t.Errorf("of a connection: %s", got)
	}
}
