package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/test/testkit/sessionclient"
	"github.com/voxelpopuli/voxeld/wire/sessionmsg"
)

// A service is a program with a key. What it is answered is checked against the document that nodes serve.
type service struct {
	t   *testing.T
	key string
	api map[string]any // the document
	seq uint64
}

func (d *daemon) addService(args ...string) *service {
	d.t.Helper()
	v := &service{t: d.t, key: strings.TrimSpace(d.operate(append([]string{"service", "add"}, args...)...))}
	response, err := http.Get("http://" + d.HTTP + "/api/v1/openapi.json")
	if err != nil {
		d.t.Fatal(err)
	}
	defer response.Body.Close()
	if err := json.NewDecoder(response.Body).Decode(&v.api); err != nil {
		d.t.Fatal(err)
	}
	return v
}

// object returns what is at a path in a JSON object.
func object(in any, path ...string) map[string]any {
	for _, name := range path {
		of, _ := in.(map[string]any)
		in = of[name]
	}
	of, _ := in.(map[string]any)
	return of
}

// conforms returns why a value is not as a schema of the document says; empty if it is.
func (v *service) conforms(value any, schema map[string]any, at string) string {
	if to, is := schema["$ref"].(string); is {
		return v.conforms(value, object(v.api, strings.Split(strings.TrimPrefix(to, "#/"), "/")...), at)
	}
	is := map[string]bool{}
	switch value := value.(type) {
	case map[string]any:
		is["object"] = true
		for _, name := range schema["required"].([]any) {
			if _, there := value[name.(string)]; !there {
				return fmt.Sprintf("%s has no %s", at, name)
			}
		}
		for name, part := range value {
			of := object(schema, "properties", name)
			if of == nil {
				return fmt.Sprintf("%s has %s", at, name)
			}
			if why := v.conforms(part, of, at+"."+name); why != "" {
				return why
			}
		}
	case []any:
		is["array"] = true
		for i, part := range value {
			if why := v.conforms(part, object(schema, "items"), fmt.Sprint(at, "[", i, "]")); why != "" {
				return why
			}
		}
	case string:
		is["string"] = true
		if one, has := schema["enum"].([]any); has && !slices.Contains(one, any(value)) {
			return at + " is " + value
		}
	case float64:
		is["number"], is["integer"] = true, value == float64(int64(value))
	case bool:
		is["boolean"] = true
	}
	if !is[schema["type"].(string)] {
		return fmt.Sprintf("%s is %v, and no %v", at, value, schema["type"])
	}
	return ""
}

// request sends a request to a node, and returns the status. If it is 200 the answer is read, else the error's code.
func (v *service) request(to *daemon, method, path string, body, answer any, header ...string) (status int, code string) {
	v.t.Helper()
	status, code, err := v.try(to, method, path, body, answer, header...)
	if err != nil {
		v.t.Fatal(err)
	}
	return status, code
}

func (v *service) try(to *daemon, method, path string, body, answer any, header ...string) (status int, code string, err error) {
	text, err := json.Marshal(body)
	if err != nil {
		return 0, "", err
	}
	ctx, cancel := context.WithTimeout(v.t.Context(), patience)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, method, "http://"+to.HTTP+"/api/v1"+path, bytes.NewReader(text))
	if err != nil {
		return 0, "", err
	}
	r.Header.Set("Authorization", "Bearer "+v.key)
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		return 0, "", err
	}
	defer response.Body.Close()
	text, err = io.ReadAll(response.Body)
	if err != nil {
		return 0, "", err
	}
	var value any
	if err := json.Unmarshal(text, &value); err != nil {
		return 0, "", fmt.Errorf("%s %s: %d: %q: %w", method, path, response.StatusCode, text, err)
	}
	route, _, _ := strings.Cut(path, "?")
	listed := object(v.api, "paths", route, strings.ToLower(method), "responses", fmt.Sprint(response.StatusCode))
	if to, is := listed["$ref"].(string); is {
		listed = object(v.api, strings.Split(strings.TrimPrefix(to, "#/"), "/")...)
	}
	schema := object(listed, "content", "application/json", "schema")
	if schema == nil {
		return 0, "", fmt.Errorf("%s %s: the status %d is not in the document: %s", method, path, response.StatusCode, text)
	}
	if why := v.conforms(value, schema, "the answer"); why != "" {
		return 0, "", fmt.Errorf("%s %s: %s: %s", method, path, why, text)
	}
	if response.StatusCode != http.StatusOK {
		code, _ := object(value, "error")["code"].(string)
		return response.StatusCode, code, nil
	}
	if answer == nil {
		return response.StatusCode, "", nil
	}
	return response.StatusCode, "", json.Unmarshal(text, answer)
}

