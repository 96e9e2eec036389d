package operate

import (
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/dustin/go-humanize/english"
	"github.com/spf13/cobra"

	"github.com/voxelpopuli/voxeld/cmd/voxeld/internal/bundle"
	"github.com/voxelpopuli/voxeld/cmd/voxeld/internal/cli"
)

func newDebug() *cobra.Command {
	c := &cobra.Command{
		Use: "debug", Short: "Collect what is needed to look into a problem",
		Example: "  voxeld debug bundle",
		Args:    cli.NoArgs,
		RunE:    func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(newBundle())
	return c
}

func newBundle() *cobra.Command {
	o := bundle.Options{}
	c := &cobra.Command{
		Use: "bundle [FILE|-]", Short: "Write one file to attach to a report about this node",
		Long: "Writes FILE (by default voxeld-bundle-TIME.tar.gz), or to the standard output, what is needed to look into a problem: the end of\n" +
			"the log, metrics, status, doctor, peers, regions, the configuration, goroutines, profiles of processors and memory, and\n" +
			"what the machine says of itself. It takes about ten seconds, and works as far as it can if the node hangs.\n\n" +
			"It has no keys and no tokens, and names instead of IP addresses. It has names of players, and the host names and\n" +
			"paths in the configuration: look into it before you publish it.",
		Example: "  voxeld debug bundle\n  ssh node sudo voxeld debug bundle - > bundle.tar.gz",
		Args:    cobra.MaximumNArgs(1),
	}
	cli.OnNode(c, func(c *cobra.Command, args []string, socket string) (err error) {
		o.Now, o.Socket, o.Version = time.Now(), socket, c.Root().Version
		name := "voxeld-bundle-" + o.Now.UTC().Format("20060102T150405Z") + ".tar.gz"
		if len(args) == 1 {
			name = args[0]
		}
		out := c.OutOrStdout()
		if name != "-" {
			f, err := os.OpenFile(name, os.O_CREATE|os.O_WRONLY|os.O_EXCL, 0o600)
			if err != nil {
				return fmt.Errorf("create bundle: %w", err)
			}
			defer func() { err = errors.Join(err, f.Close()) }()
			out = f
		}
		missing, err := bundle.Collect(c.Context(), out, o)
		for _, part := range missing {
			fmt.Fprintln(c.ErrOrStderr(), "missing:", part)
		}
		if err != nil {
			return fmt.Errorf("write bundle: %w", err)
		}
		if name != "-" {
			fmt.Fprintln(c.OutOrStdout(), name)
		}
		if len(missing) > 0 {
			return fmt.Errorf("the bundle lacks %s", english.Plural(len(missing), "part", ""))
		}
		return nil
	})
	c.Flags().BoolVar(&o.Addresses, "addresses", false, "leave IP addresses in it, those of players among them")
	return c
}
