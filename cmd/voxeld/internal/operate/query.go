package operate

import (
	"io"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/voxelpopuli/voxeld/cmd/voxeld/internal/admin"
	"github.com/voxelpopuli/voxeld/cmd/voxeld/internal/cli"
)

// newQuery returns a command that queries the node and prints the answer, as a table or as JSON.
func newQuery[A any](use, short, path string, table func(w io.Writer, answer A)) *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use: use, Short: short, Args: cli.NoArgs, Example: "  voxeld " + use + "\n  voxeld " + use + " --data-dir /var/lib/voxeld --json",
	}
	cli.OnNode(c, func(c *cobra.Command, _ []string, socket string) error {
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
	})
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return c
}