// get reads an answer.
func get[A any](v *service, from *daemon, path string) (answer A) {
	v.t.Helper()
	if status, code := v.request(from, http.MethodGet, path, nil, &answer); status != http.StatusOK {
		v.t.Fatalf("GET %s on %s: %d %s", path, from.ip, status, code)
	}
	return answer
}

type serviceEdit struct {
	At    grid.Pos `json:"at"`
	Block string   `json:"block"`
	From  string   `json:"from,omitempty"`
}

type serviceEdits struct {
	Seq   uint64        `json:"seq"`
	Edits []serviceEdit `json:"edits"`
}

type editResults struct {
	Results []struct {
		Error string `json:"error"`
	} `json:"results"`
}

type serviceChanges struct {
	Changes []struct {
		ID   string   `json:"id"` // of an event
		Name string   `json:"name"`
		At   grid.Pos `json:"at"`
		New  string   `json:"new"`
	} `json:"changes"`
}

// numbered returns edits with the next numbers.
func (v *service) numbered(edits ...serviceEdit) serviceEdits {
	v.seq = max(v.seq, uint64(time.Now().UnixMicro()))
	all := serviceEdits{v.seq, edits}
	v.seq += uint64(len(edits))
	return all
}

// event is an event of a stream.
type event struct {
	cursor, kind, data string
}

// eventStream is the events that a service was sent.
type eventStream struct {
	stop context.CancelFunc
	mu   struct {
		sync.Mutex
		all   []event
		ended bool
	}
}

// listen opens a stream, after a cursor if that is not empty.
func (v *service) listen(to *daemon, query, after string) *eventStream {
	v.t.Helper()
	ctx, cancel := context.WithCancel(v.t.Context())
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+to.HTTP+"/api/v1/events"+query, nil)
	if err != nil {
		v.t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+v.key)
	if after != "" {
		r.Header.Set("Last-Event-ID", after)
	}
	response, err := http.DefaultClient.Do(r)
	if err != nil || response.StatusCode != http.StatusOK {
		v.t.Fatalf("events: %v, %+v", err, response)
	}
	s := &eventStream{stop: cancel}
	var reader sync.WaitGroup
	v.t.Cleanup(func() { cancel(); reader.Wait() })
	reader.Go(func() {
		defer response.Body.Close()
		s.read(v, response.Body)
	})
	return s
}

func (s *eventStream) read(v *service, from io.Reader) {
	lines := bufio.NewScanner(from)
	var e event
	for lines.Scan() {
		name, value, _ := strings.Cut(lines.Text(), ": ")
		switch name {
		case "id":
			e.cursor = value
		case "event":
			e.kind = value
		case "data":
			e.data = value
			var data any
			schema := object(v.api, "components", "schemas", strings.ToUpper(e.kind[:1])+e.kind[1:]+"Event")
			if err := json.Unmarshal([]byte(value), &data); err != nil || schema == nil {
				v.t.Errorf("the event %+v is not in the document (%v)", e, err)
			} else if why := v.conforms(data, schema, e.kind); why != "" {
				v.t.Errorf("the event %+v: %s", e, why)
			}
		case "":
			if e != (event{}) {
				s.mu.Lock()
				s.mu.all = append(s.mu.all, e)
				s.mu.Unlock()
				e = event{}
			}
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mu.ended = true
}

// has reports whether there is an event of a kind with a text in its data.
func (s *eventStream) has(kind, text string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.ContainsFunc(s.mu.all, func(e event) bool { return e.kind == kind && strings.Contains(e.data, text) })
}

// edits returns the ids of the edits, with how often they were sent.
func (s *eventStream) edits() map[string]int {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := make(map[string]int)
	for _, e := range s.mu.all {
		var data struct {
			ID string `json:"id"`
		}
		if e.kind == "edit" && json.Unmarshal([]byte(e.data), &data) == nil {
			all[data.ID]++
		}
	}
	return all
}

// last returns the last cursor.
func (s *eventStream) last() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.mu.all[len(s.mu.all)-1].cursor
}

func (s *eventStream) ended() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.mu.ended
}

