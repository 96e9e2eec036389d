package transport

import (
	"fmt"
	"testing"

	ma "github.com/multiformats/go-multiaddr"
)

func TestTCPFirst(t *testing.T) {
	tcp, quic := ma.StringCast("/ip4/127.0.0.1/tcp/4001"), ma.StringCast("/ip4/127.0.0.1/udp/4001/quic-v1")
	for want, addrs := range map[string][]ma.Multiaddr{
		"[0s /ip4/127.0.0.1/tcp/4001 250ms /ip4/127.0.0.1/udp/4001/quic-v1]": {quic, tcp},
		"[0s /ip4/127.0.0.1/udp/4001/quic-v1]":                               {quic}, // a single address is tried at once
		"[]":                                                                 nil,
	} {
		got := []string{}
		for _, a := range tcpFirst(addrs) {
			got = append(got, a.Delay.String(), a.Addr.String())
		}
		if fmt.Sprint(got) != want {
			t.Errorf("%v are dialled as %v, want %s", addrs, got, want)
		}
	}
}
