package backupcmd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/dustin/go-humanize/english"
	"github.com/spf13/cobra"

	"github.com/voxelpopuli/voxeld/cmd/voxeld/internal/cli"
	"github.com/voxelpopuli/voxeld/internal/backup"
	"github.com/voxelpopuli/voxeld/internal/config"
	"github.com/voxelpopuli/voxeld/region/backups"
	"github.com/voxelpopuli/voxeld/world"
)

// Restore is a world that is to be founded from a backup.
type Restore struct {
	Chain    backup.Chain
	Genesis  world.Genesis // of the world to be founded: the backup's, or that of a fork
	Forked   bool
	RootKey  string // file with the world's root key; "" if it is in the data directory
	Progress func(regions int, rows uint64)
	Done     func(world.Genesis, backups.RestoreReport)
}

func newRestore(found func(context.Context, config.Config, Restore) error) *cobra.Command {
	var file, fork, rootKey string
	var incomplete bool
	c := &cobra.Command{
		Use: "restore FILE...|DIRECTORY|s3://BUCKET/PREFIX", Short: "Found the world again from a backup, on a new node",
		Long: "Writes the world of the backup into an empty data directory. voxeld run then serves it, and other nodes join with an\n" +
			"empty data directory and a token. Nodes that still have data of the world from before give that up when they meet this\n" +
			"node. So the command refuses while nodes of the world run. --fork founds a world of its own instead, with the same land.\n\n" +
			"Of a directory with scheduled backups, or a bucket, the chain that ends last is restored; of an object in a bucket, the chain up to it.",
		Example: "  voxeld restore world.voxback --root-key root.key --data-dir /var/lib/voxeld\n" +
			"  voxeld restore world.voxback monday.voxback --root-key root.key --data-dir data\n" +
			"  voxeld restore 's3://backups/world?endpoint=https://s3.example.org' --root-key root.key --data-dir data\n" +
			"  voxeld restore world.voxback --fork Playground --data-dir playground",
		Args: files,
		RunE: func(c *cobra.Command, args []string) (err error) {
			cfg, err := cli.LoadConfig(c, file)
			if err != nil {
				return err
			}
			from, err := find(c.Context(), c.ErrOrStderr(), args)
			if err != nil {
				return err
			}
			defer func() { err = errors.Join(err, from.close()) }()
			chain, err := verify(c, from)
			if err != nil {
				return err
			}
			r := Restore{Chain: chain, Genesis: chain.Last().Genesis, RootKey: rootKey}
			if c.Flags().Changed("fork") {
				r.Forked = true
				if r.Genesis.Name == fork {
					return cli.Usage(fmt.Errorf("the world of the backup is called %q: choose another name for the fork", fork))
				}
				r.Genesis.Name = fork
				if err := r.Genesis.Validate(); err != nil {
					return cli.Usage(err)
				}
			}
			out := c.ErrOrStderr()
			if err := mayRestore(out, r, incomplete); err != nil {
				return err
			}
			show := newProgress(out)
			r.Progress = func(regions int, rows uint64) { show.print("%d regions, %d rows", regions, rows) }
			r.Done = func(founded world.Genesis, report backups.RestoreReport) {
				show.end()
				r.Genesis = founded
				printReport(c.OutOrStdout(), r, report, cfg.DataDir)
			}
			return found(c.Context(), cfg, r)
		},
	}
	cli.AddOptions(c, &file, "data-dir", "game", "advertise-game")
	c.Flags().StringVar(&fork, "fork", "", "`name` of the new world: found a world of its own, which shares nothing with the one of the backup but the land")
	c.Flags().StringVar(&rootKey, "root-key", "", "`file` with the world's root key (default root.key in the data directory)")
	c.Flags().BoolVar(&incomplete, "accept-incomplete", false, "restore a backup that is not complete, or of an area: what it lacks is lost")
	return c
}

// mayRestore refuses a backup that lacks something, unless that is accepted.
func mayRestore(out io.Writer, r Restore, accepted bool) error {
	problems := r.Chain.Last().Problems()
	if n := len(r.Chain.Last().Header.Area); n > 0 {
		problems = append(problems, fmt.Sprintf("it is a backup of %s only: all other land will be as it was generated", english.Plural(n, "region", "")))
	}
	for _, p := range problems {
		fmt.Fprintf(out, "problem: %s\n", p)
	}
	if len(problems) == 0 || accepted {
		return nil
	}
	return fmt.Errorf("%w: take an earlier one, or accept what is missing with --accept-incomplete", ErrIncomplete)
}

func printReport(out io.Writer, r Restore, report backups.RestoreReport, dir string) {
	fmt.Fprintf(out, "World %q (%s) as of %s: %d regions, %d rows, %d players.\n", r.Genesis.Name, r.Genesis.ID()[:12],
		r.Chain.Last().Header.Time().Local().Format("2006-01-02 15:04:05"), report.Regions, report.Rows, report.Players)
	if len(report.Older) > 0 {
		fmt.Fprintf(out, "From an earlier backup of the chain: %s\n", strings.Join(report.Older, " "))
	}
	if len(report.Anew) > 0 {
		fmt.Fprintf(out, "In no backup, so as generated: %s\n", strings.Join(report.Anew, " "))
	}
	if n := len(report.Disputed); n > 0 {
		fmt.Fprintf(out, "Nodes had different commands under %s, first under %d: all of them count, in the order in which they were signed. Check roles, bans and claims.\n",
			english.Plural(n, "number", ""), report.Disputed[0])
	}
	for _, text := range report.Unfinished {
		fmt.Fprintf(out, "Not carried on, so order it again: rollback %s\n", text)
	}
	fmt.Fprintf(out, "Serve it with: %s run --data-dir %s\n", os.Args[0], dir)
}

// ErrAlive is returned if nodes of the world run.
var ErrAlive = errors.New("the world is running")
