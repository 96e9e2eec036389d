package main

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	sdk "github.com/voxelpopuli/voxeld/sdk/go"
	"github.com/voxelpopuli/voxeld/test/testkit/process"
	"github.com/voxelpopuli/voxeld/wire/sessionmsg"
)

// sdkDir has the clients of the HTTP API.
const sdkDir = "../../sdk"

// needs skips a test whose tools are not here.
func needs(t *testing.T, tools ...string) {
	t.Helper()
	if why := process.MissingTools(tools...); why != "" {
		t.Skip(why)
	}
}

// A picture becomes blocks: the example of the Python client.
func TestPythonClient(t *testing.T) {
	t.Parallel()
	needs(t, "python3")
	d := startDaemon(t)
	v := d.addService("painter", "--scopes", "read,edit")
	const width, height = 40, 3
	picture := fmt.Appendf(nil, "P6 %d %d 255\n", width, height)
	for y := range height {
		for x := range width {
			colour := []byte{160, 39, 34} // red, and in the lowest row blue from the middle on
			if y == height-1 && x >= width/2 {
				colour = []byte{53, 57, 157}
			}
			picture = append(picture, colour...)
		}
	}
	file := filepath.Join(t.TempDir(), "picture.ppm")
	if err := os.WriteFile(file, picture, 0o600); err != nil {
		t.Fatal(err)
	}
	program := exec.CommandContext(t.Context(), "python3", filepath.Join(sdkDir, "python/examples/picture.py"), "http://"+d.HTTP, v.key, file, "0", "90", "5")
	program.Env = append(os.Environ(), "PYTHONDONTWRITEBYTECODE=1")
	if out, err := program.CombinedOutput(); err != nil || string(out) != "120 blocks are placed.\n" {
		t.Fatalf("picture.py: %v: %s", err, out)
	}
	blocks := get[struct {
		Palette []string `json:"palette"`
		Blocks  []int    `json:"blocks"`
	}](v, d, "/blocks?box=0,90,5:39,92,5")
	for i, n := range blocks.Blocks {
		want := "red_wool"
		if i >= width/2 && i < width {
			want = "blue_wool"
		}
		if got := blocks.Palette[n]; got != want {
			t.Fatalf("block %d is %s, want %s", i, got, want)
		}
	}
}

// Two chats are connected: the example of the JavaScript client, with a webhook of the test's own.
func TestJavaScriptClient(t *testing.T) {
	t.Parallel()
	needs(t, "node")
	d := startDaemon(t)
	v := d.addService("bridge", "--scopes", "read,chat")
	var posted struct {
		sync.Mutex
		all []string
	}
	webhook := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		posted.Lock()
		defer posted.Unlock()
		posted.all = append(posted.all, fmt.Sprint(string(body), err))
	}))
	defer webhook.Close()
	isPosted := func(text string) bool {
		posted.Lock()
		defer posted.Unlock()
		return strings.Contains(strings.Join(posted.all, "\n"), text)
	}
	bridge := exec.CommandContext(t.Context(), "node", filepath.Join(sdkDir, "js/examples/bridge.js"), "http://"+d.HTTP, v.key, webhook.URL, "0")
	var errs bytes.Buffer
	bridge.Stderr = &errs
	out, err := bridge.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := bridge.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		bridge.Process.Kill() //nolint:errcheck // it may have ended
		bridge.Wait()         //nolint:errcheck // it was killed
		if t.Failed() {
			t.Logf("the bridge: %s", errs.String())
		}
	}()
	line, err := bufio.NewReader(out).ReadString('\n')
	port, is := strings.CutPrefix(strings.TrimSpace(line), "listening on ")
	if err != nil || !is {
		t.Fatalf("the bridge says %q (%v)", line, err)
	}
	eventually(t, "the bridge listens to the world", patience, func() bool { return d.metric("voxeld_service_events_total", "event", "players") == 1 })

	ann, page := openPage(t, d, "ann")
	eventually(t, "the webhook is told who has come", patience, func() bool { return isPosted(`"ann has come."`) })
	if _, err := ann.Send(sessionmsg.Command{Text: "world good morning"}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the webhook is told what is said", patience, func() bool { return isPosted(`{"username":"ann","content":"good morning"}`) })
	response, err := http.Post("http://127.0.0.1:"+port, "application/json", strings.NewReader(`{"username":"zoe","content":"hello from\nelsewhere"}`))
	if err != nil || response.StatusCode != http.StatusNoContent {
		t.Fatalf("the bridge answers %v, %v", response, err)
	}
	response.Body.Close()
	shown := func() bool {
		page.mu.Lock()
		defer page.mu.Unlock()
		return len(page.mu.shown["zoe: hello from elsewhere"]) == 1
	}
	eventually(t, "the world is shown what is said elsewhere", patience, shown)
	if isPosted("zoe") {
		t.Error("what is said elsewhere comes back")
	}
}

