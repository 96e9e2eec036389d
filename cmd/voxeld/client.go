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
	"syscall"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/voxelpopuli/voxeld/cmd/voxeld/internal/cli"
)

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
		Use: use, Short: short, Args: cli.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			cfg, err := cli.LoadConfig(c, file)
			if err != nil {
				return err
			}
			var answer A
			if err := askNode(c.Context(), cfg.AdminSocket(), path, &answer); err != nil {
				return err
			}
			if asJSON {
				return cli.PrintJSON(c.OutOrStdout(), answer)
			}
			w := tabwriter.NewWriter(c.OutOrStdout(), 0, 8, 2, ' ', 0)
			table(w, answer)
			return w.Flush()
		},
	}
	cli.AddOptions(c.Flags(), &file, "data-dir", "admin")
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return c
}
