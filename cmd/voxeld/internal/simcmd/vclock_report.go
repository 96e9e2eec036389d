package simcmd

import (
	"fmt"

	"github.com/voxelpopuli/voxeld/testkit/figure"
	"github.com/voxelpopuli/voxeld/vclock/walk"
)

func table(head []string, rows [][]string) figure.Table { return figure.Table{Head: head, Rows: rows} }

func sizesText(r walk.Result) string {
	return fmt.Sprintf("%d events, heard %d times.\n\n%s", r.Events, r.Hearing, table(r.SizeTable()).Markdown())
}

func sizesData(r walk.Result) figureData {
	d := figureData{tables: []figure.Table{table(r.SizeTable())}}
	vision, pruned, sparse := figure.Line{Name: "players in vision", Dashed: true}, figure.Line{Name: "pruned", Marked: true}, figure.Line{Name: "sparse", Marked: true}
	for _, s := range r.Sizes {
		x := float64(s.Round)
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
	return fmt.Sprintf("All pairs that one player receives: %d ordered, %d concurrent.\n\n%s\nThose of them whose authors see each other: %d ordered, %d concurrent.\n\n%s",
		r.Received.Ordered, r.Received.Apart, table(r.Received.Table()).Markdown(), r.Facing.Ordered, r.Facing.Apart, table(r.Facing.Table()).Markdown())
}

// comparisonsData plots the shares of the ordered pairs of all, and of those whose authors see each other, in percent, by the
// number of the comparison in the order of the table.
func comparisonsData(r walk.Result) figureData {
	d := figureData{tables: []figure.Table{table(r.Received.Table()), table(r.Facing.Table())}}
	all, facing := figure.Line{Name: "all pairs", Marked: true}, figure.Line{Name: "authors who see each other", Marked: true}
	for _, c := range walk.Comparisons() {
		x := float64(c + 1)
		all.Points = append(all.Points, figure.Point{X: x, Y: r.Received.Share(c)})
		facing.Points = append(facing.Points, figure.Point{X: x, Y: r.Facing.Share(c)})
	}
	d.plots = []figure.Plot{{
		Title: "Ordered pairs recognised, by comparison: 1 printed, 2 common, 3 common and own, 4 own, 5 player's chains, 6 gateway's chains",
		X:     figure.Axis{Label: "comparison"}, Y: figure.Axis{Label: "%"}, Lines: []figure.Line{all, facing},
	}}
	return d
}

func settingsTable(settings []walk.Setting, results []walk.Result) figure.Table {
	var rows [][]string
	for i, s := range settings {
		rows = append(rows, results[i].Setting(s.Name))
	}
	return table(walk.SettingHead(), rows)
}

// settingsData plots the shares of ordered pairs, by the number of the setting in the order of the table.
func settingsData(settings []walk.Setting, results []walk.Result) figureData {
	d := figureData{tables: []figure.Table{settingsTable(settings, results)}}
	names := map[walk.Comparison]string{walk.Printed: "printed", walk.Own: "own", walk.OwnHistory: "player's chains", walk.SharedHistory: "gateway's chains"}
	shown := []walk.Comparison{walk.Printed, walk.Own, walk.OwnHistory, walk.SharedHistory}
	lines := make([]figure.Line, len(shown))
	for i, r := range results {
		for n, c := range shown {
			lines[n].Name, lines[n].Marked = names[c], true
			lines[n].Points = append(lines[n].Points, figure.Point{X: float64(i + 1), Y: r.Received.Share(c)})
		}
	}
	d.plots = []figure.Plot{{
		Title: "Ordered pairs recognised, by setting in the table's order", X: figure.Axis{Label: "setting"}, Y: figure.Axis{Label: "%"}, Lines: lines,
	}}
	return d
}
