// Package voxeld is a client of voxeld's HTTP API for services (docs/services.md), with the standard library only. No
// package of the daemon imports it.
//
//	world := voxeld.New(key, "https://a.example.org", "https://b.example.org")
//	refused, err := world.Edit(ctx, []voxeld.Edit{{At: voxeld.Pos{5, 80, 5}, Block: "brick"}})
//	for event, err := range world.Events(ctx, voxeld.Listen{}) { … }
package voxeld

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"
)

const (
	batch       = 64               // the most blocks of a request
	requestTime = 30 * time.Second // bounds a request
	// patience is how long a request is sent again that was not answered.
	patience = time.Minute
	pause    = 500 * time.Millisecond
	// maxSeen is of how many events it is remembered that they were received.
	maxSeen = 100_000
)

// Pos is a block: X, Y (its height), Z.
type Pos [3]int

// Edit changes a block. From is what it must be, for Bulk.
type Edit struct {
	At    Pos    `json:"at"`
	Block string `json:"block"`
	From  string `json:"from,omitempty"`
}

// Error is why a request was refused: a code of docs/services.md. Status is that of HTTP.
type Error struct {
	Status  int
	Code    string `json:"code"`
	Message string `json:"message"`
}

// Error returns code and message.
func (e *Error) Error() string { return e.Code + ": " + e.Message }

// again reports whether the same request may be answered later, or by another node.
func (e *Error) again() bool {
	return e.Status == http.StatusTooManyRequests || e.Status == http.StatusServiceUnavailable || e.Status == http.StatusGatewayTimeout
}

// Client is a service at one or more nodes of a world. What one does not answer is sent to the next. Any goroutine may
// use it.
type Client struct {
	key     string
	http    http.Client
	editing sync.Mutex // held while blocks are changed: numbers must arrive in order

	mu struct {
		sync.Mutex
		nodes []string // the first is asked next
		seq   uint64   // the number of the next edit, at least
	}
}

// New returns a client. Nodes are URLs as players open them.
func New(key string, nodes ...string) *Client {
	c := &Client{key: key}
	c.http.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse } // it would have the key sent elsewhere
	c.mu.nodes = slices.Clone(nodes)
	return c
}

// Get reads the answer to a GET request, as openapi.json describes it.
func (c *Client) Get(ctx context.Context, path string, query url.Values, answer any) error {
	return c.request(ctx, http.MethodGet, path+"?"+query.Encode(), nil, answer, true)
}

type edits struct {
	Seq   uint64 `json:"seq"`
	Edits []Edit `json:"edits"`
}

// Edit changes blocks. It returns for each why it was refused, empty if it is changed.
func (c *Client) Edit(ctx context.Context, all []Edit) (refused []string, err error) {
	c.editing.Lock()
	defer c.editing.Unlock()
	for some := range slices.Chunk(all, batch) {
		var answer struct {
			Results []struct {
				Error string `json:"error"`
			} `json:"results"`
		}
		if err := c.request(ctx, http.MethodPost, "edits", edits{c.take(len(some)), some}, &answer, true); err != nil {
			return refused, err
		}
		for _, r := range answer.Results {
			refused = append(refused, r.Error)
		}
	}
	return refused, nil
}

// Bulk changes up to 2,048 blocks of a chunk, all or none.
func (c *Client) Bulk(ctx context.Context, all []Edit) error {
	c.editing.Lock()
	defer c.editing.Unlock()
	return c.request(ctx, http.MethodPost, "bulk", edits{c.take(1), all}, nil, true)
}

// Chat shows a line to all players of the world. If no node answers it may have been shown.
func (c *Client) Chat(ctx context.Context, text string) error {
	return c.request(ctx, http.MethodPost, "chat", map[string]string{"text": text}, nil, false)
}

// take returns the first of so many numbers for edits: microseconds since 1970, above those before.
func (c *Client) take(count int) uint64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	first := max(c.mu.seq, uint64(time.Now().UnixMicro())) //nolint:gosec // after 1970
	c.mu.seq = first + uint64(count)                       //nolint:gosec // a length
	return first
}

func (c *Client) node() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.mu.nodes[0]
}

// leave has another node asked next.
func (c *Client) leave(node string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.mu.nodes[0] == node {
		c.mu.nodes = append(c.mu.nodes[1:], node)
	}
}

