package operate

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/voxelpopuli/voxeld/cmd/voxeld/internal/admin"
	"github.com/voxelpopuli/voxeld/cmd/voxeld/internal/cli"
	"github.com/voxelpopuli/voxeld/gameserver"
)

// This file holds the commands that query a running node over its admin socket.

func newInvite() *cobra.Command {
	return newQuery("invite", "Print a join token for another node of this world", "/invite",
		func(w io.Writer, a admin.Invite) { fmt.Fprintln(w, a.Token) })
}

func newStatus() *cobra.Command {
	return newQuery("status", "Show the status of this node", "/status", func(w io.Writer, a admin.Status) {
		fmt.Fprintf(w, "world\t%s (%s)\n", a.World, a.WorldID[:12])
		fmt.Fprintf(w, "version\t%s\n", a.Version)
		fmt.Fprintf(w, "peer id\t%s\n", a.Peer)
		fmt.Fprintf(w, "catalog on\t%s\n", catalogText(a))
		if a.Draining {
			fmt.Fprintf(w, "state\tdraining: moving its players to other nodes, then stopping\n")
		}
		fmt.Fprintf(w, "uptime\t%v\n", a.Uptime.Round(time.Second))
		fmt.Fprintf(w, "play at\thttp://%s\n", cli.Browsable(a.HTTP))
		fmt.Fprintf(w, "game address\t%s\n", a.Game)
		fmt.Fprintf(w, "peers\t%d connected\n", a.Peers)
		fmt.Fprintf(w, "regions\t%d loaded\n", a.Regions)
		fmt.Fprintf(w, "players\t%d\n", a.Players)
		if a.Damaged > 0 {
			fmt.Fprintf(w, "damaged\t%d replicas are damaged and not repaired: see the log, and run voxeld region scrub --all\n", a.Damaged)
		}
		fmt.Fprintf(w, "database\t%.1f MiB\n", float64(a.Database)/(1<<20))
	})
}

// catalogText returns the node that leads the catalog, and so can found new land.
func catalogText(a admin.Status) string {
	switch a.Catalog {
	case "":
		return "unknown"
	case a.Peer:
		return "this node"
	}
	return a.Catalog
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
	return newQuery("regions", "List the regions loaded on this node", "/regions", func(w io.Writer, all []admin.Region) {
		fmt.Fprintln(w, "REGION\tCELL\tTERM\tGATEWAYS\tPLAYERS\tEDITS")
		for _, r := range all {
			fmt.Fprintf(w, "%s\t%s\t%d\t%d\t%d\t%d\n", r.ID, r.Cell, r.Term, r.Links, r.Bodies, r.Edits)
		}
	})
}

func newPlayers() *cobra.Command {
	return newQuery("players", "List the players connected to this node", "/players", func(w io.Writer, all []gameserver.Player) {
		fmt.Fprintln(w, "PLAYER\tGUEST\tX\tY\tZ\tID")
		for _, p := range all {
			fmt.Fprintf(w, "%s\t%v\t%.1f\t%.1f\t%.1f\t%s\n", p.Name, p.Guest, p.Pose.X, p.Pose.Y, p.Pose.Z, p.ID)
		}
	})
}
