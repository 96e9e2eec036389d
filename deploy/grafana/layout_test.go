package main

import (
	"os"
	"testing"
)

// No dashboard has a hole: each line of its panels is as wide as the page.
func TestEveryLineIsFull(t *testing.T) {
	text, err := os.ReadFile(rules)
	if err != nil {
		t.Fatal(err)
	}
	l, err := limitsOf(string(text))
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range []dashboard{world(), node(), regions(), network(), players()} {
		built, err := d.build(l)
		if err != nil {
			t.Fatal(err)
		}
		filled := map[uint32]uint32{} // width of each line of the grid
		for _, p := range built.Panels {
			if p.RowPanel != nil {
				filled[p.RowPanel.GridPos.Y] += p.RowPanel.GridPos.W
				continue
			}
			at := p.Panel.GridPos
			if at.X != filled[at.Y] {
				t.Errorf("%s: %q begins at %d, want %d", d.title, *p.Panel.Title, at.X, filled[at.Y])
			}
			for y := range at.H {
				filled[at.Y+y] += at.W
			}
		}
		for y := range uint32(len(filled)) {
			if filled[y] != 24 {
				t.Errorf("%s: line %d is %d wide, want 24", d.title, y, filled[y])
			}
		}
	}
}

// Panels draw the limits of the alert rules.
func TestLimitsOf(t *testing.T) {
	got, err := limitsOf(`
      - alert: Share
        expr: a / b < 0.1
        labels: { severity: warning }
      - alert: Week
        expr: a - time() < 7 * 86400
        labels: { severity: critical }
      - alert: Any
        expr: >-
          max(a) > 0
        labels: { severity: critical }
      - alert: Down
        expr: up == 0
        labels: { severity: critical }
`)
	if err != nil {
		t.Fatal(err)
	}
	want := limits{
		"Share": {0.1, true, "orange"}, "Week": {7 * 86400, true, "red"}, "Any": {aboveZero, false, "red"}, "Down": {1, true, "red"},
	}
	for name, l := range want {
		if got[name] != l {
			t.Errorf("%s: %+v, want %+v", name, got[name], l)
		}
	}
	if _, err := limitsOf("- alert: None\n  expr: a\n  labels: {}\n"); err == nil {
		t.Error("a rule without a limit has one")
	}
}
