package main

import (
	"fmt"
	"os"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"

	"github.com/voxelpopuli/voxeld/cmd/voxeld/internal/cli"
)

// newMan returns the command that writes the manual pages of root's commands.
func newMan(root *cobra.Command) *cobra.Command {
	return &cobra.Command{
		Use: "man DIR", Short: "Write manual pages for all commands into a directory",
		Long:    "Writes a manual page for each command, such as voxeld-run.1. Their date is SOURCE_DATE_EPOCH, if set, else today.",
		Example: "  voxeld man /usr/local/share/man/man1",
		Args: func(c *cobra.Command, args []string) error {
			if len(args) != 1 {
				return cli.Usage(fmt.Errorf("%s takes one directory; see --help", c.CommandPath()))
			}
			return nil
		},
		RunE: func(_ *cobra.Command, args []string) error {
			if err := os.MkdirAll(args[0], 0o755); err != nil {
				return fmt.Errorf("write manual pages: %w", err)
			}
			root.DisableAutoGenTag = true
			header := &doc.GenManHeader{Section: "1", Source: "voxeld " + version(), Manual: "voxeld"}
			if err := doc.GenManTree(root, header, args[0]); err != nil {
				return fmt.Errorf("write manual pages: %w", err)
			}
			return nil
		},
	}
}
