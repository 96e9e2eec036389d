package gameserver

import (
	"fmt"
	"io"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/motion"
	"github.com/voxelpopuli/voxeld/wire/sessionmsg"
)

// handshake returns the answer to a handshake from an address.
func (r *harness) handshake(address, text string) string {
	r.t.Helper()
	conn := r.dialFrom(&net.TCPAddr{IP: net.ParseIP(address), Port: 9})
	defer conn.Close()
	go io.WriteString(conn, text) //nolint:errcheck // the answer shows errors
	answer := make([]byte, 2)
	if _, err := io.ReadFull(conn, answer); err != nil {
		return err.Error()
	}
	return string(answer)
}

// foundedCells returns how many cells were founded.
func (l *lands) foundedCells() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.mu.founded)
}

// Nobody has land founded by asking for it. It is founded where clients begin, and around the players of clients, as
// far as they see: a region in ten seconds for each address, besides as many at once as it may have players.
func TestOriginalsFoundWhatTheirPlayersSee(t *testing.T) {
	const address = "192.0.2.1"
	synctest.Test(t, func(t *testing.T) {
		r := newHarness(t, func(o *Options) { o.Admission.PerAddress = 3 })
		r.lands.mu.wild = true
		dht := r.dialFrom(&net.TCPAddr{IP: net.ParseIP(address), Port: 1})
		go io.WriteString(dht, `{"type":"dht"}`+"\x00[4000,0]") //nolint:errcheck // the answer shows errors
		answered := make([]byte, 2)
		if _, err := io.ReadFull(dht, answered); err != nil || string(answered) != "ok" {
			t.Fatalf("dht is answered %q (%v)", answered, err)
		}
		for i := range 200 {
			for _, kind := range []string{`"generate"`, `"connect","player":"eve"`} {
				if got := r.handshake("192.0.2.9", fmt.Sprintf(`{"type":%s,"chunk":[%d,0]}`, kind, 100+16*i)); got != "no" {
					t.Fatalf("%s far away is answered %q", kind, got)
				}
			}
		}
		pass(5 * time.Minute)
		if n := r.lands.foundedCells(); n != 0 {
			t.Errorf("strangers have founded %d cells", n)
		}
		if got := r.handshake(address, `{"type":"generate","chunk":[-5,4]}`); got != "ok" {
			t.Errorf("a chunk near the spawn is answered %q", got)
		}

		begun := time.Now()
		at := int32(0)
		for at < 16*12 {
			client := r.connectFrom(address, "ann", grid.ChunkPos{X: at})
			client.send(`{"type":1,"args":[0,0],"player":"ann"}` + "\n")
			next := fmt.Sprintf(`{"type":"generate","chunk":[%d,0]}`, at+4)
			for r.handshake(address, next) != "ok" {
				pass(time.Second)
			}
			if beyond := fmt.Sprintf(`{"type":"generate","chunk":[%d,0]}`, at+22); r.handshake(address, beyond) != "no" {
				t.Errorf("from chunk %d the player reaches %s", at, beyond)
			}
			client.conn.Close()
			pass(time.Second)
			at += 4
		}
		n := r.lands.foundedCells()
		if took := time.Since(begun); took < time.Duration(n-8)*10*time.Second || n < 2*12 || n > 2*14 {
			t.Errorf("a walk of %d chunks has founded %d cells in %v", at, n, took)
		}
	})
}

// Land that was given up is founded again around the players of clients, and not by questions for it.
func TestOriginalsFoundAgainWhatWasGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const address = "192.0.2.1"
		r := newHarness(t)
		r.lands.mu.wild = true
		near, beyond := grid.ChunkPos{X: 12}, grid.ChunkPos{X: 17}
		visit := func() {
			client := r.connectFrom(address, "ann", near)
			client.send(`{"type":1,"args":[0,0],"player":"ann"}` + "\n")
			pass(time.Minute)
			client.conn.Close()
		}
		founded := func(when string, want bool) {
			t.Helper()
			r.lands.mu.Lock()
			defer r.lands.mu.Unlock()
			if got := r.lands.mu.founded[grid.CellAt(beyond, grid.FoundingLabel)] > 0; got != want {
				t.Errorf("%s, the land is founded: %v", when, got)
			}
		}
		r.handshake(address, `{"type":"generate","chunk":[5,0]}`)
		visit()
		founded("after a visit", true)
		pass(25 * time.Hour)
		r.lands.giveUp(beyond)
		dht := r.dialFrom(&net.TCPAddr{IP: net.ParseIP("192.0.2.9"), Port: 1})
		go io.WriteString(dht, `{"type":"dht"}`+"\x00[17,0]") //nolint:errcheck // founded shows errors
		pass(time.Minute)
		founded("after a stranger's question", false)
		dht.Close()
		r.lands.giveUp(beyond)
		visit()
		founded("after another visit", true)
		if got := r.handshake(address, `{"type":"generate","chunk":[17,0]}`); got != "ok" {
			t.Errorf("a chunk near the player is answered %q", got)
		}
	})
}

