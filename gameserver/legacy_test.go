package gameserver

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/voxelpopuli/voxeld/chunk"
	"github.com/voxelpopuli/voxeld/gameserver/players/playerstest"
	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/internal/kv"
	"github.com/voxelpopuli/voxeld/wire"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
)

// original is a connection of VoxelPopuli's own client, which records every line except TIME.
type original struct {
	conn net.Conn

	mu struct {
		sync.Mutex
		lines []string
		times int
		ended bool
	}
}

// connect sends the handshake byte for byte, for the chunk at the origin.
func (r *harness) connect(name string) *original {
	return r.connectFrom("127.0.0.1", name, grid.ChunkPos{})
}

func (r *harness) connectFrom(address, name string, at grid.ChunkPos) *original {
	r.t.Helper()
	o := &original{conn: r.dialFrom(&net.TCPAddr{IP: net.ParseIP(address), Port: 1})}
	o.send(fmt.Sprintf(`{"type":"connect","chunk":[%d,%d],"player":%q}`, at.X, at.Z, name))
	answer := make([]byte, 2)
	if _, err := io.ReadFull(o.conn, answer); err != nil || string(answer) != "ok" {
		r.t.Fatalf("connect is answered %q (%v)", answer, err)
	}
	go o.listen()
	pass(100 * time.Millisecond)
	return o
}

func (o *original) listen() {
	in := bufio.NewReader(o.conn)
	for {
		line, err := in.ReadString('\n')
		o.mu.Lock()
		switch {
		case err != nil:
			o.mu.ended = true
			o.mu.Unlock()
			return
		case strings.HasPrefix(line, `{"type":6,`):
			o.mu.times++
		default:
			o.mu.lines = append(o.mu.lines, line)
		}
		o.mu.Unlock()
	}
}

func (o *original) send(text string) { io.WriteString(o.conn, text) } //nolint:errcheck // the test sees the effect

// received returns what has arrived since the last call.
func (o *original) received() string {
	synctest.Wait()
	o.mu.Lock()
	defer o.mu.Unlock()
	all := strings.Join(o.mu.lines, "")
	o.mu.lines = nil
	return all
}

// chunkData is CHUNK_DATA as specified in the dissertation, written without any code of wire.
func chunkData(c *chunk.Chunk) string {
	var b strings.Builder
	b.WriteString(`{"type":5,"args":[0,0`)
	for x := range 32 {
		for y := range 32 {
			for z := range 32 {
				block := c.Get(chunk.IndexOf(x, y, z)).Original()
				if y == 0 {
					block = max(block, chunk.Stone)
				}
				fmt.Fprintf(&b, ",%d", block)
			}
		}
	}
	return b.String() + `],"player":""}` + "\n"
}

