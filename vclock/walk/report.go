package walk

import "fmt"

// SizeTable returns the growth of the clocks, a row for each Size, as a head and rows for test/testkit/figure.
func (r Result) SizeTable() (head []string, rows [][]string) {
	head = []string{"after s", "in vision", "pruned", "largest", "bytes", "sparse", "largest", "bytes"}
	for _, s := range r.Sizes {
		rows = append(rows, []string{
			fmt.Sprint(s.Round), fmt.Sprintf("%.1f", s.Vision),
			fmt.Sprintf("%.1f", s.Pruned), fmt.Sprint(s.MaxPruned), fmt.Sprintf("%.0f", s.PrunedBytes),
			fmt.Sprintf("%.1f", s.Sparse), fmt.Sprint(s.MaxSparse), fmt.Sprintf("%.0f", s.SparseBytes),
		})
	}
	return head, rows
}

// Table returns the results of each comparison, a row for each, as a head and rows for test/testkit/figure.
func (j Judged) Table() (head []string, rows [][]string) {
	head = []string{"compared by", "recognised", "called equal", "called concurrent", "wrong way round", "concurrent called ordered", "concurrent called equal"}
	for c := range comparisons {
		t := j.Tallies[c]
		rows = append(rows, []string{
			c.String(), fmt.Sprintf("%.2f %%", j.Share(c)),
			fmt.Sprintf("%.2f %%", percent(t.Tied, j.Ordered)), fmt.Sprintf("%.2f %%", percent(t.Missed, j.Ordered)), fmt.Sprint(t.Reversed),
			fmt.Sprintf("%.2f %%", percent(t.Invented, j.Apart)), fmt.Sprintf("%.2f %%", percent(t.Merged, j.Apart)),
		})
	}
	return head, rows
}

// SettingHead returns the head of a table of walks with different settings, whose rows Setting returns.
func SettingHead() []string {
	return []string{"walk", "in vision", "pruned", "largest", "sparse", "printed", "own", "player's chains", "gateway's chains", "own, facing", "gateway's, facing"}
}

// Setting returns the walk's row in such a table: sizes at the end, and the shares of ordered pairs recognised.
func (r Result) Setting(name string) []string {
	s := r.Sizes[len(r.Sizes)-1]
	row := []string{
		name, fmt.Sprintf("%.1f", s.Vision), fmt.Sprintf("%.1f", s.Pruned), fmt.Sprint(s.MaxPruned), fmt.Sprintf("%.0f", s.Sparse),
	}
	for _, c := range []Comparison{Printed, Own, OwnHistory, SharedHistory} {
		row = append(row, fmt.Sprintf("%.2f %%", r.Received.Share(c)))
	}
	for _, c := range []Comparison{Own, SharedHistory} {
		row = append(row, fmt.Sprintf("%.2f %%", r.Facing.Share(c)))
	}
	return row
}
