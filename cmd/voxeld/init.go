package main

import (
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/voxelpopuli/voxeld/cmd/voxeld/internal/cli"
	"github.com/voxelpopuli/voxeld/cmd/voxeld/internal/joining"
	"github.com/voxelpopuli/voxeld/world"
)

// newInit returns the command that prepares a world before its first run.
func newInit() *cobra.Command {
	var file, name string
	var seed int64
	var sections int
	var day time.Duration
	var keep bool
	c := &cobra.Command{
		Use: "init", Short: "Prepare a new world with a name, seed, height and day length",
		Long: "Writes the parameters of a new world into an empty data directory. voxeld run then creates and serves it.\n" +
			"Without init, voxeld run creates a world with the defaults and a random seed.",
		Example: "  voxeld init --name Atlantis --seed 42\n  voxeld init --data-dir /var/lib/voxeld --sections 8 --day-length 1h",
		Args:    cli.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			cfg, err := cli.LoadConfig(c, file)
			if err != nil {
				return err
			}
			var fixed *int64
			if c.Flags().Changed("seed") {
				fixed = &seed
			}
			if day < world.MinDay || day > world.MaxDay {
				return cli.Usage(fmt.Errorf("create world: day length %v: want %v to %v", day, world.MinDay, world.MaxDay))
			}
			g, err := newGenesis(cfg.World, name, fixed, sections, day, time.Now())
			if err != nil {
				return cli.Usage(err)
			}
			err = errors.Join(planWorld(cfg, &g), chownData(cfg.DataDir))
			if keep && errors.Is(err, joining.ErrOtherWorld) {
				fmt.Fprintln(c.OutOrStdout(), "Nothing to do:", err)
				return nil
			}
			if err != nil {
				return err
			}
			fmt.Fprintf(c.OutOrStdout(), "World %q: id %s, seed %d, %d blocks high, spawn at %v.\nServe it with: %s run --data-dir %s\n",
				g.Name, g.ID()[:12], g.Seed, g.Height(), g.Spawn, os.Args[0], cfg.DataDir)
			return nil
		},
	}
	cli.AddOptions(c, &file, "data-dir", "placement", "open")
	c.Flags().BoolVar(&keep, "keep", false, "succeed, and change nothing, if there is a world already: for what runs before each start")
	c.Flags().StringVar(&name, "name", defaultWorldName, "`name` of the world, shown to players")
	c.Flags().Int64Var(&seed, "seed", 0, "seed of the terrain (default random)")
	c.Flags().IntVar(&sections, "sections", defaultSections, "height of the world in sections of 32 blocks, 1 to 32; 1 is the height of the dissertation's world")
	c.Flags().DurationVar(&day, "day-length", defaultDay, "how long a day of the world lasts, 1m to 168h; it never changes")
	return c
}
