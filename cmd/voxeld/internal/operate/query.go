package operate

import (
	"io"
	"net/url"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/voxelpopuli/voxeld/cmd/voxeld/internal/admin"
	"github.com/voxelpopuli/voxeld/cmd/voxeld/internal/cli"
	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/region"
)

// newQuery returns a command that queries the node and prints the answer, as a table or as JSON.
func newQuery[A any](use, short, path string, table func(w io.Writer, answer A)) *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use: use, Short: short, Args: cli.NoArgs, Example: "  voxeld " + use + "\n  voxeld " + use + " --data-dir /var/lib/voxeld --json",
	}
	cli.OnNode(c, func(c *cobra.Command, _ []string, socket string) error {
		return printQuery(c, socket, path, asJSON, table)
	})
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return c
}

// newAreaQuery is newQuery with the flag --area: then everything in an area of the world is listed, as the nodes that
// lead its regions answer.
func newAreaQuery[A any](use, short, usage, path, areaPath string, table func(w io.Writer, answer A), areaTable func(w io.Writer, answer admin.Area)) *cobra.Command {
	var asJSON bool
	var area string
	c := &cobra.Command{
		Use: use, Short: short, Args: cli.NoArgs, Example: "  voxeld " + use + "\n  voxeld " + use + " --area -512,-512:512,512 --json",
	}
	cli.OnNode(c, func(c *cobra.Command, _ []string, socket string) error {
		if area == "" {
			return printQuery(c, socket, path, asJSON, table)
		}
		chunks, err := grid.ParseArea(area)
		if err == nil {
			err = region.CheckRange(chunks)
		}
		if err != nil {
			return cli.Usage(err)
		}
		return printQuery(c, socket, areaPath+"?area="+url.QueryEscape(area), asJSON, func(w io.Writer, a admin.Area) {
			areaTable(w, a)
			printGaps(w, a)
		})
	})
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	c.Flags().StringVar(&area, "area", "", "`X1,Z1:X2,Z2` in blocks: "+usage)
	return c
}

// printQuery queries the node and prints the answer.
func printQuery[A any](c *cobra.Command, socket, path string, asJSON bool, table func(w io.Writer, answer A)) error {
	var answer A
	if err := admin.Get(c.Context(), socket, path, &answer); err != nil {
		return err
	}
	if asJSON {
		return cli.PrintJSON(c.OutOrStdout(), answer)
	}
	w := tabwriter.NewWriter(c.OutOrStdout(), 0, 8, 2, ' ', 0)
	table(w, answer)
	return w.Flush()
}
