package player

import "testing"

func TestParseSkin(t *testing.T) {
	for text, want := range map[string]Skin{"": 0, "0": 0, "03fa10cd": 0x03fa10cd, "FFFFFFFF": 0xffffffff, "000000001": 1} {
		if got, err := ParseSkin(text); err != nil || got != want {
			t.Errorf("skin %q: %x, %v; want %x", text, got, err, want)
		}
	}
	for _, text := range []string{"100000000", "-1", "+1", "0x1", "red", "1_0", " 1"} {
		if got, err := ParseSkin(text); err == nil {
			t.Errorf("skin %q is accepted as %x", text, got)
		}
	}
}
