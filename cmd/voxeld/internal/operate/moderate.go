package operate

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/voxelpopuli/voxeld/cmd/voxeld/internal/admin"
	"github.com/voxelpopuli/voxeld/cmd/voxeld/internal/cli"
	"github.com/voxelpopuli/voxeld/player"
	"github.com/voxelpopuli/voxeld/policy"
	"github.com/voxelpopuli/voxeld/policy/sanction"
)

// This file holds the commands that concern players: those of the chat, for operators, and lists.

// Moderation returns the commands that concern players.
func Moderation() []*cobra.Command {
	all := []*cobra.Command{newPlayers(), newOwner(), newRoles(), newBans(), newClaims(), newAudit(), newService()}
	for _, of := range policy.ForOperators() {
		all = append(all, newPolicyCommand(of))
	}
	return all
}

// newPolicyCommand returns a command of the chat as one of the command line.
func newPolicyCommand(of policy.Command) *cobra.Command {
	c := &cobra.Command{
		Use: of.Name + " " + of.Usage, Short: strings.ToUpper(of.Help[:1]) + of.Help[1:], Example: "  voxeld " + of.Example,
		Long: strings.ToUpper(of.Help[:1]) + of.Help[1:] + ". It takes effect on all nodes\nwithin two seconds. Only nodes that give out tokens (voxeld peers) may do that.",
	}
	cli.OnNode(c, func(c *cobra.Command, args []string, socket string) error {
		return printText(c, socket, "/policy?"+url.Values{"text": {strings.Join(append([]string{of.Name}, args...), " ")}}.Encode())
	})
	return c
}

// PositionsLast moves the arguments of a command of the chat behind "--" if one of them is a position that looks like a
// flag, such as -50,0,-50.
func PositionsLast(args []string) []string {
	negative := func(arg string) bool { return len(arg) > 1 && arg[0] == '-' && arg[1] >= '0' && arg[1] <= '9' }
	if len(args) == 0 || slices.Contains(args, "--") || !slices.ContainsFunc(args, negative) ||
		!slices.ContainsFunc(policy.ForOperators(), func(c policy.Command) bool { return c.Name == args[0] }) {
		return args
	}
	flags, positions := args[:1:1], []string{"--"}
	for i := 1; i < len(args); i++ {
		switch arg := args[i]; {
		case !strings.HasPrefix(arg, "--"):
			positions = append(positions, arg)
		case strings.Contains(arg, "=") || arg == "--help" || i+1 == len(args):
			flags = append(flags, arg)
		default: // all other flags of these commands have a value
			flags = append(flags, arg, args[i+1])
			i++
		}
	}
	return append(flags, positions...)
}

// printText sends a request, and prints the text of the answer.
func printText(c *cobra.Command, socket, path string) error {
	var answer admin.Text
	if err := admin.Post(c.Context(), socket, path, &answer); err != nil {
		return err
	}
	return showText(c, answer)
}

// showText prints the text of an answer.
func showText(c *cobra.Command, answer admin.Text) error {
	if answer.Error != "" {
		return errors.New(strings.Replace(answer.Error, "usage: /", "usage: voxeld ", 1))
	}
	if answer.Text != "" {
		fmt.Fprintln(c.OutOrStdout(), answer.Text)
	}
	return nil
}

func newOwner() *cobra.Command {
	c := &cobra.Command{
		Use: "owner [NAME]", Short: "Print a token with which a player becomes an owner of the world, or make one an owner",
		Long: "Without a NAME, prints a token: the first player who types /owner TOKEN into the chat of the game becomes an owner of the world, who may\n" +
			"do everything that players may. With the registered NAME or the id of a player, makes that player an owner.",
		Example: "  voxeld owner\n  voxeld owner ada", Args: cobra.MaximumNArgs(1),
	}
	cli.OnNode(c, func(c *cobra.Command, args []string, socket string) error {
		if len(args) > 0 {
			return printText(c, socket, "/policy?"+url.Values{"text": {"role " + args[0] + " owner"}}.Encode())
		}
		return printText(c, socket, "/policy/owner")
	})
	return c
}

func newRoles() *cobra.Command {
	return newQuery("roles", "List the players who have a role, and the roles that admins have defined", "/policy/roles", func(w io.Writer, all admin.Roles) {
		fmt.Fprintln(w, "PLAYER\tROLE\tID")
		for _, m := range all.Members {
			fmt.Fprintf(w, "%s\t%v\t%v\n", cmp.Or(m.Name, "-"), m.Role, m.Player)
		}
		fmt.Fprintf(w, "all others\t%v\t-\nguests\t%v\t-\n", all.Settings.Players, all.Settings.Guests)
		if len(all.Defined) > 0 {
			fmt.Fprintln(w, "\nROLE\tABOVE\tOPTIONS")
		}
		for _, d := range all.Defined {
			fmt.Fprintf(w, "%s\t%v\t%s\n", d.Name, d.Base, cmp.Or(strings.Join(d.Options(), " "), "-"))
		}
	})
}

func newBans() *cobra.Command {
	return newQuery("bans", "List the bans and mutes in force", "/policy/bans", func(w io.Writer, all []sanction.Sanction) {
		fmt.Fprintln(w, "WHO\tWHAT\tBY\tSINCE\tUNTIL\tREASON\tID")
		for _, s := range all {
			until := "lifted"
			if s.Until != 0 {
				until = stamp(s.Until)
			}
			id := "-"
			if s.Player != (player.ID{}) {
				id = s.Player.String()
			}
			fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\t%s\n", s.Target, s.Kind, s.By, stamp(s.At), until, cmp.Or(s.Reason, "-"), id)
		}
	})
}

func newClaims() *cobra.Command {
	return newQuery("claims", "List the claims: land that players keep for themselves", "/policy/claims", func(w io.Writer, all []policy.ListedClaim) {
		fmt.Fprintln(w, "CLAIM\tFROM\tTO\tBUILD\tENTER\tMEMBERS")
		may := map[bool]string{true: "all", false: "members"}
		for _, c := range all {
			fmt.Fprintf(w, "%s/%s\t%v\t%v\t%s\t%s\t%s\n", c.OwnerName, c.Name, c.Min, c.Max, may[c.Open], may[!c.Private], cmp.Or(strings.Join(c.MemberNames, ", "), "-"))
		}
	})
}

func stamp(ms int64) string { return time.UnixMilli(ms).UTC().Format(time.RFC3339) }

func newAudit() *cobra.Command {
	var asJSON bool
	last := 100
	c := &cobra.Command{
		Use: "audit", Short: "List the commands that have changed roles, bans, names and settings", Args: cli.NoArgs,
		Example: "  voxeld audit\n  voxeld audit --last 1000 --json",
	}
	cli.OnNode(c, func(c *cobra.Command, _ []string, socket string) error {
		return printQuery(c, socket, "/policy/audit?last="+strconv.Itoa(last), asJSON, func(w io.Writer, all []admin.AuditEntry) {
			fmt.Fprintln(w, "NUMBER\tTIME\tBY\tCOMMAND")
			for _, e := range all {
				fmt.Fprintf(w, "%d\t%s\t%s\t%s\n", e.Number, e.At.Format(time.RFC3339), cmp.Or(e.By, "an operator"), e.Command)
			}
		})
	})
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	c.Flags().IntVar(&last, "last", last, "the `number` of commands, the newest")
	return c
}