func TestOriginalBytes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newHarness(t)
		expect := func(o *original, what, want string) {
			t.Helper()
			if got := o.received(); got != want {
				t.Errorf("%s:\n got %.300q\nwant %.300q", what, got, want)
			}
		}
		ann := r.connect("ann")
		expect(ann, "at first", chunkData(r.lands.truth(grid.ChunkPos{})))
		if ann.mu.times != 0 {
			t.Error("TIME before registering")
		}
		ann.send(`{"type":1,"args":[0,0],"player":"ann"}` + "\n" + `{"type":3,"args":[4.5,25,6.25,90],"player":"ann"}` + "\n")
		pass(time.Second)
		expect(ann, "of herself", "")
		if ann.mu.times < 19 || ann.mu.times > 21 {
			t.Errorf("%d TIMEs in a second, want 20", ann.mu.times)
		}

		bob := r.connect("bob")
		expect(bob, "a newcomer", chunkData(r.lands.truth(grid.ChunkPos{}))+
			`{"type":1,"args":[0,0],"player":"ann"}`+"\n"+`{"type":3,"args":[4.5,25,6.25,90],"player":"ann"}`+"\n")
		bob.send(`{"type":1,"args":[0,0],"player":"bob"}` + "\n")
		pass(100 * time.Millisecond)
		feet := ground().Surface(16, 16)
		expect(ann, "bob registers", `{"type":1,"args":[0,0],"player":"bob"}`+"\n"+
			fmt.Sprintf(`{"type":3,"args":[16.5,%d,16.5,0],"player":"bob"}`, feet)+"\n")
		bob.send(`{"type":3,"args":[7,25,8],"player":"bob"}` + "\n")
		pass(100 * time.Millisecond)
		expect(ann, "bob moves", `{"type":3,"args":[7,25,8,0],"player":"bob"}`+"\n")
		expect(bob, "bob moves", "")

		bob.send(`{"type":7,"args":[9,26,9,1],"player":"bob"}` + "\n")
		pass(100 * time.Millisecond)
		changed := chunkData(r.lands.truth(grid.ChunkPos{}))
		if r.lands.truth(grid.ChunkPos{}).Get(chunk.IndexOf(9, 26, 9)) != chunk.Stone {
			t.Fatal("the block is not there")
		}
		expect(ann, "bob builds", changed)
		expect(bob, "bob builds", changed)
		// Not in this chunk, or in none at all: ignored.
		bob.send(`{"type":7,"args":[40,26,9,1]}` + "\n" + `{"type":7,"args":[9,32,9,1]}` + "\n" + `{"type":7,"args":[9,-1,9,1]}` + "\n" +
			`{"type":7,"args":[9,20,9,999]}` + "\n")
		pass(100 * time.Millisecond)
		expect(bob, "what is no block here", "")

		// The link breaks and comes back: nobody enters twice, and the unchanged chunk is not sent again.
		r.lands.cut()
		pass(5 * time.Second)
		expect(ann, "a new link", "")

		bob.send(`{"type":2,"args":[0,0],"player":"bob"}` + "\n")
		pass(100 * time.Millisecond)
		expect(ann, "bob leaves", `{"type":2,"args":[0,0],"player":"bob"}`+"\n")
		ann.conn.Close()
		pass(100 * time.Millisecond)
		expect(bob, "ann is gone", `{"type":2,"args":[0,0],"player":"ann"}`+"\n")

		dht := r.dial()
		dht.Write([]byte(`{"type":"dht"}`)) //nolint:errcheck // the response shows errors
		query := func(bytes, want string) {
			t.Helper()
			go io.WriteString(dht, bytes) //nolint:errcheck // the response shows errors
			got := make([]byte, len(want))
			if _, err := io.ReadFull(dht, got); err != nil || string(got) != want {
				t.Errorf("query %q is answered %q (%v), want %q", bytes, got, err, want)
			}
		}
		query("", "ok")
		query("\x00[3,-2]", `{"ip":"192.0.2.7","port":4002}`+"\n")
		query("\x01"+`{"name":"bob"}`, `{"x":7,"y":25,"z":8}`)
		query("\x01"+`{"name":"ann"}`, `{"x":4.5,"y":25,"z":6.25}`)
		query("\x01"+`{"name":"zoe"}`, `{"x":0.5,"y":25,"z":0.5}`) // where new players of sessions start
	})
}

func TestOriginalHandshakes(t *testing.T) {
	for _, c := range []struct{ text, leader, want string }{
		{`{"type":"ping"}`, self, "pong"},
		{`{"type":"ping"}` + "\n", self, "pong"},
		{`{"type":"generate","chunk":[5,5]}`, "other", "ok"},
		{`{"type":"connect","chunk":[0,0],"player":"ann"}`, "other", "no"},
		{`{"type":"connect","chunk":[0],"player":"ann"}`, self, "no"},
		{`GET / HTTP/1.1`, self, "no"},
		{strings.Repeat(" ", wire.MaxHandshake+1), self, "no"},
		{`{"type":"join","version":1,"name":"` + strings.Repeat("a", 1000) + `","view":1,"encoding":"json"}`, self, `{"type":"failure","code":"bad_name"`},
	} {
		synctest.Test(t, func(t *testing.T) {
			r := newHarness(t)
			r.lands.leader = c.leader
			conn := r.dial()
			go io.WriteString(conn, c.text) //nolint:errcheck // it may be refused before everything is sent
			got, err := io.ReadAll(conn)
			if err != nil || !strings.HasPrefix(string(got), c.want) || strings.HasPrefix(c.want, "n") && len(got) != 2 {
				t.Errorf("handshake %.60q is answered %q (%v), want %q", c.text, got, err, c.want)
			}
		})
	}
}

