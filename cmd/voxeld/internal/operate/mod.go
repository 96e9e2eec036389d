package operate

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/voxelpopuli/voxeld/cmd/voxeld/internal/admin"
	"github.com/voxelpopuli/voxeld/cmd/voxeld/internal/cli"
	"github.com/voxelpopuli/voxeld/mod"
)

// changesHelp explains what can be granted.
const changesHelp = "Changes are events=KIND,… and blocks=BLOCK,… (or all) that it may have, area=X1,Z1:X2,Z2 in blocks (or all), and\n" +
	"rate=COUNT, the blocks that it may change in a minute in each region. They take effect on all nodes within five\n" +
	"seconds. Only nodes that give out tokens (voxeld peers) may do that."

// Mods returns the commands below voxeld mod that concern the mods of the world.
func Mods() []*cobra.Command {
	add := &cobra.Command{
		Use: "add PATH [CHANGE…]", Short: "Add a mod, a folder or a zip file, or another version of it", Args: cobra.MinimumNArgs(1),
		Long:    "Adds a mod: the world grants it what its mod.toml asks for, with the changes, instead of what it was granted before.\n" + changesHelp,
		Example: "  voxeld mod add lamps\n  voxeld mod add lamps.zip area=-64,-64:64,64 rate=100",
	}
	cli.OnNode(add, func(c *cobra.Command, args []string, socket string) error {
		packed, err := readMod(args[0])
		if err != nil {
			return err
		}
		response, err := admin.Send(c.Context(), socket, "/mods?"+url.Values{"changes": {strings.Join(args[1:], " ")}}.Encode(), packed)
		if err != nil {
			return err
		}
		var answer admin.Text
		if err := errors.Join(json.NewDecoder(response.Body).Decode(&answer), response.Body.Close()); err != nil {
			return fmt.Errorf("add the mod: %w", err)
		}
		return showText(c, answer)
	})
	list := newQuery("list", "List the mods of the world, and what they are granted", "/mods", func(w io.Writer, all []admin.Mod) {
		fmt.Fprintln(w, "MOD\tVERSION\tSTATE\tGRANT")
		for _, m := range all {
			state := "on"
			if m.Suspended {
				state = "suspended"
			}
			if m.Missing != "" {
				state += ": " + m.Missing
			}
			fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", m.Name, cmp.Or(m.Version, "-"), state, m.Grant)
		}
	})
	list.Example = "  voxeld mod list\n  voxeld mod list --data-dir /var/lib/voxeld --json"
	remove := &cobra.Command{
		Use: "remove NAME", Short: "Remove a mod", Args: cobra.ExactArgs(1), Example: "  voxeld mod remove lamps",
		Long: "Removes a mod from the world. The blocks that it has put stay.",
	}
	cli.OnNode(remove, func(c *cobra.Command, args []string, socket string) error {
		return printText(c, socket, "/policy?"+url.Values{"text": {mod.RevokeCommand + " " + args[0]}}.Encode())
	})
	return []*cobra.Command{
		add, list, remove,
		newGrant("set NAME CHANGE…", "Change what a mod is granted", "set lamps rate=100 area=all", cobra.MinimumNArgs(2)),
		newGrant("suspend NAME", "Suspend a mod everywhere", "suspend lamps", cobra.ExactArgs(1), "off"),
		newGrant("resume NAME", "Let a suspended mod go on, also in regions that have suspended it", "resume lamps", cobra.ExactArgs(1), "on"),
	}
}

// newGrant returns a command that changes the grant of a mod.
func newGrant(use, short, example string, args cobra.PositionalArgs, changes ...string) *cobra.Command {
	c := &cobra.Command{Use: use, Short: short, Long: short + ".\n" + changesHelp, Example: "  voxeld mod " + example, Args: args}
	cli.OnNode(c, func(c *cobra.Command, args []string, socket string) error {
		return printText(c, socket, "/mods/grant?"+url.Values{"name": {args[0]}, "changes": {strings.Join(append(args[1:], changes...), " ")}}.Encode())
	})
	return c
}

// readMod returns the archive of a mod, which is a folder or a zip file.
func readMod(path string) ([]byte, error) {
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return nil, err
	case info.IsDir():
		return mod.Pack(os.DirFS(path))
	case info.Size() > mod.MaxPacked:
		return nil, fmt.Errorf("%s has %d bytes, and at most %d are allowed", path, info.Size(), mod.MaxPacked)
	}
	return os.ReadFile(path)
}
