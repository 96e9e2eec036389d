package simcmd

import (
	"fmt"

	"github.com/voxelpopuli/voxeld/testkit/figure"
	"github.com/voxelpopuli/voxeld/vclock/walk"
)

func markdown(head []string, rows [][]string) string {
	return figure.Table{Head: head, Rows: rows}.Markdown()
}

func sizesText(r walk.Result) string {
	return fmt.Sprintf("%d events, heard %d times.\n\n%s", r.Events, r.Hearing, markdown(r.SizeTable()))
}

func sizesData(r walk.Result) figureData {
	d := figureData{head: []string{"round", "vision", "pruned", "largest_pruned", "pruned_bytes", "sparse", "largest_sparse", "sparse_bytes"}}
	vision, pruned, sparse := figure.Line{Name: "players in vision", Dashed: true}, figure.Line{Name: "pruned", Marked: true}, figure.Line{Name: "sparse", Marked: true}
	for _, s := range r.Sizes {
		x := float64(s.Round)
		d.rows = append(d.rows, []float64{x, s.Vision, s.Pruned, float64(s.MaxPruned), s.PrunedBytes, s.Sparse, float64(s.MaxSparse), s.SparseBytes})
		vision.Points = append(vision.Points, figure.Point{X: x, Y: s.Vision})
		pruned.Points = append(pruned.Points, figure.Point{X: x, Y: s.Pruned})
		sparse.Points = append(sparse.Points, figure.Point{X: x, Y: s.Sparse})
	}
	d.plots = []figure.Plot{{
		Title: "Entries of a clock", X: figure.Axis{Label: "seconds"}, Y: figure.Axis{Label: "entries, mean"},
		Lines: []figure.Line{vision, pruned, sparse},
	}}
	return d
}

func comparisonsText(r walk.Result) string {
	return fmt.Sprintf("All pairs that one player hears: %d ordered, %d concurrent.\n\n%s\nThose of them whose authors see each other: %d ordered, %d concurrent.\n\n%s",
		r.Heard.Ordered, r.Heard.Apart, markdown(r.Heard.Table()), r.Facing.Ordered, r.Facing.Apart, markdown(r.Facing.Table()))
}

// comparisonsData has a row for each comparison, numbered in the order of the table: shares of the ordered pairs of all and of
// those whose authors see each other, in percent.
func comparisonsData(r walk.Result) figureData {
	d := figureData{head: []string{"comparison", "recognised", "reversed", "invented", "recognised_facing", "reversed_facing", "invented_facing"}}
	all, facing := figure.Line{Name: "all pairs", Marked: true}, figure.Line{Name: "authors who see each other", Marked: true}
	for _, c := range walk.Comparisons() {
		x := float64(c + 1)
		h, f := r.Heard.Tallies[c], r.Facing.Tallies[c]
		d.rows = append(d.rows, []float64{
			x, r.Heard.Share(c), float64(h.Reversed), float64(h.Invented), r.Facing.Share(c), float64(f.Reversed), float64(f.Invented),
		})
		all.Points = append(all.Points, figure.Point{X: x, Y: r.Heard.Share(c)})
		facing.Points = append(facing.Points, figure.Point{X: x, Y: r.Facing.Share(c)})
	}
	d.plots = []figure.Plot{{
		Title: "Ordered pairs recognised, by comparison: 1 printed, 2 common, 3 common and own, 4 own, 5 player's chains, 6 gateway's chains",
		X:     figure.Axis{Label: "comparison"}, Y: figure.Axis{Label: "%"}, Lines: []figure.Line{all, facing},
	}}
	return d
}

func settingsText(settings []walk.Setting, results []walk.Result) string {
	var rows [][]string
	for i, s := range settings {
		rows = append(rows, results[i].Setting(s.Name))
	}
	return markdown(walk.SettingHead(), rows)
}

// settingsData has a row for each setting, numbered in the order of the table.
func settingsData(results []walk.Result) figureData {
	d := figureData{head: []string{"setting", "vision", "pruned", "sparse", "printed", "own", "player_chains", "gateway_chains"}}
	names := map[walk.Comparison]string{walk.Printed: "printed", walk.Own: "own", walk.OwnHistory: "player's chains", walk.SharedHistory: "gateway's chains"}
	shown := []walk.Comparison{walk.Printed, walk.Own, walk.OwnHistory, walk.SharedHistory}
	lines := make([]figure.Line, len(shown))
	for i, r := range results {
		end := r.Sizes[len(r.Sizes)-1]
		row := []float64{float64(i + 1), end.Vision, end.Pruned, end.Sparse}
		for n, c := range shown {
			row = append(row, r.Heard.Share(c))
			lines[n].Name, lines[n].Marked = names[c], true
			lines[n].Points = append(lines[n].Points, figure.Point{X: float64(i + 1), Y: r.Heard.Share(c)})
		}
		d.rows = append(d.rows, row)
	}
	d.plots = []figure.Plot{{
		Title: "Ordered pairs recognised, by setting in the table's order", X: figure.Axis{Label: "setting"}, Y: figure.Axis{Label: "%"}, Lines: lines,
	}}
	return d
}
