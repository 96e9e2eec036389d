package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"

	"github.com/voxelpopuli/voxeld/chunk"
	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/wire"
	"github.com/voxelpopuli/voxeld/wire/sessionmsg"
)

// A client that sends invalid input gets one clear error. Other clients keep playing.
func TestBadInputHurtsNobodyElse(t *testing.T) {
	t.Parallel()
	d := startDaemon(t)
	ann := join(t, d.Game, "ann", 2)
	place := under(ann, 1, 1, 0)
	ann.until("the ground", func() bool { _, ok := ann.at(place); return ok })
	placed := chunk.Brick
	stillPlays := func(t *testing.T) {
		t.Helper()
		ann.put(place, placed)
		ann.sees(place, placed)
		placed = map[chunk.Block]chunk.Block{chunk.Brick: chunk.Glass, chunk.Glass: chunk.Brick}[placed]
	}

	t.Run("handshakes", func(t *testing.T) {
		for _, bad := range []string{
			"\n\n\x00\xff", `{"type":"connect"`, `{"type":"connect","chunk":[0],"player":"x"}` + "\n",
			`{"type":"connect","chunk":[99999999999,0],"player":"x"}`, `{"type":"fly"}`, `{"type":"dht","type":"ping"}`,
			`GET / HTTP/1.1` + "\r\n\r\n", strings.Repeat("a", 1<<20),
		} {
			c := dialOriginal(t, d.Game)
			fmt.Fprint(c.conn, bad)
			if half, ok := c.conn.(*net.TCPConn); ok {
				half.CloseWrite()
			}
			if said := c.closed(); said != "no" && said != "" {
				t.Errorf("handshake %.60q is answered %q, want no", bad, said)
			}
		}
		stillPlays(t)
	})

	t.Run("packets", func(t *testing.T) {
		for _, bad := range []string{
			`{"type":3,"args":[NaN,0,0],"player":"eve"}`, `{"type":"3","args":[1,2,3]}`,
			`{"type":3,"args":[1,2,3],"args":[1,2,3],"player":"eve"}`,
			"{\"type\":3,\"args\":[1,2,3],\"player\":\"\xff\"}", strings.Repeat("x", 1<<20),
		} {
			c := dialOriginal(t, d.Game)
			c.send(`{"type":"connect","chunk":[0,0],"player":"eve"}`)
			c.expect("ok")
			c.packet(5)
			fmt.Fprintln(c.conn, bad)
			c.closed()
		}
		// What VoxelPopuli's own server ignores has no effect.
		c := dialOriginal(t, d.Game)
		c.send(`{"type":"connect","chunk":[0,0],"player":"two words\u0007"}`)
		c.expect("ok")
		for _, odd := range []string{
			`{"type":3,"args":[1e999,0,0],"player":"eve"}`, `{"type":3,"args":"here","player":"eve"}`, `{"type":99,"args":[],"player":"eve"}`,
			`{"type":7,"args":[1,2,3,70000],"player":"eve"}`, `{"type":1,"args":[0,0],"player":"mallory"}`,
		} {
			fmt.Fprintln(c.conn, odd)
		}
		c.packet(6)
		stillPlays(t)
	})

	t.Run("queries", func(t *testing.T) {
		for _, bad := range []string{"\x02", "\x00[1]", "\x00{}", "\x01{\"name\":7}", "\x00[" + strings.Repeat("1", 1<<20)} {
			c := dialOriginal(t, d.Game)
			c.send(`{"type":"dht"}`)
			c.expect("ok")
			fmt.Fprint(c.conn, bad)
			if said := c.closed(); said != "" {
				t.Errorf("query %.40q is answered %q", bad, said)
			}
		}
		stillPlays(t)
	})

	t.Run("messages", func(t *testing.T) {
		for bad, code := range map[string]string{
			`{"type":"move","x":1e999,"y":0,"z":0,"yaw":0,"pitch":0}`:             wire.FailBadValue,
			`{"type":"move","x":NaN,"y":0,"z":0,"yaw":0,"pitch":0}`:               wire.FailBadJSON,
			`{"type":"move","x":"0","y":0,"z":0,"yaw":0,"pitch":0}`:               wire.FailBadType,
			`{"type":"move","x":0}`:                                               wire.FailMissingField,
			`{"type":"fly"}`:                                                      wire.FailUnknownMessage,
			`{"type":"chat","text":"a","text":"b"}`:                               wire.FailBadJSON,
			`{"type":"chat","text":"bell\u0007"}`:                                 wire.FailBadValue,
			`{"type":"edit","seq":1,"x":0.5,"y":0,"z":0,"block":1}`:               wire.FailBadValue,
			`{"type":"join","version":1,"name":"eve","view":2,"encoding":"json"}`: wire.FailUnexpected,
			`not json`: wire.FailBadJSON,
			`{"type":"chat","text":"` + strings.Repeat("a", 1<<20) + `"}`:            wire.FailTooLong,
			`[` + strings.Repeat(`[`, 5000) + `]`:                                    wire.FailBadJSON,
			`{"type":"move","x":0,"y":0,"z":0,"yaw":0,"pitch":0,"` + "\xff" + `":1}`: wire.FailBadJSON,
			`{"type":"move","x":0,"y":0,"z":0,"yaw":0,"pitch":0,"speed":9}`:          wire.FailUnknownField,
		} {
			eve := join(t, d.Game, "eve", 1)
			fmt.Fprintln(eve.Conn, bad)
			if got := eve.ended(); got != code {
				t.Errorf("message %.60q ends with %q, want %q", bad, got, code)
			}
		}
		stillPlays(t)
	})

	t.Run("joins", func(t *testing.T) {
		for bad, code := range map[string]string{
			`{"type":"join","version":1,"name":"two words","view":2,"encoding":"json"}`:       wire.FailBadName,
			`{"type":"join","version":1,"name":"bell\u0007","view":2,"encoding":"json"}`:      wire.FailBadName,
			`{"type":"join","version":9,"name":"eve","view":2,"encoding":"json"}`:             wire.FailWrongVersion,
			`{"type":"join","version":1,"name":"eve","view":0,"encoding":"json"}`:             wire.FailBadValue,
			`{"type":"join","version":1,"name":"eve","view":2,"encoding":"xml"}`:              wire.FailBadValue,
			`{"type":"join","version":1,"name":"eve","view":2,"encoding":"json","key":"abc"}`: wire.FailBadKey,
		} {
			c := dialOriginal(t, d.Game)
			c.send(bad)
			var failure sessionmsg.Failure
			if err := json.Unmarshal([]byte(c.closed()), &failure); err != nil || failure.Code != code {
				t.Errorf("join %.80q ends with %+v (%v), want %q", bad, failure, err, code)
			}
		}
		stillPlays(t)
	})

	t.Run("edits", func(t *testing.T) {
		eve := join(t, d.Game, "eve", 2)
		near := under(eve, 1, 1, 1)
		eve.until("the ground", func() bool { _, ok := eve.at(near); return ok })
		for _, bad := range []struct {
			pos  grid.Pos
			b    chunk.Block
			code string
		}{
			{grid.Pos{X: near.X, Y: -1, Z: near.Z}, chunk.Stone, wire.RefusedOutOfWorld},
			{grid.Pos{X: near.X, Y: 128, Z: near.Z}, chunk.Stone, wire.RefusedOutOfWorld},
			{grid.Pos{X: near.X + 25, Y: near.Y, Z: near.Z}, chunk.Stone, wire.RefusedOutOfReach},
			{grid.Pos{X: near.X + 500, Y: near.Y, Z: near.Z}, chunk.Stone, wire.RefusedNotLoaded},
			{near, 999, wire.RefusedUnknownBlock},
			{near, chunk.Bedrock, wire.RefusedNotPlaceable},
			{under(eve, 0, 0, 0), chunk.Stone, wire.RefusedInsidePlayer},
		} {
			eve.until("the land", func() bool { return len(eve.Chunks) == 25 })
			seq := eve.edit(bad.pos, bad.b)
			eve.until("an answer", func() bool { _, ok := eve.Acks[seq]; return ok })
			if got := eve.Acks[seq].Error; got != bad.code {
				t.Errorf("edit of %v to %v is answered %q, want %q", bad.pos, bad.b, got, bad.code)
			}
		}
		eve.leave()
		stillPlays(t)
	})

	t.Run("teleport", func(t *testing.T) {
		eve := join(t, d.Game, "eve", 1)
		pose := eve.Welcome.Pose
		pose.X += 500
		eve.send(sessionmsg.Move{Pose: pose})
		corrected := false
		for !corrected {
			select {
			case m := <-eve.Inbox:
				c, ok := m.FromServer.(sessionmsg.Correction)
				if corrected = ok; ok && (c.X != eve.Welcome.Pose.X || c.Reason == "") {
					t.Errorf("corrected to %+v, want %+v", c, eve.Welcome.Pose)
				}
			case <-time.After(10 * time.Second):
				t.Fatal("a jump of 500 blocks is not corrected")
			}
		}
		eve.leave()
		stillPlays(t)
	})

	t.Run("websocket", func(t *testing.T) {
		ws, _, err := websocket.Dial(t.Context(), "ws://"+d.HTTP+"/ws", nil) //nolint:bodyclose // the library closes it
		if err != nil {
			t.Fatal(err)
		}
		defer ws.CloseNow()
		if err := ws.Write(t.Context(), websocket.MessageText, bytes.Repeat([]byte("a"), 1<<20)); err != nil {
			t.Fatal(err)
		}
		_, data, err := ws.Read(t.Context())
		if err != nil || !bytes.Contains(data, []byte(wire.FailTooLong)) {
			t.Errorf("a message of 1 MiB is answered %.200q, %v", data, err)
		}
		stillPlays(t)
	})

	t.Run("half-open and slow", func(t *testing.T) {
		var idle []*original
		for range 50 {
			c := dialOriginal(t, d.Game)
			c.send(`{"type":"conn`)
			idle = append(idle, c)
		}
		stillPlays(t)
		if said := idle[0].closed(); said != "no" && said != "" { // after wire.HandshakeTimeout
			t.Errorf("a handshake that never ends is answered %q", said)
		}
	})

	t.Run("http", func(t *testing.T) {
		for path, want := range map[string]int{"/": 200, "/healthz": 200, "/readyz": 200, "/../../etc/passwd": 404, "/nothing": 404, "/ws": 426} {
			response, err := http.Get("http://" + d.HTTP + path)
			if err != nil {
				t.Fatal(err)
			}
			response.Body.Close()
			if response.StatusCode != want {
				t.Errorf("GET %s: %d, want %d", path, response.StatusCode, want)
			}
		}
	})
}

