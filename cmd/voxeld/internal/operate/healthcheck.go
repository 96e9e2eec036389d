package operate

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/voxelpopuli/voxeld/cmd/voxeld/internal/cli"
	"github.com/voxelpopuli/voxeld/internal/config"
)

// newHealthcheck returns the command for a container's health check: scratch images have no shell.
func newHealthcheck() *cobra.Command {
	var address, file string
	c := &cobra.Command{
		Use: "healthcheck", Short: "Check whether a node serves: the exit code is 0 if it does", Args: cli.NoArgs,
		Example: "  voxeld healthcheck --http 127.0.0.1:8080",
		RunE: func(c *cobra.Command, _ []string) error {
			client := http.Client{Timeout: 5 * time.Second}
			if address == "" {
				cfg, err := config.Load(config.Sources{File: file, Default: config.SystemFile, Environ: os.Environ()})
				if err != nil {
					return cli.Usage(err)
				}
				address = cfg.HTTP
				if cfg.Encrypted() {
					address = "https://" + cli.Browsable(address)
					// The certificate is for the node's name, and this asks the node on this machine.
					client.Transport = &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}} //nolint:gosec // see above
				}
			}
			base, err := nodeURL(address)
			if err != nil {
				return cli.Usage(fmt.Errorf("--http: %w", err))
			}
			request, err := http.NewRequestWithContext(c.Context(), http.MethodGet, base+"/healthz", nil)
			if err != nil {
				return cli.Usage(err)
			}
			response, err := client.Do(request)
			if _, noCertificate := errors.AsType[tls.AlertError](err); noCertificate {
				return nil // the node answers; it has not obtained its first certificate yet
			}
			if err != nil {
				return fmt.Errorf("the node does not answer: %w", err)
			}
			defer response.Body.Close() //nolint:errcheck // only the status matters
			if response.StatusCode != http.StatusOK {
				return fmt.Errorf("the node answers %s", response.Status)
			}
			return nil
		},
	}
	c.Flags().StringVar(&address, "http", "", "`host:port` or URL of the node (default from VOXELD_HTTP or the configuration file, else :8080)")
	c.Flags().StringVar(&file, "config", "", "configuration file (TOML), as a `path`")
	return c
}

// nodeURL returns the URL of a node, without a trailing slash, for a URL or host:port.
func nodeURL(address string) (string, error) {
	if !strings.Contains(address, "://") {
		if _, _, err := net.SplitHostPort(address); err != nil {
			return "", fmt.Errorf("%q is neither host:port nor a URL, such as 127.0.0.1:8080 or https://voxels.example", address)
		}
		return "http://" + cli.Browsable(address), nil
	}
	u, err := url.Parse(address)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return "", fmt.Errorf("%q is not a URL of a node, such as https://voxels.example", address)
	}
	return u.Scheme + "://" + u.Host, nil
}