func TestOriginalsAndSessionsMeet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newHarness(t)
		bob := r.connect("bob")
		bob.received()
		ann := r.join("ann", 1)
		if got := bob.received(); !strings.HasPrefix(got, `{"type":1,"args":[0,0],"player":"ann"}`+"\n"+`{"type":3,"args":[0.5,25,0.5,0],"player":"ann"}`) {
			t.Errorf("bob received %q", got)
		}
		bob.send(`{"type":1,"args":[0,0],"player":"bob"}` + "\n" + `{"type":3,"args":[4,25,4],"player":"bob"}` + "\n")
		ann.put(grid.Pos{X: 2, Y: 25, Z: 3}, chunk.Brick)
		pass(time.Second)
		if len(ann.mu.avatars) != 2 {
			t.Errorf("ann sees %d avatars", len(ann.mu.avatars))
		}
		if got := bob.received(); got != chunkData(r.lands.truth(grid.ChunkPos{})) {
			t.Errorf("bob received %.100q", got)
		}
		// Somebody builds while the region is away: all get the chunk anew.
		r.lands.down(true)
		r.lands.commit(nodemsg.Intent{Player: guestID("zoe"), Seq: 1, Pos: grid.Pos{X: 9, Y: 25, Z: 9}, Block: chunk.Log})
		r.lands.down(false)
		pass(10 * time.Second)
		ann.sees(r.lands, 1)
		if got := bob.received(); got != chunkData(r.lands.truth(grid.ChunkPos{})) {
			t.Errorf("bob received %.100q, want the chunk alone", got)
		}
		// An invalid packet ends the connection, and bob's body leaves.
		bob.send(`[3]` + "\n")
		pass(time.Second)
		if !bob.mu.ended || len(ann.mu.avatars) != 1 {
			t.Errorf("bob's connection ended: %v, ann sees %d avatars", bob.mu.ended, len(ann.mu.avatars))
		}
	})
}

// Players build within their reach, and not into anybody. Without a registered player a connection edits its own chunk:
// the released client does so after a reset.
func TestOriginalsBuildWhereTheyAre(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newHarness(t)
		ann, bob := r.connect("ann"), r.connect("bob")
		bob.send(`{"type":1,"args":[0,0]}` + "\n" + `{"type":3,"args":[12.5,25,4.5]}` + "\n")
		pass(100 * time.Millisecond)
		builds := func(what string, pos grid.Pos, want bool) {
			t.Helper()
			at := chunk.At(pos)
			block := 1 + r.lands.truth(grid.ChunkPos{}).Get(at)%2
			ann.send(fmt.Sprintf(`{"type":7,"args":[%d,%d,%d,%d]}`+"\n", pos.X, pos.Y, pos.Z, block))
			pass(100 * time.Millisecond)
			if got := r.lands.truth(grid.ChunkPos{}).Get(at) == block; got != want {
				t.Errorf("%s: builds %v, want %v", what, got, want)
			}
		}
		near, far := grid.Pos{X: 10, Y: 26, Z: 4}, grid.Pos{X: 30, Y: 26, Z: 30}
		builds("not registered", near, true)
		builds("not registered, into bob", grid.Pos{X: 12, Y: 25, Z: 4}, false)
		ann.send(`{"type":1,"args":[0,0]}` + "\n")
		builds("has not moved", far, true)
		builds("has not moved, into bob", grid.Pos{X: 12, Y: 25, Z: 4}, false)
		ann.send(`{"type":3,"args":[100,25,8]}` + "\n") // three chunks away from where she registered
		builds("first move is too far", far, true)
		ann.send(`{"type":3,"args":[8.5,25,4.5]}` + "\n")
		builds("near", near, true)
		builds("far", far, false)
		builds("into herself", grid.Pos{X: 8, Y: 26, Z: 4}, false)
		builds("into bob", grid.Pos{X: 12, Y: 25, Z: 4}, false)
		builds("farther than a session", grid.Pos{X: 17, Y: 26, Z: 4}, true)
		builds("too far", grid.Pos{X: 18, Y: 26, Z: 4}, false)

		ann.send(`{"type":2,"args":[0,0]}` + "\n")
		builds("no longer registered", near, true)
		other := r.connect("ann")
		other.send(`{"type":1,"args":[0,0]}` + "\n" + `{"type":3,"args":[8.5,25,4.5]}` + "\n")
		pass(100 * time.Millisecond)
		builds("registered on her other connection", near, true)
		other.conn.Close()
		pass(100 * time.Millisecond)
		builds("that one has ended", near, true)
		ann.conn.Close()
		pass(100 * time.Millisecond)
		if n := r.g.sessions.Reserved(); n != 1 {
			t.Errorf("%d players are known, want bob alone", n)
		}
	})
}