// An area is written to a file: the example of the Go client. The client itself goes on at another node when the first
// one is killed, with the same edits and events.
func TestGoClient(t *testing.T) {
	t.Parallel()
	nodes := cluster(t, 3)
	v := nodes[0].addService("keeper", "--scopes", "read,edit,chat", "--area", "0,0:69,9")
	agree(t, nodes...)
	world := sdk.New(v.key, "http://"+nodes[2].HTTP, "http://"+nodes[1].HTTP)
	events := make(chan sdk.Event, 1000)
	go func() {
		for e, err := range world.Events(t.Context(), sdk.Listen{Kinds: []string{"edits"}}) {
			if err != nil {
				t.Error(err)
				return
			}
			events <- e
		}
	}()
	if e := <-events; e.Kind != "ready" {
		t.Errorf("the first event is %+v", e)
	}
	build := func(y int) {
		t.Helper()
		var all []sdk.Edit
		for x := range 70 {
			all = append(all, sdk.Edit{At: sdk.Pos{x, y, 3}, Block: "brick"})
		}
		refused, err := world.Edit(t.Context(), all)
		if why := strings.Join(refused, ""); err != nil || why != "" || len(refused) != len(all) {
			t.Fatalf("edits: %v, %q", err, why)
		}
	}
	build(90)
	nodes[2].kill()
	build(91)
	if err := world.Bulk(t.Context(), []sdk.Edit{{At: sdk.Pos{0, 90, 3}, From: "brick", Block: "lamp"}}); err != nil {
		t.Error(err)
	}
	var refused *sdk.Error
	if err := world.Bulk(t.Context(), []sdk.Edit{{At: sdk.Pos{0, 90, 3}, From: "brick", Block: "stone"}}); !errors.As(err, &refused) || refused.Code != "changed" {
		t.Errorf("a bulk edit of what has changed: %v", err)
	}
	if err := world.Chat(t.Context(), "done"); err != nil {
		t.Error(err)
	}
	seen := make(map[string]int)
	for limit := time.After(patience); len(seen) < 141; {
		select {
		case e := <-events:
			if e.Kind == "edit" {
				seen[string(e.Data)]++
			}
		case <-limit:
			t.Fatalf("%d edits were sent, want 141", len(seen))
		}
	}
	for data, times := range seen {
		if times != 1 {
			t.Errorf("%s was sent %d times", data, times)
		}
	}

	file := filepath.Join(t.TempDir(), "area.json.gz")
	if out, err := exec.CommandContext(t.Context(), "go", "run", sdkDir+"/go/examples/export", "-node", "http://"+nodes[1].HTTP, "-key", v.key, "-box", "0,0:69,9", "-to", file).CombinedOutput(); err != nil {
		t.Fatalf("export: %v: %s", err, out)
	}
	packed, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer packed.Close()
	plain, err := gzip.NewReader(packed)
	if err != nil {
		t.Fatal(err)
	}
	counts := make(map[string]int)
	for d := json.NewDecoder(plain); ; {
		var part struct {
			Palette []string `json:"palette"`
			Blocks  []int    `json:"blocks"`
		}
		if err := d.Decode(&part); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		for _, n := range part.Blocks {
			counts[part.Palette[n]]++
			counts["all"]++
		}
	}
	if counts["brick"] != 139 || counts["lamp"] != 1 || counts["all"] != 70*10*128 {
		t.Errorf("the file has %v", counts)
	}
}
