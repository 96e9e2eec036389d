package main

import (
	"github.com/spf13/cobra"

	"github.com/voxelpopuli/voxeld/cmd/voxeld/internal/cli"
)

func newRun() *cobra.Command {
	c := &cobra.Command{
		Use: "run", Short: "Run a node (the default command)",
		Long: "Runs a node until it is stopped by Ctrl-C, SIGTERM or voxeld drain. Without --join it starts the world in\n" +
			"the data directory, or creates one. Every flag can also be set as a key of the configuration file (TOML,\n" +
			"with _ for -) and as an environment variable VOXELD_…. Flags override variables, and variables override\n" +
			"the file.",
		Example: "  voxeld run\n" +
			"  voxeld run --data-dir /var/lib/voxeld --join vx1…\n" +
			"  voxeld run --config /etc/voxeld/voxeld.toml --log-level debug",
		Args: cli.NoArgs,
	}
	var file string
	cli.AddOptions(c, &file)
	c.RunE = func(c *cobra.Command, _ []string) error {
		cfg, err := cli.LoadConfig(c, file)
		if err != nil {
			return err
		}
		return runNode(c.Context(), cfg, cli.NewLogger(c.ErrOrStderr(), cfg), c.OutOrStdout())
	}
	return c
}
