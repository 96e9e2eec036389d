package figure

import (
	"encoding/xml"
	"errors"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestInsertReplacesOnlyItsPart(t *testing.T) {
	path := filepath.Join(t.TempDir(), "page.md")
	page := "# Page\n\n<!-- bench:a -->\nold\n<!-- end -->\n\nwords\n\n<!-- bench:b -->\nkept\n<!-- end -->\n"
	if err := os.WriteFile(path, []byte(page), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{"first", "second\n\n| a |\n"} {
		if err := Insert(path, "a", text); err != nil {
			t.Fatal(err)
		}
	}
	if err := Insert(path, "c", "new"); err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	want := strings.Replace(page, "old", "second\n\n| a |", 1) + "\n<!-- bench:c -->\nnew\n<!-- end -->\n"
	if string(got) != want {
		t.Errorf("page is\n%s\nwant\n%s", got, want)
	}
}

func TestPlotIsWellFormed(t *testing.T) {
	path := filepath.Join(t.TempDir(), "plots", "p.svg")
	p := Plot{
		Title: "a < b & c", X: Axis{Label: "players"}, Y: Axis{Label: "CPU, %"}, Y2: Axis{Label: "MiB"},
		Lines: []Line{
			{Name: "one", Points: []Point{{0, 1}, {10, math.NaN()}, {20, math.Inf(1)}, {30, 7}}, Marked: true},
			{Name: "two", Points: nil, Dashed: true},
			{Name: "three", Points: []Point{{5, 500}}, Right: true},
		},
	}
	if err := WriteSVG(path, p, p, Plot{}); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for d := xml.NewDecoder(strings.NewReader(string(data))); ; {
		if _, err := d.Token(); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
	}
	for _, bad := range []string{"NaN", "Inf", "%!"} {
		if strings.Contains(string(data), bad) {
			t.Errorf("the plot holds %s", bad)
		}
	}
}

func TestScaleIsRound(t *testing.T) {
	for most, want := range map[float64]float64{0: 1, 7: 8, 99: 100, 100: 100, 101: 120, 1500: 1500, .03: .03, 720: 800} {
		if got := scaleOf(most, 0, 1).most; math.Abs(got-want) > 1e-9 {
			t.Errorf("an axis to %v ends at %v, want %v", most, got, want)
		}
	}
}
