package figure

import (
	"encoding/csv"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"
)

// Table is a table of cells. The first column is aligned to the left, the others to the right.
type Table struct {
	Head []string
	Rows [][]string
}

// Add adds a row. Floats are formatted by Number, other values by %v.
func (t *Table) Add(cells ...any) {
	row := make([]string, len(cells))
	for i, cell := range cells {
		switch c := cell.(type) {
		case string:
			row[i] = c
		case float64:
			row[i] = Number(c)
		default:
			row[i] = fmt.Sprint(c)
		}
	}
	t.Rows = append(t.Rows, row)
}

// Number formats a number with three significant digits; "–" for none.
func Number(v float64) string {
	switch a := math.Abs(v); {
	case math.IsNaN(v):
		return "–"
	case math.IsInf(v, 0):
		return "over"
	case a >= 100 || v == 0:
		return fmt.Sprintf("%.0f", v)
	case a >= 10:
		return fmt.Sprintf("%.1f", v)
	case a >= 1:
		return fmt.Sprintf("%.2f", v)
	default:
		return fmt.Sprintf("%.3f", v)
	}
}

// Markdown returns the table in Markdown.
func (t Table) Markdown() string {
	var b strings.Builder
	b.WriteString("| " + strings.Join(t.Head, " | ") + " |\n|---|" + strings.Repeat("---:|", len(t.Head)-1) + "\n")
	for _, row := range t.Rows {
		b.WriteString("| " + strings.Join(row, " | ") + " |\n")
	}
	return b.String()
}

// WriteCSV writes a header and rows of numbers.
func WriteCSV(path string, head []string, rows [][]float64) error {
	return writeFile(path, func(w io.Writer) error {
		out := csv.NewWriter(w)
		if err := out.Write(head); err != nil {
			return err
		}
		for _, row := range rows {
			cells := make([]string, len(row))
			for i, v := range row {
				if !math.IsNaN(v) {
					cells[i] = fmt.Sprintf("%.6g", v)
				}
			}
			if err := out.Write(cells); err != nil {
				return err
			}
		}
		out.Flush()
		return out.Error()
	})
}

// WriteTables writes tables as CSV, with an empty line between two.
func WriteTables(path string, tables ...Table) error {
	return writeFile(path, func(w io.Writer) error {
		for i, t := range tables {
			if i > 0 {
				if _, err := fmt.Fprintln(w); err != nil {
					return err
				}
			}
			if err := csv.NewWriter(w).WriteAll(append([][]string{t.Head}, t.Rows...)); err != nil {
				return err
			}
		}
		return nil
	})
}

func writeFile(path string, write func(io.Writer) error) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return fmt.Errorf("make directory: %w", err)
	}
	var b strings.Builder
	if err := write(&b); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	if err := os.WriteFile(path, []byte(b.String()), 0o644); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	return nil
}

// Insert puts text into the page at path, in place of what is between the markers <!-- bench:NAME --> and <!-- end
// -->. It appends the markers to a page without them.
func Insert(path, name, text string) error {
	begin, end := "<!-- bench:"+name+" -->\n", "<!-- end -->\n"
	page, err := os.ReadFile(path)
	if err != nil && !os.IsNotExist(err) {
		return fmt.Errorf("read page: %w", err)
	}
	text = begin + strings.TrimSpace(text) + "\n" + end
	head, rest, found := strings.Cut(string(page), begin)
	if !found {
		text = strings.TrimRight(head, "\n") + "\n\n" + text
	} else {
		_, foot, closed := strings.Cut(rest, end)
		if !closed {
			return fmt.Errorf("insert into %s: there is no %q after %q", path, strings.TrimSpace(end), strings.TrimSpace(begin))
		}
		text = head + text + foot
	}
	return writeFile(path, func(w io.Writer) error { _, err := io.WriteString(w, text); return err })
}
