package place

import "testing"

func TestNearest(t *testing.T) {
	b := &Border{MinX: -10, MinZ: -20, MaxX: 10, MaxZ: 20}
	for _, c := range []struct {
		x, z, toX, toZ float64
		outside        bool
	}{
		{3.2, -4.7, 3.2, -4.7, false},
		{-10, 20.99, -10, 20.99, false},
		{11, 0.3, 11, 0.3, false},
		{11.01, 0.3, 10.5, 0.3, true},
		{-10.2, 20.9, -9.5, 20.5, true},
		{5000, -5000, 10.5, -19.5, true},
		{-10.1, 3, -9.5, 3, true},
	} {
		if x, z, outside := b.Nearest(c.x, c.z); x != c.toX || z != c.toZ || outside != c.outside {
			t.Errorf("from %v, %v: %v, %v, %t, want %v, %v, %t", c.x, c.z, x, z, outside, c.toX, c.toZ, c.outside)
		}
	}
	if _, _, outside := (*Border)(nil).Nearest(1e9, 0); outside {
		t.Error("without a border something is outside")
	}
}
