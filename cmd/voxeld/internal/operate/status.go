package operate

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/dustin/go-humanize/english"
	"github.com/spf13/cobra"

	"github.com/voxelpopuli/voxeld/cmd/voxeld/internal/admin"
	"github.com/voxelpopuli/voxeld/cmd/voxeld/internal/cli"
	"github.com/voxelpopuli/voxeld/region"
)

const (
	healthy = "healthy"
	// askAgain is the pause between two looks of status --wait.
	askAgain = time.Second
)

func newStatus() *cobra.Command {
	var wait string
	var asJSON bool
	var timeout time.Duration
	c := &cobra.Command{
		Use: "status", Short: "Show the status of this node, and the regions by state",
		Long: "Shows the status of this node, and how many regions are in which state: those of which this node holds a\n" +
			"replica, and if it holds the catalog, those of the whole world. With --wait healthy it waits until the node\n" +
			"serves and all of these regions are healthy; the exit code is 1 if that takes longer than --timeout.",
		Example: "  voxeld status\n  voxeld status --wait healthy --timeout 2m",
		Args:    cli.NoArgs,
	}
	cli.OnNode(c, func(c *cobra.Command, _ []string, socket string) error {
		if wait != "" && wait != healthy {
			return cli.Usage(fmt.Errorf("--wait %s: the only state to wait for is %s", wait, healthy))
		}
		var answer admin.Status
		var err error
		if wait == "" {
			err = admin.Get(c.Context(), socket, "/status", &answer)
		} else {
			answer, err = awaitHealthy(c.Context(), socket, timeout)
		}
		if err != nil {
			return err
		}
		if asJSON {
			return cli.PrintJSON(c.OutOrStdout(), answer)
		}
		return printStatus(c.OutOrStdout(), answer)
	})
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	c.Flags().StringVar(&wait, "wait", "", "`state` to wait for: "+healthy)
	c.Flags().DurationVar(&timeout, "timeout", 5*time.Minute, "with --wait: how long to wait")
	return c
}

// awaitHealthy asks the node until it is healthy. The error says what is missing when time is up.
func awaitHealthy(ctx context.Context, socket string, timeout time.Duration) (admin.Status, error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	missing := errors.New("the node has not answered yet")
	for {
		var answer admin.Status
		err := admin.Get(ctx, socket, "/status", &answer)
		if err == nil {
			all := lacks(answer)
			if len(all) == 0 {
				return answer, nil
			}
			err = errors.New(strings.Join(all, "; "))
		}
		if ctx.Err() == nil {
			missing = err
		}
		select {
		case <-time.After(askAgain):
		case <-ctx.Done():
			return admin.Status{}, fmt.Errorf("not %s after %v: %w", healthy, timeout, missing)
		}
	}
}

// lacks lists what a node lacks to be healthy.
func lacks(a admin.Status) []string {
	all := a.Problems()
	for _, each := range []struct {
		of      string
		regions map[string]int
	}{{"on this node", a.NodeRegions}, {"in the world", a.WorldRegions}} {
		for _, state := range region.StateNames() {
			if n := each.regions[state]; n > 0 && state != healthy {
				all = append(all, fmt.Sprintf("%s %s %s", english.Plural(n, "region", ""), each.of, state))
			}
		}
	}
	return all
}

func printStatus(out io.Writer, a admin.Status) error {
	w := tabwriter.NewWriter(out, 0, 8, 2, ' ', 0)
	fmt.Fprintf(w, "world\t%s (%.12s)\n", a.World, a.WorldID)
	fmt.Fprintf(w, "version\t%s\n", a.Version)
	fmt.Fprintf(w, "peer id\t%s\n", a.Peer)
	fmt.Fprintf(w, "access\t%s\n", accessText(a.Access))
	fmt.Fprintf(w, "catalog on\t%s\n", catalogText(a))
	if a.Draining {
		fmt.Fprintf(w, "state\tdraining: moving its players to other nodes, then stopping\n")
	}
	if a.NotReady != "" && !a.Draining {
		fmt.Fprintf(w, "state\tnot ready: %s\n", a.NotReady)
	}
	fmt.Fprintf(w, "uptime\t%v\n", a.Uptime.Round(time.Second))
	fmt.Fprintf(w, "play at\t%s\n", a.URL)
	fmt.Fprintf(w, "game address\t%s\n", a.Game)
	fmt.Fprintf(w, "peers\t%d connected\n", a.Peers)
	fmt.Fprintf(w, "regions\t%d loaded; with the catalog %d led here\n", a.Regions, a.Led)
	fmt.Fprintf(w, "players\t%d\n", a.Players)
	for _, reason := range slices.Sorted(maps.Keys(a.Unusable)) {
		fmt.Fprintf(w, "%s\t%s not in order: voxeld doctor says what to do\n", strings.ReplaceAll(reason, "_", " "), english.Plural(a.Unusable[reason], "replica is", "replicas are"))
	}
	if a.Copied {
		fmt.Fprintf(w, "copied\tanother machine runs with a copy of this node's data directory, or did within the last hour: stop one of the two\n")
	}
	fmt.Fprintf(w, "database\t%.1f MiB\n", float64(a.Database)/(1<<20))
	fmt.Fprintf(w, "disk\t%v\n", a.Disk)
	fmt.Fprintf(w, "backups\t%v\n\n", a.Backups)
	printRegions(w, a)
	return w.Flush()
}

// printRegions prints a table of the regions by state.
func printRegions(w io.Writer, a admin.Status) {
	names := region.StateNames()
	fmt.Fprintf(w, "REGIONS\t%s\n", strings.ToUpper(strings.Join(names, "\t")))
	row := func(name string, counts map[string]int) {
		fmt.Fprint(w, name)
		for _, state := range names {
			count := "?"
			if counts != nil {
				count = strconv.Itoa(counts[state])
			}
			fmt.Fprint(w, "\t", count)
		}
		fmt.Fprintln(w)
	}
	row("held here, with the catalog", a.NodeRegions)
	row("whole world, without it", a.WorldRegions)
	if a.WorldRegions == nil {
		fmt.Fprintln(w, "\nOnly nodes that hold the catalog count the regions of the world, and this one does not.")
	} else if n := a.NodeRegions["no_quorum"] + a.WorldRegions["no_quorum"]; n > 0 {
		fmt.Fprintln(w, "\nno_quorum: most members do not answer, so nothing can be changed there. voxeld doctor says what to do.")
	}
}

// catalogText returns the node that leads the catalog, and so can found new land.
func catalogText(a admin.Status) string {
	switch {
	case a.CatalogUnknown:
		return "not known yet: the node has just started"
	case !a.CatalogQuorum:
		return "no node leads it: no new land can be founded"
	case a.Catalog == "":
		return "unknown"
	case a.Catalog == a.Peer:
		return "this node"
	}
	return a.Catalog
}

// accessText returns who may run nodes of the world, and until when this one may.
func accessText(a admin.Access) string {
	switch {
	case a.Open:
		return "open: whoever reaches this node can run nodes of the world"
	case a.Error != "":
		return a.Error
	}
	text := "with a token; certificate valid until " + a.Expires.UTC().Format(time.DateOnly) + ", to be renewed on " + a.RenewAt.UTC().Format(time.DateOnly)
	if a.Issuer {
		text += "; gives out tokens"
		if a.Issuers == 1 {
			text += ", as the only node"
		}
		if !a.RootKey {
			text += "; the root key is not here"
		}
	}
	return text
}
