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

	"github.com/dustin/go-humanize/english"
	"github.com/spf13/cobra"

	"github.com/voxelpopuli/voxeld/cmd/voxeld/internal/admin"
	"github.com/voxelpopuli/voxeld/cmd/voxeld/internal/cli"
)

// This file holds the commands that concern who may run nodes of the world.

func newInvite() *cobra.Command {
	var operator string
	var uses int
	var expires time.Duration
	var issuer, list, asJSON bool
	c := &cobra.Command{
		Use: "invite", Short: "Print a token with which another node joins this world", Args: cli.NoArgs,
		Long: "Prints a token for voxeld run --join. The token holds a secret: whoever has it can run a node of this world until it is used\n" +
			"up or expires. Only issuers give out tokens: the node that created the world, and nodes that it has invited with --issuer.\n\n" +
			"With --list it lists those of this node that still admit nodes, by their ids: voxeld peers revoke --token ID makes one useless.",
		Example: "  voxeld invite\n  voxeld invite --uses 5 --expires 168h --operator Ada\n  voxeld invite --list",
	}
	cli.OnNode(c, func(c *cobra.Command, _ []string, socket string) error {
		if list {
			return printQuery(c, socket, "/invitations", asJSON, listInvitations)
		}
		if expires <= 0 {
			return cli.Usage(fmt.Errorf("--expires %v: the token could never be used; want a time such as 24h", expires))
		}
		var answer admin.Invite
		query := url.Values{"uses": {strconv.Itoa(uses)}, "expires": {expires.String()}, "operator": {operator}, "issuer": {strconv.FormatBool(issuer)}}
		if err := admin.Post(c.Context(), socket, "/invite?"+query.Encode(), &answer); err != nil {
			return err
		}
		if answer.Error != "" {
			return errors.New(answer.Error)
		}
		fmt.Fprintln(c.OutOrStdout(), answer.Token)
		return nil
	})
	c.Flags().IntVar(&uses, "uses", 1, "number of nodes that the token admits, up to 256; 0 means any number")
	c.Flags().DurationVar(&expires, "expires", 24*time.Hour, "how long it can be used")
	c.Flags().BoolVar(&list, "list", false, "list the tokens of this node that still admit nodes, without their secrets")
	c.Flags().BoolVar(&asJSON, "json", false, "with --list: print JSON")
	c.Flags().BoolVar(&issuer, "issuer", false, "the nodes may give out tokens and revoke nodes, too; for machines that you trust like this one")
	c.Flags().StringVar(&operator, "operator", "", "`name` of who runs the nodes (default the founder)")
	return c
}

