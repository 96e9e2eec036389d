package classicube

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

const (
	// beatEvery is how often a server list is told that the node serves players. It forgets servers that are silent for
	// some minutes.
	beatEvery = 45 * time.Second
	// beatTimeout bounds a request, and maxBeatAnswer what is read of the answer, in bytes.
	beatTimeout, maxBeatAnswer = 10 * time.Second, 1 << 10
	// maxListed is the number of players that the list shows as the most: who plays gets a number of one byte.
	maxListed = 255
)

// Heartbeat reports a node to a server list, as that of classicube.net. The game does not depend on it: what fails is
// logged, once, and tried again.
type Heartbeat struct {
	URL      string
	Name     string     // of the world
	Software string     // the program and its version
	Port     string     // of the node for ClassiCube, at the address from which it reports
	Players  func() int // how many play on the node
	Logger   *slog.Logger
}

// Run reports until ctx ends.
func (h Heartbeat) Run(ctx context.Context) error {
	// Lists know IPv4 addresses only.
	dialer := net.Dialer{Timeout: beatTimeout}
	client := &http.Client{Timeout: beatTimeout, CheckRedirect: stay, Transport: &http.Transport{
		Proxy: http.ProxyFromEnvironment,
		DialContext: func(ctx context.Context, _, address string) (net.Conn, error) {
			return dialer.DialContext(ctx, "tcp4", address)
		},
	}}
	defer client.CloseIdleConnections()
	// With the salt the list proves its players' names. Names are not proved here, so nobody may know it but the list.
	form := url.Values{
		"name": {h.Name}, "port": {h.Port}, "max": {strconv.Itoa(maxListed)}, "public": {"true"},
		"version": {strconv.Itoa(protocolVersion)}, "salt": {rand.Text()[:16]}, "software": {h.Software}, "web": {"false"},
	}
	ticker := time.NewTicker(beatEvery)
	defer ticker.Stop()
	last := ""
	for {
		form.Set("users", strconv.Itoa(h.Players()))
		answer, err := beat(ctx, client, h.URL, form)
		if ctx.Err() != nil {
			return nil
		}
		state := answer
		if err != nil {
			state = "not listed" // texts of errors may have a port in them, which changes
		}
		switch {
		case state == last:
		case err != nil:
			h.Logger.Warn("the server list of ClassiCube does not list this node", "url", h.URL, "error", err)
		default:
			h.Logger.Info("the server list of ClassiCube lists this node", "url", h.URL, "play", answer)
		}
		last = state
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
	}
}

// stay takes an answer that names another address as it is: the report would be lost on the way there.
func stay(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }

// beat sends one report, and returns the address at which the list shows the server.
func beat(ctx context.Context, client *http.Client, list string, form url.Values) (play string, err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, list, strings.NewReader(form.Encode()))
	if err != nil {
		return "", err
	}
	request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	response, err := client.Do(request)
	if err != nil {
		return "", err
	}
	defer response.Body.Close() //nolint:errcheck // it was only read
	body, err := io.ReadAll(io.LimitReader(response.Body, maxBeatAnswer))
	if err != nil {
		return "", fmt.Errorf("read the answer: %w", err)
	}
	var refused struct {
		Errors [][]string `json:"errors"`
	}
	answer := strings.TrimSpace(string(body))
	at, notURL := url.Parse(answer)
	switch {
	case json.Unmarshal(body, &refused) == nil && len(refused.Errors) > 0:
		return "", fmt.Errorf("the list answers %q", refused.Errors)
	case response.StatusCode != http.StatusOK:
		return "", fmt.Errorf("the list answers %s", response.Status)
	case notURL != nil || at.Scheme != "https" && at.Scheme != "http" || at.Host == "":
		return "", fmt.Errorf("the list answers %.100q, and no address", answer)
	default:
		return answer, nil
	}
}