// A question for land that nobody has founded costs little for as long as it waits, all of an address together no more
// than they may ask for land, and is answered soon after the land is founded.
func TestQuestionsForUnfoundedLand(t *testing.T) {
	for waiting, most := range map[int]int{1: 70, 400: 10*60*20 + 100} {
		t.Run(fmt.Sprint(waiting), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newHarness(t)
				r.lands.mu.wild = true
				var last net.Conn
				for i := range waiting {
					last = r.dialFrom(&net.TCPAddr{IP: net.ParseIP("192.0.2.1"), Port: 1 + i})
					go io.WriteString(last, `{"type":"dht"}`+"\x00[4000,0]") //nolint:errcheck // the answer shows errors
					if _, err := io.ReadFull(last, make([]byte, len("ok"))); err != nil {
						t.Fatal(err)
					}
				}
				pass(9*time.Minute + 50*time.Second)
				r.lands.mu.Lock()
				asked := r.lands.mu.asked
				r.lands.mu.Unlock()
				if asked < most/2 || asked > most {
					t.Errorf("the catalog was asked %d times, want %d at most", asked, most)
				}
				if waiting > 1 {
					return
				}
				if _, err := r.lands.Locate(t.Context(), grid.ChunkPos{X: 4000}); err != nil {
					t.Fatal(err)
				}
				answered := make(chan error, 1)
				go func() {
					_, err := io.ReadFull(last, make([]byte, len(`{"ip":`)))
					answered <- err
				}()
				pass(10 * time.Second)
				select {
				case err := <-answered:
					if err != nil {
						t.Error(err)
					}
				default:
					t.Error("no answer after the land was founded")
				}
			})
		})
	}
}

// What is outside of the border is not founded for players outside, and nothing for those who are banned.
func TestBansAndBordersHoldForFoundings(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		world := newPeople()
		r := newHarness(t, func(o *Options) { o.People = world })
		r.lands.mu.wild = true
		world.operate(t, "set border 640")
		world.operate(t, "ban 192.0.2.9")
		pass(time.Second)
		if got := r.handshake("192.0.2.9", `{"type":"generate","chunk":[0,0]}`); got != "no" {
			t.Errorf("a banned address is answered %q", got)
		}
		for at, want := range map[int32]string{19: "ok", 40: "no"} { // a program on this machine
			if got := r.handshake("127.0.0.1", fmt.Sprintf(`{"type":"generate","chunk":[0,%d]}`, at)); got != want {
				t.Errorf("chunk %d is answered %q on loopback, want %q", at, got, want)
			}
		}
		if n := r.lands.foundedCells(); n != 1 {
			t.Errorf("%d cells are founded, want one", n)
		}
		for at := range int32(60) { // the border is in chunk 20
			client := r.connectFrom("192.0.2.1", "ann", grid.ChunkPos{X: at})
			client.send(`{"type":1,"args":[0,0],"player":"ann"}` + "\n")
			pass(time.Second)
			client.conn.Close()
			pass(time.Second)
			if got := r.handshake("192.0.2.1", fmt.Sprintf(`{"type":"generate","chunk":[%d,0]}`, at+1)); got != "ok" {
				if at < 31 {
					t.Errorf("chunk %d is answered %q", at+1, got)
				}
				return
			}
		}
		t.Error("the land goes on beyond the border")
	})
}

// The idle original connections of an address are in so many regions at most, four for each of its players.
func TestConnectionsOfAnAddress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newHarness(t, func(o *Options) { o.Admission.PerAddress = 2 })
		connected := int32(0)
		for connected < 40 {
			if !r.staysConnected("2001:db8::1", grid.ChunkPos{X: 16 * connected}) {
				break
			}
			connected++
		}
		if connected != 8 {
			t.Errorf("%d connections to other regions are accepted", connected)
		}
		for i := range connected {
			if !r.staysConnected("2001:db8::2", grid.ChunkPos{X: 16 * i}) {
				t.Fatalf("chunk %d is refused the second time", i)
			}
		}
		for i := range int32(8) {
			if !r.staysConnected("2001:db8::2", grid.ChunkPos{X: 1 + i}) {
				t.Errorf("chunk %d of a region is refused", i)
			}
		}
		for _, other := range []string{"2001:db8:0:1::1", "127.0.0.1"} {
			if !r.staysConnected(other, grid.ChunkPos{X: 16 * 40}) {
				t.Errorf("one from %s is refused", other)
			}
		}
	})
}

