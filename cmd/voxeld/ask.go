package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"strings"
	"syscall"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/voxelpopuli/voxeld/gameserver"
)

// This file holds the commands that query a running node over its admin socket.

// askNode sends a GET request to the node's admin socket and decodes the answer.
func askNode(ctx context.Context, socket, path string, answer any) error {
	return askNodeFor(ctx, 10*time.Second, socket, path, answer)
}

// askNodeFor is askNode with another timeout; 0 waits until ctx ends.
func askNodeFor(ctx context.Context, timeout time.Duration, socket, path string, answer any) error {
	return callNode(ctx, timeout, http.MethodGet, socket, path, answer)
}

// postNode sends a POST request to the node's admin socket and decodes the answer.
func postNode(ctx context.Context, socket, path string, answer any) error {
	return callNode(ctx, 10*time.Second, http.MethodPost, socket, path, answer)
}

func callNode(ctx context.Context, timeout time.Duration, method, socket, path string, answer any) error {
	if timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, timeout)
		defer cancel()
	}
	response, err := requestNode(ctx, socket, method, path)
	if err != nil {
		return err
	}
	defer response.Body.Close() //nolint:errcheck // read to its end below
	if err := json.NewDecoder(response.Body).Decode(answer); err != nil {
		return fmt.Errorf("query the node: %w", err)
	}
	return nil
}

// requestNode sends a request to the node's admin socket. The caller closes the body of the answer.
func requestNode(ctx context.Context, socket, method, path string) (*http.Response, error) {
	client := http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", socket)
	}}}
	request, err := http.NewRequestWithContext(ctx, method, "http://admin"+path, nil)
	if err != nil {
		return nil, err
	}
	response, err := client.Do(request)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ECONNREFUSED) {
		return nil, fmt.Errorf("no node runs with the admin socket %s: start one with voxeld run, or set --data-dir to its data directory", socket)
	}
	if err != nil {
		return nil, fmt.Errorf("query the node: %w", err)
	}
	if response.StatusCode != http.StatusOK {
		return nil, errors.Join(fmt.Errorf("query the node: %s", response.Status), response.Body.Close())
	}
	return response, nil
}

// newQuery returns a command that queries the node and prints the answer, as a table or as JSON.
func newQuery[A any](use, short, path string, table func(w io.Writer, answer A)) *cobra.Command {
	var file string
	var asJSON bool
	c := &cobra.Command{
		Use: use, Short: short, Args: noArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			cfg, err := loadConfig(c, file)
			if err != nil {
				return err
			}
			var answer A
			if err := askNode(c.Context(), cfg.AdminSocket(), path, &answer); err != nil {
				return err
			}
			if asJSON {
				return printJSON(c.OutOrStdout(), answer)
			}
			w := tabwriter.NewWriter(c.OutOrStdout(), 0, 8, 2, ' ', 0)
			table(w, answer)
			return w.Flush()
		},
	}
	addOptions(c.Flags(), &file, "data-dir", "admin")
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return c
}

func printJSON(w io.Writer, answer any) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(answer)
}

func newInvite() *cobra.Command {
	return newQuery("invite", "Print a join token for another node of this world", "/invite",
		func(w io.Writer, a inviteAnswer) { fmt.Fprintln(w, a.Token) })
}

func newStatus() *cobra.Command {
	return newQuery("status", "Show the status of this node", "/status", func(w io.Writer, a statusAnswer) {
		fmt.Fprintf(w, "world\t%s (%s)\n", a.World, a.WorldID[:12])
		fmt.Fprintf(w, "version\t%s\n", a.Version)
		fmt.Fprintf(w, "peer id\t%s\n", a.Peer)
		fmt.Fprintf(w, "catalog on\t%s\n", catalogText(a))
		if a.Draining {
			fmt.Fprintf(w, "state\tdraining: moving its players to other nodes, then stopping\n")
		}
		fmt.Fprintf(w, "uptime\t%v\n", a.Uptime.Round(time.Second))
		fmt.Fprintf(w, "play at\thttp://%s\n", browsable(a.HTTP))
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
func catalogText(a statusAnswer) string {
	switch a.Catalog {
	case "":
		return "unknown"
	case a.Peer:
		return "this node"
	}
	return a.Catalog
}

func newPeers() *cobra.Command {
	return newQuery("peers", "List the known nodes of the world", "/peers", func(w io.Writer, all []peerAnswer) {
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
	return newQuery("regions", "List the regions loaded on this node", "/regions", func(w io.Writer, all []regionAnswer) {
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
