package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"
)

// manyChunks spreads players out.
type manyChunks struct {
	*bench
	numbers []int // of players
}

func newManyChunks(b *bench) *cobra.Command {
	m := &manyChunks{bench: b}
	c := b.command("many-chunks", "CPU per player with players spread out",
		"Two players in each chunk, over more and more chunks: what one player costs should stay the same.", m.run)
	c.Flags().IntSliceVar(&m.numbers, "players", []int{100, 250, 500, 1000}, "numbers of players")
	return c
}

func (m *manyChunks) run(ctx context.Context) error {
	warm, length := m.times(seconds{15, 15})
	chunks := func(r crowdRow) int { return (r.wanted + 1) / 2 }
	var rows []crowdRow
	for _, n := range m.numbers {
		row := crowdRow{wanted: n}
		d, o, err := m.startSpreadCrowd(ctx, chunks(row))
		if err != nil {
			return err
		}
		row.reading, err = m.measureCrowd(ctx, []target{d}, o, n, warm, length, nil)
		d.Kill()
		if err != nil {
			return err
		}
		rows = append(rows, row)
		logf("%s", row.line("voxeld, spread out"))
	}
	rows = reliable(rows)
	table := tableOf(rows, text("players", crowdRow.players), text("chunks", func(r crowdRow) string { return fmt.Sprint(chunks(r)) }),
		number("CPU, % of a core", crowdRow.cpuPercent), number("per player", crowdRow.cpuEach), number("kB/s to each", crowdRow.kBIn),
		number("frames/s", crowdRow.FrameRate), number("tick p99, ms", crowdRow.tickMS), text("seen p50 / p99, ms", crowdRow.seen),
		number("RSS, MiB", crowdRow.rssMiB))
	return m.publish("many-chunks", table.Markdown())
}
