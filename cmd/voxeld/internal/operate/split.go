package operate

import (
	"errors"
	"fmt"
	"net/url"

	"github.com/spf13/cobra"

	"github.com/voxelpopuli/voxeld/cmd/voxeld/internal/admin"
	"github.com/voxelpopuli/voxeld/cmd/voxeld/internal/cli"
	"github.com/voxelpopuli/voxeld/grid"
)

func newSplit() *cobra.Command {
	return onCell(&cobra.Command{
		Use: "split CELL", Short: "Split a crowded region into two",
		Long: "Splits a region into two, one for each half of its cell, so that two nodes can share its load. Edits wait for about a tenth of a second.\n" +
			"CELL is a cell as voxeld regions prints it. A member that is down applies the split later. The smallest region is a single chunk.",
		Example: "  voxeld region split 0,0/0110",
	}, "/split", "%[1]v is split into %[2]v and %[3]v\n")
}

func newMerge() *cobra.Command {
	return onCell(&cobra.Command{
		Use: "merge CELL", Short: "Merge the two halves of a split region again",
		Long: "Merges the two halves of a region that was split. CELL is the cell of the whole region: that of either half without its last digit.\n" +
			"Neither half may be split itself. Edits wait for about a tenth of a second.",
		Example: "  voxeld region merge 0,0/0110",
	}, "/merge", "%[2]v and %[3]v are merged into %[1]v\n")
}

// onCell completes a command that posts a cell to the path. Done formats the cell and its halves.
func onCell(c *cobra.Command, path, done string) *cobra.Command {
	c.Args = func(c *cobra.Command, args []string) error {
		if len(args) != 1 {
			return cli.Usage(fmt.Errorf("%s takes one cell; see --help", c.CommandPath()))
		}
		if cell, err := grid.ParseCell(args[0]); err != nil {
			return cli.Usage(err)
		} else if cell.Label.Len() == grid.MaxLabel {
			return cli.Usage(fmt.Errorf("%v is a single chunk", cell))
		}
		return nil
	}
	cli.OnNode(c, func(c *cobra.Command, args []string, socket string) error {
		cell, err := grid.ParseCell(args[0])
		if err != nil {
			return err
		}
		var answer admin.Done
		if err := admin.Post(c.Context(), socket, path+"?cell="+url.QueryEscape(args[0]), &answer); err != nil {
			return err
		}
		if answer.Error != "" {
			return errors.New(answer.Error)
		}
		lower, upper := cell.Children()
		fmt.Fprintf(c.OutOrStdout(), done, cell, lower, upper)
		return nil
	})
	return c
}
