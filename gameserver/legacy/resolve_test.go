package legacy

import (
	"context"
	"errors"
	"net/netip"
	"testing"
	"testing/synctest"
	"time"
)

// A name is looked up once a minute for many queries, and a name that has no address every few seconds. While the
// lookup fails, the last address counts. Addresses are not looked up.
func TestNamesAreResolvedSeldom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lookups, broken := 0, false
		h := newHosts()
		h.lookup = func(_ context.Context, _, host string) ([]netip.Addr, error) {
			lookups++
			if broken || host == "unknown.example" {
				return nil, errors.New("no such host")
			}
			return []netip.Addr{netip.MustParseAddr("192.0.2.7")}, nil
		}
		ask := func(name, want string) {
			t.Helper()
			a, err := h.address(t.Context(), name+":4002")
			if got := a.Addr().String(); want == "" && err == nil || want != "" && (err != nil || got != want) {
				t.Fatalf("%s: %v, %v, want %q", name, a, err, want)
			}
		}
		expect := func(want int) {
			t.Helper()
			if lookups != want {
				t.Fatalf("%d lookups, want %d", lookups, want)
			}
		}
		for range 100 {
			ask("node.example", "192.0.2.7")
			ask("unknown.example", "")
			ask("192.0.2.8", "192.0.2.8")
		}
		expect(2)
		time.Sleep(failedFor + time.Second)
		ask("node.example", "192.0.2.7")
		ask("unknown.example", "")
		expect(3)
		time.Sleep(resolvedFor)
		broken = true
		ask("node.example", "192.0.2.7")
		expect(4)
	})
}
