package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/voxelpopuli/voxeld/test/testkit/figure"
)

// compareFlag adds --compare to a figure's command.
func compareFlag(c *cobra.Command, old *string) {
	c.Flags().StringVar(old, "compare", "", "print ratios to this older voxeld binary in place of the figure; they are measured alternately, twice each")
}

// compared is one number of two measurements that is compared.
type compared[T any] struct {
	name  string
	value func(T) float64
}

// compare measures the old binary and the new one in turns, twice each, and prints the means of both, and their ratios.
func compare[T any](b *bench, old, title string, measure func() (T, error), rows []compared[T]) error {
	defer func(binary string) { b.binary = binary }(b.binary)
	binaries, names := [2]string{old, b.binary}, [2]string{"old", "new"}
	var results [2][]T
	for i := range 4 {
		b.binary = binaries[i%2]
		result, err := measure()
		if err != nil {
			return fmt.Errorf("%s: %w", names[i%2], err)
		}
		results[i%2] = append(results[i%2], result)
	}
	table := figure.Table{Head: []string{title, names[0], names[1], "new / old"}}
	for _, row := range rows {
		var means [2]float64
		for i := range results {
			for _, result := range results[i] {
				means[i] += row.value(result) / float64(len(results[i]))
			}
		}
		table.Add(row.name, means[0], means[1], ratio(means[1], means[0]))
	}
	fmt.Println(table.Markdown())
	return nil
}
