// Command voxeld runs a node of one shared, editable voxel world: a Kademlia node, a host of regions and a
// gateway for players in one process. README.md explains how to use it.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"regexp"
	"slices"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/voxelpopuli/voxeld/cmd/voxeld/internal/backupcmd"
	"github.com/voxelpopuli/voxeld/cmd/voxeld/internal/cli"
	"github.com/voxelpopuli/voxeld/cmd/voxeld/internal/configcmd"
	"github.com/voxelpopuli/voxeld/cmd/voxeld/internal/historycmd"
	"github.com/voxelpopuli/voxeld/cmd/voxeld/internal/joining"
	"github.com/voxelpopuli/voxeld/cmd/voxeld/internal/modcmd"
	"github.com/voxelpopuli/voxeld/cmd/voxeld/internal/operate"
	"github.com/voxelpopuli/voxeld/cmd/voxeld/internal/top"
	"github.com/voxelpopuli/voxeld/internal/backup"
	"github.com/voxelpopuli/voxeld/internal/kv"
	"github.com/voxelpopuli/voxeld/store"
	"github.com/voxelpopuli/voxeld/wire"
)

// Exit codes, for scripts and supervisors.
const (
	exitFailed = 1 // any other error; a restart may help
	exitUsage  = 2 // the command line or the configuration is wrong
	exitData   = 3 // the data directory is in use, damaged or of another world; or a backup is damaged
	exitLacks  = 4 // a backup is not complete
)

func main() { os.Exit(run()) }

func run() int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop) // a second Ctrl-C ends the process at once
	root := newRoot()
	root.SetArgs(cellsLast(operate.PositionsLast(os.Args[1:])))
	if err := root.ExecuteContext(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "voxeld:", wire.ErrorText(err))
		return exitCode(err)
	}
	return 0
}

func exitCode(err error) int {
	switch {
	case errors.As(err, new(cli.UsageError)):
		return exitUsage
	case errors.Is(err, store.ErrInUse), errors.Is(err, kv.ErrDamaged), errors.Is(err, store.ErrFormat),
		errors.Is(err, joining.ErrOtherWorld), errors.Is(err, errDatabaseGone), errors.Is(err, errRestoring),
		errors.Is(err, errNotEmpty), errors.Is(err, backup.ErrDamaged), errors.Is(err, backup.ErrNoBackup):
		return exitData
	case errors.Is(err, backupcmd.ErrIncomplete):
		return exitLacks
	}
	return exitFailed
}

func newRoot() *cobra.Command {
	running := newRun()
	root := &cobra.Command{
		Use:   "voxeld",
		Short: "A node of one shared, editable voxel world",
		Long: "voxeld runs a node of one shared, editable voxel world. The node hosts a share of the land\n" +
			"and serves players. Without a command, voxeld does what voxeld run does: it starts the world in\n" +
			"the data directory, or creates one, and prints the URL to open.",
		Example: "  voxeld                                  start the world in ./data, or create one\n" +
			"  voxeld run --join vx2…                  join a world, with a token that voxeld invite prints\n" +
			"  voxeld status                           show how this node is doing",
		Version:       versionDetails(), // no version template: see TestNoTemplatesLinked
		Args:          cli.NoArgs,
		RunE:          running.RunE,
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	root.Flags().AddFlagSet(running.Flags())
	root.SetFlagErrorFunc(func(c *cobra.Command, err error) error {
		return cli.FlagError(c, err)
	})
	root.SetUsageFunc(cli.PrintUsage)
	cli.AddGroups(root)
	for group, commands := range map[string][]*cobra.Command{
		cli.GroupRun:     {running, newInit(), configcmd.New()},
		cli.GroupOperate: append(append(operate.Commands(), backupcmd.Commands(restoreWorld)...), top.New()),
		cli.GroupPlayers: append(operate.Moderation(), historycmd.Commands()...),
		cli.GroupOther:   {modcmd.New(operate.Mods()), newMan(root)},
		cli.GroupTest:    {newBot()},
	} {
		for _, c := range commands {
			c.GroupID = group
			root.AddCommand(c)
		}
	}
	cli.MarkArgs(root)
	return root
}

// cellsLast moves cells that look like flags behind "--", so that they can be typed as they are printed.
func cellsLast(args []string) []string {
	var cells []string
	rest := slices.DeleteFunc(slices.Clone(args), func(arg string) bool {
		if !negativeCell.MatchString(arg) {
			return false
		}
		cells = append(cells, arg)
		return true
	})
	if len(cells) == 0 || slices.Contains(rest, "--") {
		return args
	}
	return append(append(rest, "--"), cells...)
}

// negativeCell matches a cell west of the world's origin, which looks like a flag.
var negativeCell = regexp.MustCompile(`^-[0-9]+,-?[0-9]+/[01]*$`)
