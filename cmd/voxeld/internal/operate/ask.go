package operate

import (
	"errors"
	"fmt"
	"io"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/voxelpopuli/voxeld/cmd/voxeld/internal/admin"
	"github.com/voxelpopuli/voxeld/cmd/voxeld/internal/cli"
	"github.com/voxelpopuli/voxeld/gameserver"
)

// This file holds the commands that query a running node over its admin socket.

func newInvite() *cobra.Command {
	var operator string
	var uses int
	var expires time.Duration
	var issuer bool
	c := &cobra.Command{
		Use: "invite", Short: "Print a token with which another node joins this world", Args: cli.NoArgs,
		Long: "Prints a token for voxeld run --join. The token holds a secret: whoever has it can run a node of this world until it is used\n" +
			"up or expires. Only issuers give out tokens: the node that created the world, and nodes that it has invited with --issuer.",
		Example: "  voxeld invite\n  voxeld invite --uses 5 --expires 168h --operator Ada",
	}
	cli.OnNode(c, func(c *cobra.Command, _ []string, socket string) error {
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
	c.Flags().BoolVar(&issuer, "issuer", false, "the nodes may give out tokens and revoke nodes, too; for machines that you trust like this one")
	c.Flags().StringVar(&operator, "operator", "", "`name` of who runs the nodes (default the founder)")
	return c
}

func newPeers() *cobra.Command {
	return newQuery("peers", "List the known nodes of the world", "/peers", func(w io.Writer, all []admin.Peer) {
		fmt.Fprintln(w, "PEER\tCONNECTED\tLATENCY\tADDRESSES")
		for _, p := range all {
			connected := "no"
			if p.Connected {
				connected = "yes"
			}
			fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", p.Peer, connected, p.Latency, strings.Join(p.Addrs, " "))
		}
	})
}

func newRegions() *cobra.Command {
	return newAreaQuery("regions", "List the regions loaded on this node, or all in an area", "list all regions there, wherever they are led",
		"/regions", "/area/regions", func(w io.Writer, all []admin.Region) {
			fmt.Fprintln(w, "REGION\tCELL\tTERM\tGATEWAYS\tPLAYERS\tEDITS")
			for _, r := range all {
				fmt.Fprintf(w, "%s\t%s\t%d\t%d\t%d\t%d\n", r.ID, r.Cell, r.Term, r.Links, r.Bodies, r.Edits)
			}
		}, printAreaRegions)
}

func newPlayers() *cobra.Command {
	return newAreaQuery("players", "List the players connected to this node, or all in an area", "list all players there, wherever they are connected",
		"/players", "/area/players", func(w io.Writer, all []gameserver.Player) {
			fmt.Fprintln(w, "PLAYER\tGUEST\tX\tY\tZ\tID")
			for _, p := range all {
				fmt.Fprintf(w, "%s\t%v\t%.1f\t%.1f\t%.1f\t%s\n", p.Name, p.Guest, p.Pose.X, p.Pose.Y, p.Pose.Z, p.ID)
			}
		}, printAreaPlayers)
}
