package admission

import (
	"fmt"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// What one address does counts for it alone, and for a /64 of IPv6 together; loopback is not limited. With other
// settings, what was used stays used. Addresses without number take a bounded amount of memory.
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
	for ip, want := range map[string]int{"192.0.2.1": 1, "192.0.2.3": 3} {
		if got := joins(ip); got != want {
			t.Errorf("with other settings %s joins %d times, want %d", ip, got, want)
		}
	}
	for i := range 2 * maxAddresses {
		at(fmt.Sprintf("2001:db8:%x:%x::1", i>>16, i&0xffff)).Allow(Join)
	}
	if n := l.mu.actions.Len(); n != maxAddresses {
		t.Errorf("%d addresses are counted, want %d", n, maxAddresses)
	}
}

// Names and claims of an address fill again within a day. If an operator changes their number, as for a school, or any
// other limit of an address, those that were taken count on.
func TestDailyActions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := NewLimits(Settings{PerAddress: 64}, prometheus.NewRegistry())
		take := func(ip string, daily int) (n int) {
			for n < 1000 && l.Client(&net.TCPAddr{IP: net.ParseIP(ip), Port: 9}).AllowDaily(NewName, daily) {
				n++
			}
			return n
		}
		for i, c := range []struct {
			after       time.Duration
			ip          string
			daily, want int
		}{
			{0, "192.0.2.1", 20, 20},
			{0, "192.0.2.1", 20, 0},
			{0, "192.0.2.2", 20, 20},
			{0, "2001:db8::1", 20, 20},
			{0, "2001:db8::2", 20, 0},
			{0, "2001:db8:0:1::1", 0, 0},
			{0, "127.0.0.1", 20, 1000},
			{12 * time.Hour, "192.0.2.1", 20, 10},
			{24 * time.Hour, "192.0.2.1", 20, 20},
			{0, "192.0.2.1", 200, 180},
			{0, "2001:db8:7::1", 1, 1}, // all /64 of a /48 have eight quotas together
			{0, "2001:db8:7:1::1", 1, 1},
			{0, "2001:db8:7:2::1", 1, 1},
			{0, "2001:db8:7:3::1", 1, 1},
			{0, "2001:db8:7:4::1", 1, 1},
			{0, "2001:db8:7:5::1", 1, 1},
			{0, "2001:db8:7:6::1", 1, 1},
			{0, "2001:db8:7:7::1", 1, 1},
			{0, "2001:db8:7:8::1", 1, 0},
			{0, "2001:db8:8:8::1", 1, 1},
			{time.Minute, "192.0.2.1", 200, 0},
			{0, "192.0.2.1", 100, 0},
		} {
			time.Sleep(c.after)
			if got := take(c.ip, c.daily); got != c.want {
				t.Errorf("%d: %s registers %d names, want %d", i, c.ip, got, c.want)
			}
			l.Set(Settings{PerAddress: 64 + i})
		}
	})
}
