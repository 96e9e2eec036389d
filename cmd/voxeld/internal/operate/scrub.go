package operate

import (
	"errors"
	"fmt"
	"net/url"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/voxelpopuli/voxeld/cmd/voxeld/internal/admin"
	"github.com/voxelpopuli/voxeld/cmd/voxeld/internal/cli"
	"github.com/voxelpopuli/voxeld/grid"
)

var errDamageLeft = errors.New("some regions are damaged or were not scrubbed: see above")

func newScrub() *cobra.Command {
	var asJSON, all bool
	c := &cobra.Command{
		Use:   "scrub CELL | --all",
		Short: "Compare the replicas of a region, and repair damaged ones",
		Long: "Compares what all members of a region have in memory and on disk at the same index of its log, and repairs\n" +
			"the replicas of a minority that differs. CELL is a cell as voxeld regions prints it. --all scrubs the\n" +
			"regions that this node leads, and the hibernating ones for which it is responsible. The command fails if any\n" +
			"damage is left.",
		Example: "  voxeld region scrub 0,0/0110\n  voxeld region scrub --all",
		Args:    cobra.MaximumNArgs(1),
	}
	cli.OnNode(c, func(c *cobra.Command, args []string, socket string) error {
		if all == (len(args) == 1) {
			return cli.Usage(fmt.Errorf("pass one cell or --all; see %s --help", c.CommandPath()))
		}
		path := "/region/scrub"
		if len(args) == 1 {
			if _, err := grid.ParseCell(args[0]); err != nil {
				return cli.Usage(fmt.Errorf("%w: pass one as voxeld regions prints it, such as 0,0/0110", err))
			}
			path += "?" + url.Values{"cell": args}.Encode()
		}
		var answer []admin.Scrub
		if err := admin.GetWithin(c.Context(), 0, socket, path, &answer); err != nil {
			return err
		}
		return printScrub(c, answer, asJSON)
	})
	c.Flags().BoolVar(&all, "all", false, "scrub all regions for which this node is responsible")
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return c
}

func printScrub(c *cobra.Command, answer []admin.Scrub, asJSON bool) error {
	var left error
	for _, a := range answer {
		if a.Error != "" || len(a.Open) > 0 {
			left = errDamageLeft
		}
	}
	if asJSON {
		return errors.Join(cli.PrintJSON(c.OutOrStdout(), answer), left)
	}
	if len(answer) == 0 {
		fmt.Fprintln(c.OutOrStdout(), "This node leads no region, and is responsible for no hibernating one: run this on another node.")
		return nil
	}
	w := tabwriter.NewWriter(c.OutOrStdout(), 0, 8, 2, ' ', 0)
	fmt.Fprintln(w, "REGION\tCELL\tREPLICAS\tPARTS\tDAMAGED\tREPAIRED\tLEFT")
	for _, a := range answer {
		rest := append([]string{}, a.Open...)
		if a.Error != "" {
			rest = append(rest, "not scrubbed: "+a.Error)
		}
		fmt.Fprintf(w, "%s\t%s\t%d of %d\t%d\t%d\t%d\t%s\n", a.ID, a.Cell, a.Reported, a.Members, a.Parts, a.Damaged, a.Repaired, strings.Join(rest, "; "))
	}
	return errors.Join(w.Flush(), left)
}
