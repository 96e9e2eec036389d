package main

import (
	"fmt"
	"io"
	"slices"
	"text/tabwriter"
)

// report prints the medians over the rounds, and their ratio to etcd's.
func report(out io.Writer, o options, rows []row) {
	t := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintf(t, "writers\tsystem\tacknowledged/s\tof etcd\tp50 ms\tp99 ms\tcores\tclient's\tµs an edit\tfsyncs/s\tper fsync\t\n") //nolint:errcheck // to a person
	for _, writers := range o.writers {
		yardstick := middle(rows, "etcd", writers, row.rate)
		for _, name := range o.systems {
			m := func(f func(row) float64) float64 { return middle(rows, name, writers, f) }
			ratio := "-"
			if yardstick > 0 {
				// Ratios compare the same round, and the median is taken over them.
				ratio = fmt.Sprintf("%.2f", m(func(r row) float64 { return r.rate() / etcdOf(rows, r) }))
			}
			fsyncs := m(func(r row) float64 { return r.fsyncs / r.Seconds })
			fmt.Fprintf(t, "%d\t%s\t%.0f\t%s\t%.2f\t%.2f\t%.2f\t%.2f\t%.1f\t%.0f\t%.1f\t\n", writers, name, m(row.rate), ratio, //nolint:errcheck // to a person
				m(func(r row) float64 { return float64(r.P50) / 1000 }), m(func(r row) float64 { return float64(r.P99) / 1000 }),
				m(func(r row) float64 { return r.cpu.Seconds() / r.Seconds }), m(func(r row) float64 { return r.client.Seconds() / r.Seconds }),
				m(row.cost), fsyncs, m(row.rate)/max(fsyncs, 1))
		}
	}
	t.Flush() //nolint:errcheck // to a person
}

// etcdOf returns etcd's rate in the same round with as many writers.
func etcdOf(rows []row, of row) float64 {
	for _, r := range rows {
		if r.system == "etcd" && r.writers == of.writers && r.round == of.round {
			return r.rate()
		}
	}
	return 0
}

func middle(rows []row, system string, writers int, f func(row) float64) float64 {
	var all []float64
	for _, r := range rows {
		if r.system == system && r.writers == writers {
			all = append(all, f(r))
		}
	}
	if len(all) == 0 {
		return 0
	}
	slices.Sort(all)
	return all[len(all)/2]
}
