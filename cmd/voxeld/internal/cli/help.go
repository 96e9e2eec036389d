package cli

import (
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"golang.org/x/term"

	"github.com/voxelpopuli/voxeld/internal/config"
)

// Groups of commands in the help.
const (
	GroupRun     = "run"
	GroupOperate = "operate"
	GroupPlayers = "players"
	GroupTest    = "test"
	GroupOther   = "other"
)

// AddGroups declares the groups of commands, in the order of the help.
func AddGroups(root *cobra.Command) {
	root.AddGroup(
		&cobra.Group{ID: GroupRun, Title: "Start a node:"},
		&cobra.Group{ID: GroupOperate, Title: "Watch and control a running node:"},
		&cobra.Group{ID: GroupPlayers, Title: "Players, roles and bans:"},
		&cobra.Group{ID: GroupTest, Title: "Measure:"},
		&cobra.Group{ID: GroupOther, Title: "Other commands:"},
	)
	root.SetHelpCommandGroupID(GroupOther)
	root.SetCompletionCommandGroupID(GroupOther)
}

// PrintUsage prints the usage of a command: examples, commands by group, and flags by the groups of package config.
func PrintUsage(c *cobra.Command) error {
	out := c.OutOrStderr()
	fmt.Fprint(out, "Usage:\n")
	if c.Runnable() {
		fmt.Fprintf(out, "  %s\n", c.UseLine())
	}
	if c.HasAvailableSubCommands() {
		fmt.Fprintf(out, "  %s COMMAND\n", c.CommandPath())
	}
	if c.HasExample() {
		fmt.Fprintf(out, "\nExamples:\n%s\n", strings.TrimRight(c.Example, "\n"))
	}
	printCommands(out, c)
	printFlags(out, c)
	if c.HasAvailableSubCommands() {
		fmt.Fprintf(out, "\n%s COMMAND --help explains a command.\n", c.CommandPath())
	}
	return nil
}

func printCommands(out io.Writer, c *cobra.Command) {
	groups := c.Groups()
	if c.HasAvailableSubCommands() && !c.AllChildCommandsHaveGroup() {
		groups = append(groups, &cobra.Group{Title: "Commands:"}) // of those without a group
	}
	for _, g := range groups {
		fmt.Fprintf(out, "\n%s\n", g.Title)
		for _, sub := range c.Commands() {
			if sub.GroupID == g.ID && sub.IsAvailableCommand() {
				fmt.Fprintf(out, "  %-*s %s\n", sub.NamePadding(), sub.Name(), sub.Short)
			}
		}
	}
}

// manyOptions is the number of options from which on the help groups them.
const manyOptions = 10

func printFlags(out io.Writer, c *cobra.Command) {
	own := pflag.NewFlagSet("", pflag.ContinueOnError)
	own.SortFlags = false
	options := 0
	c.LocalFlags().VisitAll(func(f *pflag.Flag) {
		if _, ok := config.Find(f.Name); ok {
			options++
		}
	})
	grouped := options >= manyOptions
	c.LocalFlags().VisitAll(func(f *pflag.Flag) {
		if _, ok := config.Find(f.Name); !ok || !grouped {
			own.AddFlag(f)
		}
	})
	if grouped && c.HasParent() {
		for _, g := range config.Groups {
			set := pflag.NewFlagSet("", pflag.ContinueOnError)
			set.SortFlags = false
			for _, o := range g.Options {
				if f := c.LocalFlags().Lookup(o.Name); f != nil {
					set.AddFlag(f)
				}
			}
			fmt.Fprintf(out, "\n%s:\n%s", g.Name, set.FlagUsagesWrapped(width()))
		}
	}
	fmt.Fprintf(out, "\nFlags:\n%s", own.FlagUsagesWrapped(width()))
	if grouped && !c.HasParent() {
		fmt.Fprint(out, "  and those of voxeld run: see voxeld run --help\n")
	}
}

// width returns the number of columns for the help.
func width() int {
	const least, most, unknown = 60, 120, 100
	columns, _, err := term.GetSize(int(os.Stdout.Fd()))
	if err != nil {
		return unknown
	}
	return min(max(columns, least), most)
}
