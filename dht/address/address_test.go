package address

import (
	"fmt"
	"strings"
	"testing"

	"github.com/libp2p/go-libp2p/core/test"
)

func TestParseListen(t *testing.T) {
	for _, test := range []struct{ in, want string }{
		{"/ip4/0.0.0.0/tcp/4001", "[/ip4/0.0.0.0/tcp/4001 /ip4/0.0.0.0/udp/4001/quic-v1]"},
		{"/ip6/::/tcp/4001", "[/ip6/::/tcp/4001 /ip6/::/udp/4001/quic-v1]"},
		{"/ip4/0.0.0.0/tcp/4001 /ip4/0.0.0.0/udp/5/quic-v1", "[/ip4/0.0.0.0/tcp/4001 /ip4/0.0.0.0/udp/5/quic-v1]"},
		{"/ip4/0.0.0.0/udp/5/quic-v1", "[/ip4/0.0.0.0/udp/5/quic-v1]"},
	} {
		got, err := ParseListen(strings.Fields(test.in))
		if err != nil || fmt.Sprint(got) != test.want {
			t.Errorf("%s: %v, %v; want %s", test.in, got, err, test.want)
		}
	}
	for _, bad := range []string{
		"", "0.0.0.0:4001", "/ip4/0.0.0.0", "/ip4/0.0.0.0/tcp/99999", "/dns4/example.org/tcp/1",
		"/ip4/0.0.0.0/tcp/4001/ws", "/ip4/0.0.0.0/udp/4001", "/unix/tmp",
	} {
		if got, err := ParseListen(strings.Fields(bad)); err == nil || !strings.Contains(err.Error(), "--listen") {
			t.Errorf("%q: %v, %v; want an error that names --listen", bad, got, err)
		}
	}
}

func TestParseTarget(t *testing.T) {
	id, err := test.RandPeerID()
	if err != nil {
		t.Fatal(err)
	}
	for _, good := range []string{"/ip4/192.0.2.1/tcp/4001", "/dns4/node1/tcp/4001", "/dns/node1/udp/4001/quic-v1", "/ip6/2001:db8::1/tcp/1"} {
		got, err := Parse(good)
		if err != nil || got.ID != "" || got.Addr.String() != good {
			t.Errorf("%s: %v, %v", good, got, err)
		}
		got, err = Parse(good + "/p2p/" + id.String())
		if err != nil || got.ID != id || got.Addr.String() != good {
			t.Errorf("%s with an id: %v, %v", good, got, err)
		}
	}
	for _, bad := range []string{
		"", "node1:4001", "/p2p/" + id.String(), "/ip4/192.0.2.1/tcp/4001/p2p/rubbish",
		"/ip4/192.0.2.1/tcp/4001/p2p/" + id.String() + "/p2p-circuit", "/ip4/192.0.2.1",
	} {
		if got, err := Parse(bad); err == nil {
			t.Errorf("%q is taken for %v", bad, got)
		}
	}
}
