// Command voxeld runs a node of one shared, editable voxel world: a Kademlia node, a host of regions and a
// gateway for players in one process. README.md explains how to use it.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"runtime/debug"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/voxelpopuli/voxeld/kv"
	"github.com/voxelpopuli/voxeld/store"
)

// Exit codes, for scripts and supervisors.
const (
	exitFailed = 1 // any other error
	exitUsage  = 2 // the command line or the configuration is wrong
	exitData   = 3 // the data directory is in use, damaged, full or of another world
)

func main() { os.Exit(run()) }

func run() int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop) // a second Ctrl-C ends the process at once
	root := newRoot()
	root.SetArgs(cellsLast(os.Args[1:]))
	if err := root.ExecuteContext(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "voxeld:", err)
		return exitCode(err)
	}
	return 0
}

func exitCode(err error) int {
	switch {
	case errors.As(err, new(usageError)):
		return exitUsage
	case errors.Is(err, store.ErrInUse), errors.Is(err, kv.ErrDamaged), errors.Is(err, store.ErrFormat),
		errors.Is(err, store.ErrFull), errors.Is(err, errOtherWorld), errors.Is(err, errDatabaseGone):
		return exitData
	}
	return exitFailed
}

// usageError is an error in the command line or the configuration.
type usageError struct{ error }

func (e usageError) Unwrap() error { return e.error }

func newRoot() *cobra.Command {
	running := newRun()
	root := &cobra.Command{
		Use:   "voxeld",
		Short: "A node of one shared, editable voxel world",
		Long: "voxeld runs a node of one shared, editable voxel world. The node hosts a share of the land\n" +
			"and serves players. Without a command, voxeld does what voxeld run does: it starts the world in\n" +
			"the data directory, or creates one, and prints the URL to open.",
		Version:       version(),
		Args:          noArgs,
		RunE:          running.RunE,
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	root.Flags().AddFlagSet(running.Flags())
	root.SetFlagErrorFunc(func(c *cobra.Command, err error) error {
		return usageError{fmt.Errorf("%w; see %s --help", err, c.CommandPath())}
	})
	root.SuggestionsMinimumDistance = 2
	root.CompletionOptions.HiddenDefaultCmd = true
	root.AddCommand(running, newInit(), newInvite(), newStatus(), newPeers(), newRegions(), newPlayers(), newDoctor(),
		newDrain(), newRegion(), newBot(), newSim(), newHealthcheck())
	return root
}

// noArgs refuses arguments. The root command suggests a command instead.
func noArgs(c *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	if c.HasParent() {
		return usageError{fmt.Errorf("%s takes no arguments, but got %q; see %s --help", c.CommandPath(), args[0], c.CommandPath())}
	}
	likely := ""
	if all := c.SuggestionsFor(args[0]); len(all) > 0 {
		likely = fmt.Sprintf(" (did you mean %s?)", all[0])
	}
	return usageError{fmt.Errorf("there is no command %q%s; see %s --help", args[0], likely, c.CommandPath())}
}

// buildVersion is set by the linker (see Makefile). It is empty in builds without a version.
var buildVersion string

// version returns buildVersion, else the commit that was built, else the module's version.
func version() string {
	if buildVersion != "" {
		return buildVersion
	}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" {
			return s.Value[:min(12, len(s.Value))]
		}
	}
	return info.Main.Version
}
