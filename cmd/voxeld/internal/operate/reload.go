package operate

import (
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/voxelpopuli/voxeld/cmd/voxeld/internal/admin"
	"github.com/voxelpopuli/voxeld/cmd/voxeld/internal/cli"
)

func newReload() *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use: "reload", Short: "Make this node read its configuration file again",
		Long: "Makes the node read its configuration file again, as SIGHUP does, and prints what has changed. Options that\n" +
			"docs/configuration.md marks with (reload) take effect at once, others after a restart. If the file has an\n" +
			"error, nothing is changed. The flags and variables with which the node was started still override the file.",
		Example: "  voxeld reload\n  voxeld reload --data-dir /var/lib/voxeld --json",
		Args:    cli.NoArgs,
	}
	cli.OnNode(c, func(c *cobra.Command, _ []string, socket string) error {
		var answer admin.Reloaded
		if err := admin.Post(c.Context(), socket, "/reload", &answer); err != nil {
			return err
		}
		if answer.Error != "" {
			return cli.Usage(errors.New(answer.Error))
		}
		if asJSON {
			return cli.PrintJSON(c.OutOrStdout(), answer)
		}
		printReloaded(c.OutOrStdout(), answer)
		return nil
	})
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return c
}

func printReloaded(w io.Writer, answer admin.Reloaded) {
	for _, change := range answer.Applied {
		fmt.Fprintf(w, "%s changed from %s to %s\n", change.Option, orNothing(change.Old), orNothing(change.New))
	}
	for _, change := range answer.Restart {
		fmt.Fprintf(w, "%s changed from %s to %s: takes effect after a restart\n", change.Option, orNothing(change.Old), orNothing(change.New))
	}
	if len(answer.Applied)+len(answer.Restart) == 0 {
		fmt.Fprintln(w, "reloaded; no option has changed")
	}
}

func orNothing(value string) string {
	if value == "" {
		return `""`
	}
	return value
}