// wantStatus fails the test unless a request is answered so.
func (v *service) wantStatus(status int, code string, to *daemon, method, path string, body any, header ...string) {
	v.t.Helper()
	if got, why := v.request(to, method, path, body, nil, header...); got != status || why != code {
		v.t.Errorf("%s %s: %d %q, want %d %q", method, path, got, why, status, code)
	}
}

// A service on two nodes: what its key is good for, what it reads and changes, and what it is told; until its key is
// taken back.
func TestService(t *testing.T) {
	t.Parallel()
	nodes := cluster(t, 2)
	a, b := nodes[0], nodes[1]
	v := a.addService("artist", "--scopes", "read,edit,chat", "--area", "0,0:63,63", "--rate", "10000")
	reader := a.addService("reader", "--scopes", "read", "--expires", "24h")
	agree(t, nodes...)

	stranger := *v
	stranger.key = "vxs" + strings.Repeat("a", 52)
	stranger.wantStatus(401, "bad_key", b, "GET", "/world", nil)
	v.wantStatus(403, "insecure", b, "GET", "/world", nil, "X-Forwarded-For", "203.0.113.5")
	v.wantStatus(403, "insecure", b, "GET", "/world", nil, "X-Forwarded-For", "203.0.113.5", "X-Forwarded-Proto", "https") // b trusts no proxy
	reader.wantStatus(403, "scope", b, "POST", "/chat", map[string]string{"text": "hello"})
	reader.wantStatus(400, "bad_request", b, "GET", "/blocks", nil) // of which box?
	v.wantStatus(403, "outside", b, "GET", "/blocks?box=-1,0,0:5,5,5", nil)
	v.wantStatus(403, "outside", b, "POST", "/edits", v.numbered(serviceEdit{At: grid.Pos{X: 64, Y: 80}, Block: "stone"}))
	v.wantStatus(400, "bad_request", b, "POST", "/edits", map[string]any{"seq": 1, "edits": []int{}})
	v.wantStatus(400, "bad_request", b, "POST", "/edits", map[string]any{"sequence": 1})
	v.wantStatus(413, "too_large", b, "POST", "/chat", map[string]string{"text": strings.Repeat("a", 300<<10)})

	if world := get[map[string]any](v, b, "/world"); world["nodes"] != 2. {
		t.Errorf("the world is %v", world)
	}
	if me := get[map[string]any](reader, b, "/service"); me["name"] != "reader" || me["until_ms"] == nil {
		t.Errorf("the service is %v", me)
	}

	onA := v.listen(a, "", "")
	eventually(t, "a stream begins", patience, func() bool { return onA.has("players", "") })
	_, page := openPage(t, a, "ann")
	eventually(t, "it is told who has come", patience, func() bool { return onA.has("join", `"ann"`) })

	// Edits through one node are confirmed by the other when they are sent again, and applied once.
	var edits []serviceEdit
	for x := range int32(40) {
		edits = append(edits, serviceEdit{At: grid.Pos{X: x, Y: 100, Z: 7}, Block: "stone"})
	}
	batch := v.numbered(edits...)
	for _, to := range []*daemon{b, a, b} {
		var results editResults
		if status, code := v.request(to, "POST", "/edits", batch, &results); status != 200 || len(results.Results) != len(edits) || results.Results[39].Error != "" {
			t.Fatalf("edits: %d %s, %v", status, code, results)
		}
	}
	other := serviceEdits{batch.Seq, []serviceEdit{{At: grid.Pos{Y: 101}, Block: "stone"}, {At: grid.Pos{X: 1, Y: 100, Z: 7}, Block: "stone"}}}
	var results editResults
	if v.request(b, "POST", "/edits", other, &results); results.Results[0].Error != "stale" || results.Results[1].Error != "" {
		t.Errorf("other edits with the same numbers: %v", results)
	}
	changes := get[serviceChanges](v, a, "/history?box=0,90,0:63,110,63&limit=500").Changes
	if len(changes) != len(edits) || changes[0].Name != "artist" || changes[0].New != "stone" {
		t.Errorf("%d changes, want %d: %+v", len(changes), len(edits), changes)
	}

	bulk := serviceEdits{Seq: v.numbered(edits[0]).Seq}
	for i := range int32(1200) {
		from := "air"
		if i%32 < 32 && i/32 == 7 {
			from = "stone"
		}
		bulk.Edits = append(bulk.Edits, serviceEdit{At: grid.Pos{X: i % 32, Y: 100 + i/1024, Z: i / 32 % 32}, From: from, Block: "sand"})
	}
	for _, to := range []*daemon{a, b} {
		v.wantStatus(200, "", to, "POST", "/bulk", bulk)
	}
	bulk.Seq++
	bulk.Edits[5].Block = "stone"
	v.wantStatus(409, "changed", b, "POST", "/bulk", bulk)
	blocks := get[struct {
		Palette []string `json:"palette"`
		Blocks  []int    `json:"blocks"`
	}](v, b, "/blocks?box=0,100,0:33,100,31")
	named := map[string]int{}
	for _, n := range blocks.Blocks {
		named[blocks.Palette[n]]++
	}
	if !maps.Equal(named, map[string]int{"sand": 32 * 32, "stone": 2, "air": 62}) {
		t.Errorf("the blocks are %v", named)
	}

	v.wantStatus(200, "", b, "POST", "/chat", map[string]string{"text": "a picture is done"})
	eventually(t, "the line is shown to pages, and sent to streams", patience, func() bool {
		return page.lines() == 1 && onA.has("chat", `"service":true,"text":"a picture is done"`)
	})
	all := len(edits) + 1200
	eventually(t, "all edits are sent", patience, func() bool { return len(onA.edits()) == all })
	for id, times := range onA.edits() {
		if times != 1 {
			t.Errorf("the edit %s was sent %d times", id, times)
		}
	}

	// Another node goes on from where the stream was, with the same ids.
	cursor := onA.last()
	onA.stop()
	later := v.numbered(serviceEdit{At: grid.Pos{X: 50, Y: 100, Z: 50}, Block: "dirt"})
	v.wantStatus(200, "", a, "POST", "/edits", later)
	onB := v.listen(b, "?kinds=edits,chat", cursor)
	eventually(t, "the other node sends what has happened", patience, func() bool { return len(onB.edits()) == all+1 && onB.has("chat", "a picture") })
	for id := range onA.edits() {
		if onB.edits()[id] != 1 {
			t.Errorf("the edit %s has another id at another node", id)
		}
	}

	began := time.Now()
	a.operate("service", "remove", "artist")
	for _, to := range nodes {
		eventually(t, "the key is refused", patience, func() bool {
			status, _ := v.request(to, "GET", "/service", nil, nil)
			return status == 401
		})
	}
	eventually(t, "the stream ends", patience, func() bool { return onB.ended() && onB.has("end", "bad_key") })
	t.Logf("a key is taken back within %v", time.Since(began).Round(time.Millisecond))
	if len(get[serviceChanges](reader, b, "/history?box=0,90,0:63,110,63").Changes) == 0 {
		t.Error("the key of another service is refused, too")
	}
}