// open sends a request to a node. Its error is an *Error if the node has refused it.
func (c *Client) open(ctx context.Context, node, method, path string, body []byte, header ...string) (*http.Response, error) {
	r, err := http.NewRequestWithContext(ctx, method, strings.TrimSuffix(node, "/")+"/api/v1/"+path, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	if host := r.URL.Hostname(); r.URL.Scheme != "https" && host != "localhost" && !net.ParseIP(host).IsLoopback() {
		return nil, &Error{http.StatusForbidden, "insecure", node + ": a key is sent over https only, or on this machine"}
	}
	r.Header.Set("Authorization", "Bearer "+c.key)
	for i := 0; i+1 < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	response, err := c.http.Do(r)
	if err != nil || response.StatusCode == http.StatusOK {
		return response, err
	}
	defer response.Body.Close() //nolint:errcheck // it is read
	var answer struct {
		Error *Error `json:"error"`
	}
	if err := json.NewDecoder(response.Body).Decode(&answer); err != nil || answer.Error == nil {
		return nil, fmt.Errorf("%s %s: status %d", method, path, response.StatusCode)
	}
	answer.Error.Status = response.StatusCode
	return nil, answer.Error
}

// request sends a request until it is answered; repeat means also if it may have been carried out.
func (c *Client) request(ctx context.Context, method, path string, question, answer any, repeat bool) error {
	body, err := json.Marshal(question)
	if err != nil {
		return err
	}
	for end := time.Now().Add(patience); ; {
		node := c.node()
		err := c.requestOnce(ctx, node, method, path, body, answer)
		var refused *Error
		if err == nil || errors.As(err, &refused) && !refused.again() || refused == nil && !repeat || time.Now().After(end) {
			return err
		}
		c.leave(node)
		if wait(ctx, pause) != nil {
			return err
		}
	}
}

func (c *Client) requestOnce(ctx context.Context, node, method, path string, body []byte, answer any) error {
	ctx, cancel := context.WithTimeout(ctx, requestTime)
	defer cancel()
	response, err := c.open(ctx, node, method, path, body)
	if err != nil {
		return err
	}
	defer response.Body.Close() //nolint:errcheck // it is read
	if answer == nil {
		answer = &struct{}{}
	}
	return json.NewDecoder(response.Body).Decode(answer)
}

func wait(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Listen is which events are wanted: zero is all.
type Listen struct {
	Kinds []string // of edits, chat, players
	Box   string   // where edits are
	After string   // the Cursor of an event of before
}

// Event is an event. Kind is ready, edit, chat, players, join, leave or end; Cursor is from where another stream goes on.
type Event struct {
	Kind, Cursor string
	Data         json.RawMessage
}

// Events returns events until ctx ends, each edit and line once. An error is the last one.
func (c *Client) Events(ctx context.Context, l Listen) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		seen, order := make(map[string]bool), []string{}
		for ctx.Err() == nil {
			node := c.node()
			stopped, err := c.stream(ctx, node, l, func(e Event) bool {
				l.After = e.Cursor
				var named struct {
					ID string `json:"id"`
				}
				if json.Unmarshal(e.Data, &named) == nil && named.ID != "" {
					if seen[named.ID] {
						return true
					}
					if seen[named.ID], order = true, append(order, named.ID); len(order) > maxSeen {
						delete(seen, order[0])
						order = order[1:]
					}
				}
				return yield(e, nil)
			})
			var refused *Error
			switch {
			case stopped:
				return
			case errors.As(err, &refused) && !refused.again():
				yield(Event{}, err)
				return
			}
			c.leave(node)
			if wait(ctx, 2*pause) != nil {
				return
			}
		}
	}
}

// stream passes on the events of one stream, until take returns false.
func (c *Client) stream(ctx context.Context, node string, l Listen, take func(Event) bool) (stopped bool, err error) {
	query, header := url.Values{}, []string{}
	if len(l.Kinds) > 0 {
		query.Set("kinds", strings.Join(l.Kinds, ","))
	}
	if l.Box != "" {
		query.Set("box", l.Box)
	}
	if l.After != "" {
		header = []string{"Last-Event-ID", l.After}
	}
	response, err := c.open(ctx, node, http.MethodGet, "events?"+query.Encode(), nil, header...)
	if err != nil {
		return false, err
	}
	defer response.Body.Close() //nolint:errcheck // it is read
	var e Event
	for lines := bufio.NewReader(response.Body); ; {
		line, err := lines.ReadString('\n')
		if err != nil {
			return false, err
		}
		name, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), ": ")
		switch {
		case name == "id":
			e.Cursor = value
		case name == "event":
			e.Kind = value
		case name == "data":
			e.Data = json.RawMessage(value)
		case name == "" && e.Kind != "":
			if refused := (&Error{Status: http.StatusUnauthorized}); e.Kind == "end" && json.Unmarshal(e.Data, refused) == nil && refused.Code != "slow" {
				return false, refused
			}
			if !take(e) {
				return true, nil
			}
			e = Event{}
		}
	}
}
