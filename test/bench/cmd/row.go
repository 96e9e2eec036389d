package main

import (
	"fmt"
	"slices"

	"github.com/voxelpopuli/voxeld/test/testkit/figure"
)

// crowdRow is the measurement of a crowd, a row of a figure.
type crowdRow struct {
	reading
	wanted int
	failed error // the measurement ended early
}

func (c crowdRow) missed() string {
	if c.failed != nil {
		return c.failed.Error()
	}
	return c.reading.Missed(c.wanted)
}

// What columns show of a row, in the units of their names.

func (c crowdRow) players() string { return fmt.Sprint(c.wanted) }

func (c crowdRow) holds() string {
	if why := c.missed(); why != "" {
		return "no: " + why
	}
	return "yes"
}

func (c crowdRow) held() float64 {
	if c.missed() != "" {
		return 0
	}
	return 1
}

func (c crowdRow) cpuPercent() float64    { return percent(c.TotalCPU()) }
func (c crowdRow) cpuEach() float64       { return c.cpuPercent() / float64(c.Players) }
func (c crowdRow) botPercent() float64    { return percent(c.BotCPU) }
func (c crowdRow) othersPercent() float64 { return percent(c.Others) }
func (c crowdRow) bytesIn() float64       { return c.PerPlayer(c.Seen.BytesIn) }
func (c crowdRow) bytesOut() float64      { return c.PerPlayer(c.Seen.BytesOut) }
func (c crowdRow) kBIn() float64          { return c.bytesIn() / 1000 }
func (c crowdRow) kBOut() float64         { return c.bytesOut() / 1000 }
func (c crowdRow) tickMS() float64        { return 1000 * c.Tick99() }
func (c crowdRow) seen50() float64        { return 1000 * c.Seen.Delay.Quantile(.5) }
func (c crowdRow) seen99() float64        { return 1000 * c.Seen.Delay.Quantile(.99) }
func (c crowdRow) seen() string           { return pair(c.seen50(), c.seen99()) }
func (c crowdRow) errorMean() float64     { return c.Seen.Error.Mean() }
func (c crowdRow) error99() float64       { return c.Seen.Error.Quantile(.99) }
func (c crowdRow) errors() string         { return pair(c.errorMean(), c.error99()) }
func (c crowdRow) rssBytes() float64      { return float64(c.RSS[0]) }
func (c crowdRow) rssMiB() float64        { return c.rssBytes() / (1 << 20) }

// column is a column of a table of crowds, or of a CSV file, which has numbers only.
type column struct {
	head  string
	value func(crowdRow) float64
	text  func(crowdRow) string // in place of value
}

func number(head string, value func(crowdRow) float64) column {
	return column{head: head, value: value}
}

func text(head string, text func(crowdRow) string) column { return column{head: head, text: text} }

// tableOf returns the rows as a table. Of a failed one it has the first two columns only, which are texts.
func tableOf(rows []crowdRow, columns ...column) (t figure.Table) {
	for _, c := range columns {
		t.Head = append(t.Head, c.head)
	}
	for _, r := range rows {
		var cells []any
		for i, c := range columns {
			switch {
			case r.failed != nil && i > 1:
				cells = append(cells, "")
			case c.text != nil:
				cells = append(cells, c.text(r))
			default:
				cells = append(cells, c.value(r))
			}
		}
		t.Add(cells...)
	}
	return t
}

// writeRows writes the rows that did not fail as CSV, after a column of the number of players.
func (b *bench) writeRows(name string, rows []crowdRow, columns ...column) error {
	columns = slices.Concat([]column{number("players", func(r crowdRow) float64 { return float64(r.wanted) })}, columns)
	var head []string
	for _, c := range columns {
		head = append(head, c.head)
	}
	var csv [][]float64
	for _, r := range rows {
		if r.failed != nil {
			continue
		}
		var cells []float64
		for _, c := range columns {
			cells = append(cells, c.value(r))
		}
		csv = append(csv, cells)
	}
	return figure.WriteCSV(b.file(name), head, csv)
}

// pointsOf returns a line of a plot over the number of players.
func pointsOf(rows []crowdRow, value func(crowdRow) float64) (points []figure.Point) {
	for _, r := range rows {
		if r.failed == nil {
			points = append(points, figure.Point{X: float64(r.wanted), Y: value(r)})
		}
	}
	return points
}

// line returns a summary of one measurement.
func (c crowdRow) line(who string) string {
	if c.failed != nil {
		return fmt.Sprintf("%s, %d players: %v", who, c.wanted, c.failed)
	}
	text := fmt.Sprintf("%s, %d players: %.1f %% of a core, %s B/s in per player, %.1f frames/s, tick p99 %.1f ms, seen p50 %.0f p99 %.0f ms, players' core %.0f %%",
		who, c.wanted, c.cpuPercent(), figure.Number(c.bytesIn()), c.FrameRate(), c.tickMS(), c.seen50(), c.seen99(), c.botPercent())
	if why := c.missed(); why != "" {
		text += "; NOT HELD: " + why
	}
	if why := c.Caveat(); why != "" {
		text += "; DOUBTFUL: " + why
	}
	return text
}

// reliable returns the rows that are published: those that are not in doubt.
func reliable(rows []crowdRow) []crowdRow {
	return slices.DeleteFunc(slices.Clone(rows), func(r crowdRow) bool { return r.failed == nil && r.Caveat() != "" })
}

// unreliable is the error of a figure that is not published, because it is in doubt.
func unreliable(why string) error {
	return fmt.Errorf("not published, measure it again on a quiet machine: %s", why)
}

func pair(a, b float64) string { return figure.Number(a) + " / " + figure.Number(b) }