// While a service builds through one node, the node that leads the land is killed. What was not answered is sent again
// with the same numbers, to any node: all of it is applied, once.
func TestServiceOutlivesALeader(t *testing.T) {
	t.Parallel()
	nodes := cluster(t, 3)
	v := nodes[0].addService("builder", "--scopes", "read,edit", "--rate", "100000")
	agree(t, nodes...)
	leader := func(to *daemon) string {
		var area struct {
			Regions []struct {
				Leader string `json:"leader"`
			} `json:"regions"`
		}
		if status, _, err := v.try(to, "GET", "/area?box=0,0:31,31", nil, &area); err != nil || status != 200 || len(area.Regions) != 1 {
			return ""
		}
		return area.Regions[0].Leader
	}
	before := v.listen(nodes[0], "?kinds=edits&box=0,0:31,31", "")
	eventually(t, "a stream begins", patience, func() bool { return before.has("ready", "") })
	cursor := before.last()
	before.stop()
	const batches, killed = 30, 10
	left := nodes
	for i := range int32(batches) {
		var edits []serviceEdit
		for x := range int32(32) {
			edits = append(edits, serviceEdit{At: grid.Pos{X: x, Y: 100, Z: i}, Block: "stone"})
		}
		batch := v.numbered(edits...)
		sent := make(chan struct{})
		if i == killed {
			var found *daemon
			eventually(t, "the land has a leader", patience, func() bool {
				led := leader(nodes[0])
				for _, d := range nodes {
					if d.Status.Peer == led {
						found = d
					}
				}
				return found != nil
			})
			left = slices.DeleteFunc(slices.Clone(nodes), func(d *daemon) bool { return d == found })
			go func() {
				defer close(sent)
				v.try(found, "POST", "/edits", batch, nil) //nolint:errcheck // it may be answered or not
			}()
			found.kill()
			<-sent
		}
		attempt := 0
		eventually(t, "the edits are confirmed", 2*patience, func() bool {
			attempt++
			var results editResults
			status, _, err := v.try(left[attempt%len(left)], "POST", "/edits", batch, &results)
			if err != nil || status != 200 {
				return false
			}
			for _, r := range results.Results {
				if r.Error != "" && r.Error != "unavailable" {
					t.Fatalf("an edit is refused: %s", r.Error)
				}
				if r.Error != "" {
					return false
				}
			}
			return true
		})
	}
	times := make(map[grid.Pos]int)
	for i := range batches {
		box := fmt.Sprintf("0,100,%d:31,100,%d", i, i)
		for _, c := range get[serviceChanges](v, left[0], "/history?limit=500&box="+box).Changes {
			times[c.At]++
		}
	}
	if len(times) != batches*32 {
		t.Errorf("%d blocks were changed, want %d", len(times), batches*32)
	}
	for at, n := range times {
		if n != 1 {
			t.Errorf("the edit at %v was applied %d times", at, n)
		}
	}
	// Whoever goes on from an event of before is sent all of it, though no node has run all the time.
	for _, d := range left {
		d.kill()
	}
	for _, d := range left {
		d.start()
	}
	after := v.listen(left[1], "?kinds=edits&box=0,0:31,31", cursor)
	eventually(t, "all edits are sent", 2*patience, func() bool { return len(after.edits()) == batches*32 })
}

