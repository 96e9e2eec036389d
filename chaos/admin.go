package chaos

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"time"
)

// status, region and invitation are answers of a node's admin socket, with the fields used here.
type status struct {
	Peer    string `json:"peer"`
	Peers   int    `json:"peers"`
	Catalog string `json:"catalog"`
}

type region struct {
	ID      string   `json:"id"`
	Cell    string   `json:"cell"`
	Leader  string   `json:"leader"`
	Members []string `json:"members"`
	Voters  int      `json:"voters"`
	Term    uint64   `json:"term"`
	Edits   int      `json:"edits"`
}

type invitation struct {
	Token string `json:"token"`
}

// getAdmin makes a request to a node's admin socket.
func getAdmin[A any](ctx context.Context, n *Node, what string) (answer A, err error) {
	ctx, cancel := context.WithTimeout(ctx, 3*time.Second)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://admin/"+what, nil)
	if err != nil {
		return answer, err
	}
	transport := &http.Transport{
		DisableKeepAlives: true,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "unix", n.admin)
		},
	}
	response, err := transport.RoundTrip(request)
	if err != nil {
		return answer, fmt.Errorf("ask node %d for %s: %w", n.Number, what, err)
	}
	defer response.Body.Close() //nolint:errcheck // read as far as needed
	if response.StatusCode != http.StatusOK {
		return answer, fmt.Errorf("ask node %d for %s: %s", n.Number, what, response.Status)
	}
	if err := json.NewDecoder(response.Body).Decode(&answer); err != nil {
		return answer, fmt.Errorf("ask node %d for %s: %w", n.Number, what, err)
	}
	return answer, nil
}
