package backupcmd

import (
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/dustin/go-humanize/english"
	"github.com/spf13/cobra"

	"github.com/voxelpopuli/voxeld/backup"
	"github.com/voxelpopuli/voxeld/cmd/voxeld/internal/cli"
)

// ErrIncomplete is returned for a backup that lacks a region, or may lack acknowledged edits.
var ErrIncomplete = errors.New("the backup is not complete")

func newVerify() *cobra.Command {
	c := &cobra.Command{
		Use: "verify FILE...", Short: "Check that backups can be restored",
		Long: "Reads the backup, checks every checksum and decodes every row. An incremental backup comes after the files that it is\n" +
			"based on, beginning with the full one.",
		Example: "  voxeld verify world.voxback\n  voxeld verify world.voxback monday.voxback tuesday.voxback",
		Args:    files,
		RunE: func(c *cobra.Command, args []string) error {
			chain, err := verify(c, args)
			if err != nil {
				return err
			}
			out := c.OutOrStdout()
			for _, b := range chain {
				kind := "full"
				switch {
				case len(b.Header.Area) > 0:
					kind = "area of " + english.Plural(len(b.Header.Area), "region", "")
				case b.Header.Base != nil:
					kind = "incremental"
				}
				fmt.Fprintf(out, "%s: %s backup %v of %q (world %s), begun %s by voxeld %s: %s\n", b.File, kind, b.ID, b.Genesis.Name, b.Genesis.ID()[:12],
					b.Header.Time().UTC().Format(time.RFC3339), b.Header.Program, summary(b))
			}
			return incompleteChain(out, chain)
		},
	}
	return c
}

func files(c *cobra.Command, args []string) error {
	if len(args) > 0 {
		return nil
	}
	return cli.Usage(fmt.Errorf("%s takes the names of backups; see --help", c.CommandPath()))
}

// verify verifies a chain and shows its progress.
func verify(c *cobra.Command, names []string) (backup.Chain, error) {
	show := newProgress(c.ErrOrStderr())
	defer show.end()
	return backup.VerifyFiles(names, func(file string, groups int, rows uint64) {
		show.print("%s: %d regions, %d rows", file, groups-1, rows)
	})
}

// incompleteChain prints the problems of a chain's end.
func incompleteChain(out io.Writer, chain backup.Chain) error {
	problems := chain.Last().Problems()
	for _, p := range problems {
		fmt.Fprintf(out, "problem: %s\n", p)
	}
	if len(problems) > 0 {
		return fmt.Errorf("%w: when it was made, %s found", ErrIncomplete, english.Plural(len(problems), "problem was", "problems were"))
	}
	return nil
}
