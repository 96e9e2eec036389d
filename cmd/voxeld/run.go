package main

import (
	"log/slog"

	"github.com/spf13/cobra"

	"github.com/voxelpopuli/voxeld/cmd/voxeld/internal/cli"
	"github.com/voxelpopuli/voxeld/cmd/voxeld/internal/reload"
	"github.com/voxelpopuli/voxeld/internal/config"
)

func newRun() *cobra.Command {
	c := &cobra.Command{
		Use: "run", Short: "Run a node (the default command)",
		Long: "Runs a node until it is stopped by Ctrl-C, SIGTERM or voxeld drain. Without --join it starts the world in\n" +
			"the data directory, or creates one. Every flag can also be set as a key of the configuration file (TOML,\n" +
			"with _ for -) and as an environment variable VOXELD_…. Flags override variables, and variables override\n" +
			"the file.",
		Example: "  voxeld run\n" +
			"  voxeld run --data-dir /var/lib/voxeld --join vx2…\n" +
			"  voxeld run --config /etc/voxeld/voxeld.toml --log-level debug",
		Args: cli.NoArgs,
	}
	var file string
	cli.AddOptions(c, &file)
	c.RunE = func(c *cobra.Command, _ []string) error {
		read := func() (config.Settings, error) { return cli.ReadConfig(c, file) }
		settings, err := read()
		if err != nil {
			return err
		}
		var level slog.LevelVar
		level.Set(settings.Level())
		reloader := reload.New(settings, read)
		reloader.Subscribe(reloadLevel(&level))
		recent := &cli.Recent{}
		return runNode(c.Context(), reloader, cli.NewLogger(c.ErrOrStderr(), &level, settings.LogFormat, recent), recent, c.OutOrStdout())
	}
	return c
}
