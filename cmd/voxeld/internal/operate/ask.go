package operate

import (
	"cmp"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/voxelpopuli/voxeld/cmd/voxeld/internal/admin"
	"github.com/voxelpopuli/voxeld/gameserver"
)

// This file holds the commands that query a running node over its admin socket.

func newRegions() *cobra.Command {
	return newAreaQuery("regions", "List the regions loaded on this node, or all in an area", "list all regions there, wherever they are led",
		"/regions", "/area/regions", func(w io.Writer, all []admin.Region) {
			fmt.Fprintln(w, "REGION\tCELL\tTERM\tGATEWAYS\tPLAYERS\tEDITS\tLOAD\tNEXT")
			for _, r := range all {
				load := "-" // it is led elsewhere
				if r.Load != nil {
					load = strings.TrimSpace(fmt.Sprintf("%.0f %% %s", 100**r.Load, r.LoadKind))
				}
				fmt.Fprintf(w, "%s\t%s\t%d\t%d\t%d\t%d\t%s\t%s\n", r.ID, r.Cell, r.Term, r.Links, r.Bodies, r.Edits, load, cmp.Or(r.Next, "-"))
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