// What sessions see takes nothing from the original clients of their address.
func TestConnectionsBesideASession(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const address, view = "2001:db8::1", 12
		r := newHarness(t, func(o *Options) { o.Admission.PerAddress, o.Admission.MaxView = 2, view })
		c := newClient(t, r.dialFrom(&net.TCPAddr{IP: net.ParseIP(address), Port: 1}))
		c.open(sessionmsg.Join{Version: sessionmsg.SessionVersion, Name: "bob", View: 1, Encoding: r.encoding})
		pass(100 * time.Millisecond)
		c.send(sessionmsg.Command{Text: "visit 256 25 256"})
		pass(100 * time.Millisecond)
		c.send(sessionmsg.Move{Pose: motion.Pose{X: 256.5, Y: 25, Z: 256.5}})
		c.send(sessionmsg.View{View: view})
		pass(2 * time.Second)
		cells := make(map[grid.Cell]bool)
		c.look(func() {
			for at := range c.mu.chunks {
				cells[grid.CellAt(at, grid.FoundingLabel)] = true
			}
		})
		if len(cells) != 9 {
			t.Fatalf("the session sees %d cells", len(cells))
		}
		for i := range int32(9) { // the first is in view of the session
			if got := r.staysConnected(address, grid.ChunkPos{X: 16 * i}); got != (i < 8) {
				t.Errorf("a connection to another region, after %d, is accepted: %v", i, got)
			}
		}
	})
}

// staysConnected connects an original client from an address to a chunk, and reports whether that was accepted.
func (r *harness) staysConnected(address string, at grid.ChunkPos) bool {
	r.t.Helper()
	conn := r.dialFrom(&net.TCPAddr{IP: net.ParseIP(address), Port: 1})
	go fmt.Fprintf(conn, `{"type":"connect","chunk":[%d,%d],"player":"ann"}`, at.X, at.Z)
	answer := make([]byte, 2)
	if _, err := io.ReadFull(conn, answer); err != nil {
		r.t.Fatal(err)
	}
	if string(answer) != "ok" {
		conn.Close()
		return false
	}
	go io.Copy(io.Discard, conn) //nolint:errcheck // until the harness closes it
	pass(50 * time.Millisecond)
	return true
}

// Players of one address who are together see as far as they want, however many they are; of those who are far apart
// only a few do, the others see what is near, and are told why, once. They see farther once there is room. Other
// addresses are not concerned.
func TestViewsOfAnAddress(t *testing.T) {
	const view, whole, near = 12, 25 * 25, 11 * 11
	synctest.Test(t, func(t *testing.T) {
		r := newHarness(t, func(o *Options) { o.Admission.PerAddress, o.Admission.MaxView = 40, view })
		join := func(address, name string, at float64) *client {
			t.Helper()
			c := newClient(t, r.dialFrom(&net.TCPAddr{IP: net.ParseIP(address), Port: 1}))
			c.from = grid.Pos{X: int32(at), Y: 25, Z: 256}
			c.open(sessionmsg.Join{Version: sessionmsg.SessionVersion, Name: name, View: 1, Encoding: r.encoding})
			pass(100 * time.Millisecond)
			c.send(sessionmsg.Command{Text: fmt.Sprintf("visit %.0f 25 256", at)})
			pass(100 * time.Millisecond)
			c.send(sessionmsg.Move{Pose: motion.Pose{X: at + .5, Y: 25, Z: 256.5}})
			c.send(sessionmsg.View{View: view})
			pass(2 * time.Second)
			return c
		}
		shown := func(c *client) (chunks, notices int) {
			c.look(func() {
				for at := range c.mu.chunks {
					if at.Distance(c.from.Chunk()) <= view {
						chunks++
					}
				}
				for _, text := range c.mu.notices {
					if text == shortView.Text {
						notices++
					}
				}
			})
			return chunks, notices
		}
		for i := range 3 {
			if chunks, notices := shown(join("192.0.2.1", fmt.Sprint("pupil", i), 256)); chunks != whole || notices != 0 {
				t.Fatalf("pupil %d is shown %d chunks, and told %d times that there are more", i, chunks, notices)
			}
		}
		var apart []*client
		for i := range 5 {
			apart = append(apart, join("192.0.2.1", fmt.Sprint("ann", i), float64(1024*(i+1)+256)))
		}
		for i, c := range apart {
			chunks, notices := shown(c)
			if full := i < 3; full != (chunks == whole) || full != (notices == 0) || notices > 1 || chunks < near {
				t.Errorf("%d of five who are far apart is shown %d chunks, and told %d times that there are more", i, chunks, notices)
			}
		}
		if chunks, notices := shown(join("192.0.2.2", "bob", 20_000)); chunks != whole || notices != 0 {
			t.Errorf("at another address %d chunks are shown, and %d notices", chunks, notices)
		}
		for range 16 { // what is behind them does not stay in view, as for those who see far
			apart[4].from.X += 16
			apart[4].goTo(.5, 25, .5)
			pass(time.Second)
		}
		if chunks, notices := shown(apart[4]); chunks > (2*5+3)*(2*5+3) || chunks < near || notices != 1 {
			t.Errorf("after a walk, %d chunks are shown, and %d notices", chunks, notices)
		}
		apart[0].conn.Close()
		apart[1].conn.Close()
		apart[4].send(sessionmsg.Ping{Nonce: 1})
		pass(time.Second)
		apart[4].send(sessionmsg.Ping{Nonce: 2})
		pass(2 * time.Second)
		if chunks, notices := shown(apart[4]); chunks != whole || notices != 1 {
			t.Errorf("when two have left, %d chunks are shown, and %d notices", chunks, notices)
		}
	})
}
