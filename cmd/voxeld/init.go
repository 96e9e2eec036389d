package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/store"
	"github.com/voxelpopuli/voxeld/world"
)

const (
	defaultWorldName = "Commons"
	defaultSections  = 4
)

// newInit makes the command that plans a world before its first run.
func newInit() *cobra.Command {
	var file, name string
	var seed int64
	var sections int
	c := &cobra.Command{
		Use: "init", Short: "Make a world with a name, seed and height of your choice",
		Long: "Makes the facts of a new world in an empty data directory. voxeld run then serves it.\n" +
			"Without init, run makes a world of its own choice.",
		Args: noArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			cfg, err := loadConfig(c, file)
			if err != nil {
				return err
			}
			var drawn *int64
			if c.Flags().Changed("seed") {
				drawn = &seed
			}
			g, err := newGenesis(name, drawn, sections, grid.Placement(cfg.Placement), time.Now())
			if err != nil {
				return usageError{err}
			}
			if err := planWorld(cfg.DataDir, g); err != nil {
				return err
			}
			fmt.Fprintf(c.OutOrStdout(), "World %q: id %s, seed %d, %d blocks high, spawn at %v.\nServe it with: %s run --data-dir %s\n",
				g.Name, g.ID()[:12], g.Seed, g.Height(), g.Spawn, os.Args[0], cfg.DataDir)
			return nil
		},
	}
	addOptions(c.Flags(), &file, "data-dir", "placement")
	c.Flags().StringVar(&name, "name", defaultWorldName, "name of the world, for people")
	c.Flags().Int64Var(&seed, "seed", 0, "seed of the terrain (default: drawn)")
	c.Flags().IntVar(&sections, "sections", defaultSections, "height in sections of 32 blocks, 1 to 32; 1 is the dissertation's world")
	return c
}

// planWorld writes the genesis into an empty data directory, where the first run finds it.
func planWorld(dataDir string, g world.Genesis) (err error) {
	if err := os.MkdirAll(dataDir, 0o700); err != nil {
		return fmt.Errorf("make data directory: %w", err)
	}
	db, err := store.Open(store.Options{Path: filepath.Join(dataDir, databaseName)})
	if err != nil {
		return fmt.Errorf("open data directory %s: %w", dataDir, err)
	}
	parts := newStack()
	defer func() { err = errors.Join(err, parts.stop()) }()
	parts.onStop("database", db.Close)
	parts.start("commits", db.Run)
	there, known, err := storedGenesis(db)
	if err != nil {
		return err
	}
	if known {
		return fmt.Errorf("%w: %s holds %q already; choose another --data-dir", errOtherWorld, dataDir, there.Name)
	}
	there, known, err = plannedGenesis(db)
	if err != nil {
		return err
	}
	if known {
		return fmt.Errorf("%w: %s holds %q (%s), which was begun there: voxeld run serves it; or choose another --data-dir", errOtherWorld, dataDir, there.Name, there.ID()[:12])
	}
	return keepPlan(db, g)
}
