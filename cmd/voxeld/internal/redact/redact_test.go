package redact

import "testing"

// The same address has the same name, however it is written; versions, times and what is no address stay.
func TestAddresses(t *testing.T) {
	var a Addresses
	for _, c := range []struct{ text, want string }{
		{"remote=203.0.113.7:5678 and 203.0.113.7", "remote=ip-1:5678 and ip-1"},
		{"/ip4/198.51.100.1/tcp/4001/p2p/12D3Koo", "/ip4/ip-2/tcp/4001/p2p/12D3Koo"},
		{"/ip6/2001:db8::1/udp/4001 [2001:DB8:0:0::1]:80", "/ip6/ip-3/udp/4001 [ip-3]:80"},
		{"::ffff:203.0.113.7 fe80::1%eth0", "ip-1 ip-4%eth0"},
		{"\"10.0.0.0/8\",192.168.1.20", "\"ip-5/8\",ip-6"},
		{"127.0.0.1:8080 0.0.0.0 [::1]:80 [::]:4001", "127.0.0.1:8080 0.0.0.0 [::1]:80 [::]:4001"},
		{"time=2026-11-29T11:22:33.000Z go1.26.0 v0.51.0 11:22:33 999.1.1.1", "time=2026-11-29T11:22:33.000Z go1.26.0 v0.51.0 11:22:33 999.1.1.1"},
	} {
		if got := a.Replace(c.text); got != c.want {
			t.Errorf("%s\nbecomes %s\nwant    %s", c.text, got, c.want)
		}
	}
}