var serviceTime = flag.Duration("service-time", 3*time.Second, "how long TestServiceEventsCost measures, with events and without")

// What it costs a node to send a service 1,000 events a second: its processor time with -v.
func TestServiceEventsCost(t *testing.T) {
	d := startDaemon(t)
	v := d.addService("builder", "--scopes", "read,edit", "--rate", "10000")
	var built atomic.Int64
	stop := make(chan struct{})
	var writer sync.WaitGroup
	writer.Go(func() {
		ticker := time.NewTicker(256 * time.Millisecond)
		defer ticker.Stop()
		is, becomes := "air", "stone"
		for i := int32(0); ; i = (i + 1) % 4 {
			select {
			case <-stop:
				return
			case <-ticker.C:
			}
			var edits []serviceEdit
			for j := range int32(256) {
				edits = append(edits, serviceEdit{At: grid.Pos{X: i*32 + j%32, Y: 100, Z: j / 32}, From: is, Block: becomes})
			}
			if status, code, err := v.try(d, "POST", "/bulk", v.numbered(edits...), nil); err != nil || status != 200 {
				t.Errorf("bulk: %d %s, %v", status, code, err)
				return
			}
			if built.Add(int64(len(edits))); i == 3 {
				is, becomes = becomes, map[string]string{"stone": "dirt", "dirt": "stone"}[becomes]
			}
		}
	})
	defer writer.Wait()
	defer close(stop)
	measure := func() float64 {
		began, used := time.Now(), d.metric("process_cpu_seconds_total")
		<-time.After(*serviceTime)
		return (d.metric("process_cpu_seconds_total") - used) / time.Since(began).Seconds() * 100
	}
	eventually(t, "the service builds", patience, func() bool { return built.Load() > 1024 })
	without := measure()
	stream := v.listen(d, "?kinds=edits&box=0,0:127,31", "")
	first := built.Load()
	eventually(t, "events are sent", patience, func() bool { return len(stream.edits()) > 0 })
	with := measure()
	t.Logf("%.1f %% of a core with %d events sent, %.1f %% without", with, len(stream.edits()), without)
	last := built.Load()
	eventually(t, "each edit is sent", patience, func() bool { return int64(len(stream.edits())) >= last-first })
	for id, times := range stream.edits() {
		if times != 1 {
			t.Errorf("the edit %s was sent %d times", id, times)
		}
	}
}

// openPage joins as a page does, until the test ends, and reads what the page is sent.
func openPage(t *testing.T, d *daemon, name string) (*sessionclient.Conn, *listener) {
	t.Helper()
	conn, err := sessionclient.Dial(t.Context(), sessionclient.Page(d.HTTP), sessionmsg.Join{Name: name, View: 1, Encoding: sessionmsg.EncodingCBOR})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	if _, err := conn.Enter(func(sessionclient.Message) error { return nil }); err != nil {
		t.Fatal(err)
	}
	page := &listener{conn: conn}
	page.mu.shown = make(map[string][]time.Time)
	go page.read()
	return conn, page
}
