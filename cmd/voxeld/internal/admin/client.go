package admin

import (
	"bytes"
	"cmp"
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
	"time"
)

// maxRefusal bounds the text with which a node refuses a request, in bytes.
const maxRefusal = 4 << 10

// Get sends a GET request to the node's admin socket and decodes the answer.
func Get(ctx context.Context, socket, path string, answer any) error {
	return GetWithin(ctx, 10*time.Second, socket, path, answer)
}

// GetWithin is Get with another timeout; 0 waits until ctx ends.
func GetWithin(ctx context.Context, timeout time.Duration, socket, path string, answer any) error {
	return call(ctx, timeout, http.MethodGet, socket, path, answer)
}

// Post sends a POST request to the node's admin socket and decodes the answer.
func Post(ctx context.Context, socket, path string, answer any) error {
	return PostWithin(ctx, 10*time.Second, socket, path, answer)
}

// PostWithin is Post with another timeout; 0 waits until ctx ends.
func PostWithin(ctx context.Context, timeout time.Duration, socket, path string, answer any) error {
	return call(ctx, timeout, http.MethodPost, socket, path, answer)
}

func call(ctx context.Context, timeout time.Duration, method, socket, path string, answer any) error {
	if timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, timeout)
		defer cancel()
	}
	response, err := Request(ctx, socket, method, path)
	if err != nil {
		return err
	}
	defer response.Body.Close() //nolint:errcheck // read to its end below
	err = json.NewDecoder(response.Body).Decode(answer)
	if errors.Is(err, context.DeadlineExceeded) {
		return errSilent(socket)
	}
	if err != nil {
		return fmt.Errorf("query the node: %w", err)
	}
	return nil
}

// Request sends a request to the node's admin socket. The caller closes the body of the answer.
func Request(ctx context.Context, socket, method, path string) (*http.Response, error) {
	return request(ctx, socket, method, path, nil)
}

// Send posts a body to the node's admin socket. The caller closes the body of the answer.
func Send(ctx context.Context, socket, path string, body []byte) (*http.Response, error) {
	return request(ctx, socket, http.MethodPost, path, bytes.NewReader(body))
}

func request(ctx context.Context, socket, method, path string, body io.Reader) (*http.Response, error) {
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", socket)
	}}}
	request, err := http.NewRequestWithContext(ctx, method, "http://admin"+path, body)
	if err != nil {
		return nil, err
	}
	response, err := client.Do(request)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ECONNREFUSED) {
		return nil, fmt.Errorf("no node runs with the admin socket %s: start one with voxeld run, or set --data-dir to its data directory", socket)
	}
	if errors.Is(err, fs.ErrPermission) {
		return nil, fmt.Errorf("this user may not use the admin socket %s: use sudo, or be a member of its group", socket)
	}
	if errors.Is(err, context.DeadlineExceeded) {
		return nil, errSilent(socket)
	}
	if err != nil {
		return nil, fmt.Errorf("query the node: %w", err)
	}
	if response.StatusCode != http.StatusOK {
		text, err := io.ReadAll(io.LimitReader(response.Body, maxRefusal))
		why := cmp.Or(strings.TrimSpace(string(text)), response.Status)
		return nil, errors.Join(errors.New(why), err, response.Body.Close())
	}
	return response, nil
}

func errSilent(socket string) error {
	return fmt.Errorf("the node does not answer in time on its admin socket %s: it is overloaded or hangs", socket)
}