func listInvitations(w io.Writer, all []admin.Invitation) {
	fmt.Fprintln(w, "TOKEN\tEXPIRES\tUSED\tOPERATOR\tISSUER")
	for _, i := range all {
		used := "any number of times"
		if i.Uses > 0 {
			used = fmt.Sprintf("%d of %d", i.Used, i.Uses)
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\n", i.Token, i.Expires.UTC().Format(time.RFC3339), used, i.Operator, yesNo(i.Issuer))
	}
}

func newPeers() *cobra.Command {
	c := newQuery("peers", "List the known nodes of the world, revoke or forget one", "/peers", func(w io.Writer, all []admin.Peer) {
		fmt.Fprintln(w, "PEER\tCONNECTED\tLATENCY\tOPERATOR\tISSUER\tCERTIFICATE\tADDRESSES")
		for _, p := range all {
			expires := "-"
			if p.Excluded {
				expires = "revoked"
			} else if !p.Expires.IsZero() {
				expires = "until " + p.Expires.UTC().Format(time.DateOnly)
			}
			fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\t%s\n", p.Peer, yesNo(p.Connected), p.Latency, cmp.Or(p.Operator, "-"), yesNo(p.Issuer), expires, strings.Join(p.Addrs, " "))
		}
	})
	c.AddCommand(newRevoke(), newRevoked(), newForget(), newClose(), newAppoint(), newDismiss(), newReplaceRoot())
	return c
}

func yesNo(b bool) string {
	if b {
		return "yes"
	}
	return "no"
}

func newRevoke() *cobra.Command {
	var operator, token, reason string
	var lift, force bool
	c := &cobra.Command{
		Use: "revoke [NODE]", Short: "Exclude nodes from the world, everywhere and at once",
		Long: "Excludes a node, all nodes of an operator, or a token and all nodes that it admitted. All nodes close their connections to\n" +
			"them within seconds, and replace what they held. Only issuers may do that. If regions would lose the majority of their members,\n" +
			"it names them and does nothing without --force: until they are recovered (voxeld region recover), nothing can be changed there.\n\n" +
			"A revoked issuer takes the nodes that it admitted along. Name it by its id, and run the command on the node that has root.key in its\n" +
			"data directory: that also dismisses it. Elsewhere it stays an issuer, which can still revoke others, until voxeld peers dismiss.\n\n" +
			"No node excludes itself, by its operator or token either: run the command on another issuer.",
		Example: "  voxeld peers revoke 12D3KooW…\n  voxeld peers revoke --operator Ada --reason \"left the project\"\n  voxeld peers revoke --lift 12D3KooW…",
		Args:    cobra.MaximumNArgs(1),
	}
	cli.OnNode(c, func(c *cobra.Command, args []string, socket string) error {
		named := [][2]string{{admin.RevokeOperator, operator}, {admin.RevokeToken, token}}
		if len(args) > 0 {
			named = append(named, [2]string{admin.RevokeNode, args[0]})
		}
		named = slices.DeleteFunc(named, func(n [2]string) bool { return n[1] == "" })
		if len(named) != 1 {
			return cli.Usage(errors.New("name one node, or use --operator or --token"))
		}
		return changeAccess(c, socket, "/peers/revoke", url.Values{
			"kind": {named[0][0]}, "subject": {named[0][1]}, "reason": {reason}, "lift": {strconv.FormatBool(lift)}, "force": {strconv.FormatBool(force)},
		})
	})
	c.Flags().StringVar(&operator, "operator", "", "exclude all nodes of the operator with this `name`, also future ones")
	c.Flags().StringVar(&token, "token", "", "exclude all nodes admitted with this `token`, or its id, and make it useless")
	c.Flags().StringVar(&reason, "reason", "", "`text` that the excluded nodes log")
	c.Flags().BoolVar(&lift, "lift", false, "lift an earlier revocation; an issuer that it dismissed must be appointed again")
	c.Flags().BoolVar(&force, "force", false, "revoke even if regions lose the majority of their members, or that cannot be found out")
	return c
}

func newForget() *cobra.Command {
	c := &cobra.Command{
		Use: "forget NODE", Short: "Give up a node that does not come back", Args: cobra.ExactArgs(1),
		Long: "Has all nodes give up one that is gone for good: regions and the catalog remove it at once, also where nobody takes its place, and its\n" +
			"addresses are forgotten. Members that are silent, or whose disk hangs, for longer than replace_after are replaced, or leave while\n" +
			"three others are up, by themselves: the command is for the others, such as the third of three nodes. Two members are then left, and both are needed.\n\n" +
			"It fails if the node is connected, or if regions would lose the majority of their members, which it names. Only issuers may do that.\n" +
			"A node that comes back all the same is a member like any other again, with a new copy.\n\n" +
			"Nodes remember the command until they stop, and regions act on it within seconds. Where one could not, because a node was restarted\n" +
			"meanwhile or most members did not answer, voxeld doctor still names the node: give the command again.",
		Example: "  voxeld peers forget 12D3KooW…",
	}
	cli.OnNode(c, func(c *cobra.Command, args []string, socket string) error {
		var answer admin.Forgotten
		if err := admin.Post(c.Context(), socket, "/peers/forget?"+url.Values{"node": {args[0]}}.Encode(), &answer); err != nil {
			return err
		}
		if answer.Error != "" {
			return errors.New(answer.Error)
		}
		fmt.Fprintf(c.OutOrStdout(), "%s, the catalog included, drop it within seconds. If voxeld doctor names it later, repeat this.\n", english.Plural(answer.Regions, "region", ""))
		if len(answer.Missed) > 0 {
			return fmt.Errorf("not reached: %s; run the command again when they answer", strings.Join(answer.Missed, ", "))
		}
		return nil
	})
	return c
}

func newClose() *cobra.Command {
	c := &cobra.Command{
		Use: "close", Short: "Close an open world, so that its nodes need certificates", Args: cli.NoArgs,
		Long: "Gives a world that was created open a root key. Run it on one node, and restart that node: from then on it talks only to nodes that\n" +
			"have a certificate. Then restart the other nodes, one after the other, with --join and a token that voxeld invite prints on the first.\n" +
			"Land without a majority of its members on either side waits until they are restarted; nothing is lost, and roles and bans hold.",
		Example: "  voxeld peers close",
	}
	cli.OnNode(c, func(c *cobra.Command, _ []string, socket string) error {
		if err := changeAccess(c, socket, "/peers/close", nil); err != nil {
			return err
		}
		fmt.Fprintln(c.OutOrStdout(), "The root key is made: keep a copy of root.key, which is in the data directory of this node.\n"+
			"Now restart this node. Then, for each other node: voxeld invite here, and restart that node with --join TOKEN.")
		return nil
	})
	return c
}

// changeAccess asks the node for a change of who decides who may run nodes.
func changeAccess(c *cobra.Command, socket, path string, query url.Values) error {
	var answer admin.AccessChange
	if err := admin.Post(c.Context(), socket, path+"?"+query.Encode(), &answer); err != nil {
		return err
	}
	if answer.Error != "" {
		return errors.New(answer.Error)
	}
	return nil
}

func newAppoint() *cobra.Command {
	c := &cobra.Command{
		Use: "appoint NODE", Short: "Let a node give out tokens and revoke nodes, too", Args: cobra.ExactArgs(1),
		Long: "Makes a node of the world an issuer: it gives out tokens, renews certificates, and revokes nodes. For machines that you trust\n" +
			"like this one. Run it on the node that has root.key in its data directory.",
		Example: "  voxeld peers appoint 12D3KooW…",
	}
	cli.OnNode(c, func(c *cobra.Command, args []string, socket string) error {
		return changeAccess(c, socket, "/peers/appoint", url.Values{"node": args})
	})
	return c
}

func newDismiss() *cobra.Command {
	c := &cobra.Command{
		Use: "dismiss NODE", Short: "Let a node give out tokens no more", Args: cobra.ExactArgs(1),
		Long: "Makes an issuer an ordinary node. It stays in the world, and so do the nodes that it admitted: they get certificates of another issuer\n" +
			"within a minute, or within 30 days if they are down. Its tokens admit nobody any more. If the machine cannot be trusted any more,\n" +
			"use voxeld peers revoke instead. Run either on the node that has root.key in its data directory.",
		Example: "  voxeld peers appoint 12D3KooWNEW…\n  voxeld peers dismiss 12D3KooWOLD…",
	}
	cli.OnNode(c, func(c *cobra.Command, args []string, socket string) error {
		return changeAccess(c, socket, "/peers/dismiss", url.Values{"node": args})
	})
	return c
}

func newReplaceRoot() *cobra.Command {
	c := &cobra.Command{
		Use: "replace-root", Short: "Replace the world's root key by a new one", Args: cli.NoArgs,
		Long: "Makes a new root key, which counts from now on instead of the one in root.key. Run it on the node that has that file. The former key is\n" +
			"kept as root.key.old: backups from before are restored with it.",
		Example: "  voxeld peers replace-root",
	}
	cli.OnNode(c, func(c *cobra.Command, _ []string, socket string) error {
		if err := changeAccess(c, socket, "/peers/replace-root", nil); err != nil {
			return err
		}
		fmt.Fprintln(c.OutOrStdout(), "The root key is replaced: keep a copy of the new root.key, which is in the data directory of this node, and remove copies of the\n"+
			"former one from other nodes. Make a full backup now: those from before can be restored with the former key only (root.key.old).")
		return nil
	})
	return c
}

func newRevoked() *cobra.Command {
	c := newQuery("revoked", "List the revocations in force", "/peers/revoked", func(w io.Writer, all []admin.Revocation) {
		fmt.Fprintln(w, "WHAT\tWHO\tSINCE\tBY\tREASON")
		for _, r := range all {
			fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\n", r.Kind, r.Subject, r.At.UTC().Format(time.RFC3339), r.By, r.Reason)
		}
	})
	c.Example = "  voxeld peers revoked\n  voxeld peers revoked --json"
	return c
}
