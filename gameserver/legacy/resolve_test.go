package legacy

import (
	"context"
	"errors"
	"net/netip"
	"testing"
)

// A name is looked up once for many queries, whether it exists or not. Addresses are not looked up.
func TestNamesAreResolvedSeldom(t *testing.T) {
	lookups := 0
	h := newHosts()
	h.lookup = func(_ context.Context, _, host string) ([]netip.Addr, error) {
		lookups++
		if host == "unknown.example" {
			return nil, errors.New("no such host")
		}
		return []netip.Addr{netip.MustParseAddr("192.0.2.7")}, nil
	}
	for range 100 {
		if a, err := h.address(t.Context(), "node.example:4002"); err != nil || a.String() != "192.0.2.7:4002" {
			t.Fatalf("%v, %v", a, err)
		}
		if _, err := h.address(t.Context(), "unknown.example:4002"); err == nil {
			t.Fatal("an unknown name has an address")
		}
		if a, err := h.address(t.Context(), "192.0.2.8:4002"); err != nil || a.String() != "192.0.2.8:4002" {
			t.Fatalf("%v, %v", a, err)
		}
	}
	if lookups != 2 {
		t.Errorf("%d lookups, want 2", lookups)
	}
}
