package clocks

import (
	"fmt"

	"github.com/voxelpopuli/voxeld/test/testkit/figure"
)

// SizeTable returns the growth of the clocks, a row for each Size.
func (r Result) SizeTable() figure.Table {
	t := figure.Table{Head: []string{"after s", "in vision", "pruned", "largest", "bytes", "sparse", "largest", "bytes"}}
	for _, s := range r.Sizes {
		t.Add(s.Round, fmt.Sprintf("%.1f", s.Vision),
			fmt.Sprintf("%.1f", s.Pruned), s.MaxPruned, fmt.Sprintf("%.0f", s.PrunedBytes),
			fmt.Sprintf("%.1f", s.Sparse), s.MaxSparse, fmt.Sprintf("%.0f", s.SparseBytes))
	}
	return t
}

// Table returns the results of each comparison, a row for each.
func (j Judged) Table() figure.Table {
	table := figure.Table{Head: []string{
		"compared by", "recognised", "called equal", "called concurrent", "wrong way round", "concurrent called ordered", "concurrent called equal",
	}}
	for c := range comparisons {
		t := j.Tallies[c]
		table.Add(c.String(), fmt.Sprintf("%.2f %%", j.Share(c)),
			fmt.Sprintf("%.2f %%", percent(t.Tied, j.Ordered)), fmt.Sprintf("%.2f %%", percent(t.Missed, j.Ordered)), t.Reversed,
			fmt.Sprintf("%.2f %%", percent(t.Invented, j.Apart)), fmt.Sprintf("%.2f %%", percent(t.Merged, j.Apart)))
	}
	return table
}

// SettingsTable returns walks with different settings, a row for each: sizes at the end, and the shares of ordered
// pairs recognised.
func SettingsTable(settings []Setting, results []Result) figure.Table {
	t := figure.Table{Head: []string{
		"walk", "in vision", "pruned", "largest", "sparse", "printed", "own", "player's chains", "gateway's chains", "own, facing", "gateway's, facing",
	}}
	for i, r := range results {
		s := r.Sizes[len(r.Sizes)-1]
		row := []any{settings[i].Name, fmt.Sprintf("%.1f", s.Vision), fmt.Sprintf("%.1f", s.Pruned), s.MaxPruned, fmt.Sprintf("%.0f", s.Sparse)}
		for _, c := range []Comparison{Printed, Own, OwnHistory, SharedHistory} {
			row = append(row, fmt.Sprintf("%.2f %%", r.Received.Share(c)))
		}
		for _, c := range []Comparison{Own, SharedHistory} {
			row = append(row, fmt.Sprintf("%.2f %%", r.Facing.Share(c)))
		}
		t.Add(row...)
	}
	return t
}