// Each operator mistake gets one line that says what to do, and an exit code for scripts.
func TestOperatorsMistakes(t *testing.T) {
	t.Parallel()
	d := startDaemon(t)
	other := startDaemon(t)
	base := func(dir string, more ...string) []string {
		return append([]string{"run", "--data-dir", dir, "--listen", "/ip4/127.54.0.1/tcp/4001", "--game", "127.54.0.1:0", "--http", "127.54.0.1:0", "--metrics", ""}, more...)
	}
	precious := filepath.Join(t.TempDir(), "diary.txt")
	if err := os.WriteFile(precious, []byte("dear diary"), 0o600); err != nil {
		t.Fatal(err)
	}
	never := filepath.Join(t.TempDir(), "never") // no failed start creates it
	planned := t.TempDir()
	if _, errs, code := voxeld(t, "init", "--data-dir", planned, "--name", "Mine"); code != 0 {
		t.Fatalf("init: exit %d: %s", code, errs)
	}
	for name, c := range map[string]struct {
		args   []string
		code   int
		output []string
	}{
		"data directory in use": {base(d.dir), exitData, []string{d.dir, "in use"}},
		"http port taken":       {base(never, "--http", d.HTTP), exitFailed, []string{d.HTTP, "in use", "--http"}},
		"game port taken":       {base(never, "--game", d.Game), exitFailed, []string{d.Game, "in use", "--game"}},
		"metrics port taken":    {base(never, "--metrics", d.Metrics), exitFailed, []string{d.Metrics, "in use", "--metrics"}},
		"libp2p port taken":     {base(t.TempDir(), "--listen", "/ip4/"+d.ip+"/tcp/4001"), exitFailed, []string{"4001", "--listen"}},
		"unknown flag":          {base(t.TempDir(), "--portt", "1"), exitUsage, []string{"--portt", "--help"}},
		"bad option":            {base(t.TempDir(), "--view-distance", "99"), exitUsage, []string{"--view-distance", "1 to 12"}},
		"broken token":          {base(t.TempDir(), "--join", "vx1nonsense"), exitUsage, []string{"token"}},
		"no node to ask":        {[]string{"status", "--data-dir", t.TempDir()}, exitFailed, []string{"no node runs"}},
		"too short a day":       {[]string{"init", "--data-dir", t.TempDir(), "--day-length", "1s"}, exitUsage, []string{"day length", "1m0s"}},
		"too high a world":      {[]string{"init", "--data-dir", t.TempDir(), "--sections", "99"}, exitUsage, []string{"sections", "1 to 32"}},
		"world there already":   {[]string{"init", "--data-dir", d.dir}, exitData, []string{"in use"}},
		"planned already":       {[]string{"init", "--data-dir", planned}, exitData, []string{"Mine", "--data-dir"}},
		"planned, and joining":  {base(planned, "--join", other.invite()), exitData, []string{"Mine", "--data-dir"}},
		"admin path is a file":  {base(t.TempDir(), "--admin", precious), exitUsage, []string{precious, "--admin"}},
		"admin path in use":     {base(t.TempDir(), "--admin", filepath.Join(d.dir, "admin.sock")), exitFailed, []string{"another daemon", "--admin"}},
		"unknown command":       {[]string{"stauts"}, exitUsage, []string{"stauts", "did you mean status", "--help"}},
		"a letter is missing":   {[]string{"rn"}, exitUsage, []string{"did you mean run?"}},
		"token for no time":     {[]string{"invite", "--data-dir", d.dir, "--expires", "0"}, exitUsage, []string{"--expires 0s", "never be used"}},
		"argument to run":       {[]string{"run", "extra"}, exitUsage, []string{"run takes no arguments", "extra"}},
		"no node to appoint":    {[]string{"peers", "appoint"}, exitUsage, []string{"voxeld peers appoint: accepts 1 arg", "--help"}},
		"two cells to scrub":    {[]string{"region", "scrub", "0,0/0110", "0,0/0111"}, exitUsage, []string{"voxeld region scrub: accepts at most 1 arg", "--help"}},
		"argument to status":    {[]string{"status", "extra"}, exitUsage, []string{"status takes no arguments"}},
		"command of a group":    {[]string{"region", "scrubb"}, exitUsage, []string{`no command "voxeld region scrubb" (did you mean scrub?)`}},
		"flag without dashes":   {[]string{"version"}, exitUsage, []string{`no command "voxeld version" (did you mean --version?)`}},
		"no bots":               {[]string{"bot", "--players", "0"}, exitUsage, []string{"--players"}},
		"bots without time":     {[]string{"bot", "--duration", "0"}, exitUsage, []string{"--duration"}},
		"bots with less":        {[]string{"bot", "--rate", "-1"}, exitUsage, []string{"--rate"}},
		"bots over pigeons":     {[]string{"bot", "--carrier", "pigeons"}, exitUsage, []string{"--carrier pigeons", "websocket or tcp"}},
		"bots by a wrong URL":   {[]string{"bot", "--target", "http://127.54.0.1:8080"}, exitUsage, []string{"begins with ws://"}},
		"a URL over TCP":        {[]string{"bot", "--carrier", "tcp", "--target", "ws://127.54.0.1:8080/ws"}, exitUsage, []string{"--target", "host:port"}},
		"bots without a node":   {[]string{"bot", "--target", "127.54.0.1:4002", "--players", "2", "--duration", "2s"}, exitFailed, []string{"none of 2", "connection refused"}},
		"health of nothing":     {[]string{"healthcheck", "--http", "nowhere"}, exitUsage, []string{"nowhere", "host:port"}},
	} {
		out, errs, code := voxeld(t, c.args...)
		if code != c.code {
			t.Errorf("%s: exit %d, want %d: %s%s", name, code, c.code, out, errs)
		}
		for _, output := range c.output {
			if !strings.Contains(errs, output) {
				t.Errorf("%s: %q does not say %q", name, errs, output)
			}
		}
	}

	if kept, err := os.ReadFile(precious); err != nil || string(kept) != "dear diary" {
		t.Errorf("the file at --admin is now %q, %v", kept, err)
	}
	if _, err := os.Lstat(never); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a failed start left its data directory: %v", err)
	}
	d.ask("status", &d.Status) // its socket is still there

	// A data directory of one world cannot join another.
	token := other.invite()
	d.kill()
	_, errs, code := voxeld(t, base(d.dir, "--join", token)...)
	if code != exitData || !strings.Contains(errs, "another world") {
		t.Errorf("joining another world: exit %d: %s", code, errs)
	}
}

// A node that is stopped saves its players, sends its clients the reason and exits with 0.
func TestNodeStopsInOrder(t *testing.T) {
	d := startDaemon(t)
	ann := join(t, d.Game, "ann", 1)
	if code := d.terminate(); code != 0 {
		t.Errorf("exit %d after SIGTERM", code)
	}
	if got := ann.ended(); got != wire.FailShuttingDown {
		t.Errorf("ann's session ended with %q, want %q", got, wire.FailShuttingDown)
	}
}

// What runs init before each start, such as an init container, succeeds also when there is a world planned, and changes
// nothing.
func TestInitKeeps(t *testing.T) {
	dir := t.TempDir()
	for i, name := range []string{"First", "Second", "Third"} {
		out, errs, code := voxeld(t, "init", "--keep", "--data-dir", dir, "--name", name)
		if code != 0 || !strings.Contains(out, "First") || strings.Contains(out, "Nothing to do") != (i > 0) {
			t.Errorf("init --keep as %s: exit %d: %s%s", name, code, out, errs)
		}
	}
}
