package simcmd

import (
	"fmt"

	"github.com/voxelpopuli/voxeld/test/testkit/figure"
	"github.com/voxelpopuli/voxeld/vclock/walk"
)

func table(head []string, rows [][]string) figure.Table { return figure.Table{Head: head, Rows: rows} }

func sizesText(r walk.Result) string {
	return fmt.Sprintf("%d events, heard %d times.\n\n%s", r.Events, r.Hearing, table(r.SizeTable()).Markdown())
}

func comparisonsText(r walk.Result) string {
	return fmt.Sprintf("All pairs that one player receives: %d ordered, %d concurrent.\n\n%s\nThose of them whose authors see each other: %d ordered, %d concurrent.\n\n%s",
		r.Received.Ordered, r.Received.Apart, table(r.Received.Table()).Markdown(), r.Facing.Ordered, r.Facing.Apart, table(r.Facing.Table()).Markdown())
}

func settingsTable(settings []walk.Setting, results []walk.Result) figure.Table {
	var rows [][]string
	for i, s := range settings {
		rows = append(rows, results[i].Setting(s.Name))
	}
	return table(walk.SettingHead(), rows)
}