// The place of a player who is here is answered from memory, also while they are being saved.
func TestWhereIsAPlayerWhoIsHere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		disk := &slowDisk{Memory: playerstest.NewMemory(), gate: make(chan struct{})}
		r := newHarness(t, func(o *Options) { o.Storage = disk })
		dht := r.dial()
		ask := func(name, want string) {
			t.Helper()
			go fmt.Fprintf(dht, "\x01{\"name\":%q}", name)
			got := make([]byte, len(want))
			if _, err := io.ReadFull(dht, got); err != nil || string(got) != want {
				t.Errorf("%s is at %q (%v), want %q", name, got, err, want)
			}
		}
		go io.WriteString(dht, `{"type":"dht"}`) //nolint:errcheck // the response shows errors
		if _, err := io.ReadFull(dht, make([]byte, 2)); err != nil {
			t.Fatal(err)
		}
		bob := r.connect("bob")
		bob.send(`{"type":1,"args":[0,0]}` + "\n" + `{"type":3,"args":[7,25,8]}` + "\n")
		r.join("ann", 1)
		ask("bob", `{"x":7,"y":25,"z":8}`)
		ask("ann", `{"x":0.5,"y":25,"z":0.5}`)
		bob.send(`{"type":3,"args":[9,25,8]}` + "\n" + `{"type":2,"args":[0,0]}` + "\n")
		pass(100 * time.Millisecond)
		ask("bob", `{"x":9,"y":25,"z":8}`)
		close(disk.gate)
		pass(100 * time.Millisecond)
		ask("bob", `{"x":9,"y":25,"z":8}`)
	})
}

// slowDisk commits nothing until its gate is opened.
type slowDisk struct {
	*playerstest.Memory
	gate chan struct{}
}

func (d *slowDisk) Commit(writes []kv.Write) error {
	<-d.gate
	return d.Memory.Commit(writes)
}

// All connections of an address share the limit on founding, and wait.
func TestFoundingBudget(t *testing.T) {
	const foundingsAtOnce = 100 // of an address
	for _, c := range []struct {
		address string
		asks    int
		least   time.Duration
	}{
		{"192.0.2.1", foundingsAtOnce, 0},
		{"192.0.2.1", foundingsAtOnce + 40, 2 * time.Second},
		{"127.0.0.1", foundingsAtOnce + 40, 0},
	} {
		synctest.Test(t, func(t *testing.T) {
			r := newHarness(t)
			began := time.Now()
			for i := range c.asks {
				conn := r.dialFrom(&net.TCPAddr{IP: net.ParseIP(c.address), Port: i + 1})
				go fmt.Fprintf(conn, `{"type":"generate","chunk":[%d,0]}`, 16*i) // each in another region
				if got, err := io.ReadAll(conn); err != nil || string(got) != "ok" {
					t.Fatalf("answered %q (%v)", got, err)
				}
			}
			if took := time.Since(began); took < c.least || took > c.least+100*time.Millisecond {
				t.Errorf("%d handshakes from %s took %v, want %v", c.asks, c.address, took, c.least)
			}
		})
	}
}
