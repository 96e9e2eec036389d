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
	var file string
	c := &cobra.Command{
		Use: "split CELL", Short: "Split a crowded region into two",
		Long: "Splits a region into two, one for each half of its cell, so that two nodes can share its load. Players notice nothing.\n" +
			"CELL is a cell as voxeld regions prints it. All members of the region must be up. The smallest region is a single chunk.\n" +
			"A split region cannot be merged again yet.",
		Example: "  voxeld region split 0,0/0110",
		Args: func(c *cobra.Command, args []string) error {
			if len(args) != 1 {
				return cli.Usage(fmt.Errorf("%s takes one cell; see --help", c.CommandPath()))
			}
			if _, err := grid.ParseCell(args[0]); err != nil {
				return cli.Usage(err)
			}
			return nil
		},
		RunE: func(c *cobra.Command, args []string) error {
			cfg, err := cli.LoadConfig(c, file)
			if err != nil {
				return err
			}
			var done admin.Done
			if err := admin.Post(c.Context(), cfg.AdminSocket(), "/split?cell="+url.QueryEscape(args[0]), &done); err != nil {
				return err
			}
			if done.Error != "" {
				return errors.New(done.Error)
			}
			cell, err := grid.ParseCell(args[0])
			if err != nil {
				return err
			}
			lower, upper := cell.Children()
			fmt.Fprintf(c.OutOrStdout(), "%v is split into %v and %v\n", cell, lower, upper)
			return nil
		},
	}
	cli.AddOptions(c, &file, "data-dir", "admin")
	return c
}
