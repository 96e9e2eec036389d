package admission

import (
	"fmt"
	"net"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
)

// What one address does counts for it alone, and for a /64 of IPv6 together; loopback is not limited. With another settings all begin anew.
// Addresses without number take a bounded amount of memory.
func TestActionsOfAddresses(t *testing.T) {
	l := NewLimits(Settings{PerAddress: 2, EditsPerSecond: 20}, prometheus.NewRegistry())
	at := func(ip string) Client { return l.Client(&net.TCPAddr{IP: net.ParseIP(ip), Port: 9}) }
	joins := func(ip string) (n int) {
		for n < 100 && at(ip).Allow(Join) {
			n++
		}
		return n
	}
	for _, c := range []struct {
		ip   string
		want int
	}{
		{"192.0.2.1", 2},
		{"192.0.2.2", 2},
		{"192.0.2.1", 0},
		{"2001:db8::1", 2},
		{"2001:db8::2", 0},
		{"2001:db8:0:1::1", 2},
		{"127.0.0.1", 100},
	} {
		if got := joins(c.ip); got != c.want {
			t.Errorf("%s joins %d times at once, want %d", c.ip, got, c.want)
		}
	}
	l.Set(Settings{PerAddress: 3, EditsPerSecond: 20})
	if got := joins("192.0.2.1"); got != 3 {
		t.Errorf("with another settings an address joins %d times, want 3", got)
	}
	for i := range 2 * maxAddresses {
		at(fmt.Sprintf("2001:db8:%x:%x::1", i>>16, i&0xffff)).Allow(Join)
	}
	if n := l.mu.actions.Len(); n != maxAddresses {
		t.Errorf("%d addresses are counted, want %d", n, maxAddresses)
	}
}
