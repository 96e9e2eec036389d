package gameserver

import (
	"bufio"
	"bytes"
	"context"
	"crypto/ed25519"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/voxelpopuli/voxeld/chunk"
	"github.com/voxelpopuli/voxeld/gameserver/admission"
	"github.com/voxelpopuli/voxeld/gameserver/checks"
	"github.com/voxelpopuli/voxeld/gameserver/outbox"
	"github.com/voxelpopuli/voxeld/gameserver/players/playerstest"
	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/motion"
	"github.com/voxelpopuli/voxeld/player"
	"github.com/voxelpopuli/voxeld/region"
	"github.com/voxelpopuli/voxeld/wire"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
	"github.com/voxelpopuli/voxeld/wire/sessionmsg"
)

// under returns a place beside the spawn that is free, and within everybody's reach.
func under(*client) grid.Pos { return grid.Pos{X: 2, Y: 21, Z: 3} }

func blockOf(i int) chunk.Block { return chunk.Block(i % 2) }

func TestSilentConnections(t *testing.T) {
	for name, c := range map[string]struct {
		text string
		ends time.Duration
		want string
	}{
		"nothing":          {"", wire.HandshakeTimeout, "no"},
		"half a handshake": {`{"type":"join","na`, wire.HandshakeTimeout, "no"},
		"join": {
			`{"type":"join","version":1,"name":"ann","view":1,"encoding":"json"}` + "\n", silence,
			`{"type":"failure","code":"timeout"`,
		},
		"half a line": {
			`{"type":"join","version":1,"name":"ann","view":1,"encoding":"json"}` + "\n" + `{"type":"mo`, silence,
			`{"type":"failure","code":"timeout"`,
		},
		"no proof": {
			`{"type":"join","version":1,"name":"ann","view":1,"encoding":"json","key":"` + strings.Repeat("ab", 32) + `"}` + "\n",
			wire.HandshakeTimeout, `{"type":"failure","code":"timeout"`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newHarness(t)
				conn := r.dial()
				began := time.Now()
				go io.WriteString(conn, c.text) //nolint:errcheck // the pipe closes at the end
				events, err := io.ReadAll(conn)
				if err != nil {
					t.Fatal(err)
				}
				if took := time.Since(began); took != c.ends {
					t.Errorf("ended after %v, want %v", took, c.ends)
				}
				lines := strings.Split(strings.TrimSpace(string(events)), "\n")
				if last := lines[len(lines)-1]; !strings.Contains(last, c.want) {
					t.Errorf("the last words are %.100q, want %q", last, c.want)
				}
			})
		})
	}
}

func TestPingKeepsASessionAlive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newHarness(t)
		ann := r.join("ann", 1)
		for range 5 {
			pass(silence - time.Second)
			ann.send(sessionmsg.Ping{Nonce: 1})
		}
		pass(time.Second)
		if ann.mu.ended {
			t.Errorf("ended with %+v", ann.mu.failure)
		}
	})
}

func TestKeyedPlayers(t *testing.T) {
	public, private, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	_, other, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		key  ed25519.PrivateKey
		text sessionmsg.FromClient
		code string
	}{
		"proves":           {private, nil, ""},
		"another key":      {other, nil, wire.FailBadSignature},
		"says other thing": {private, sessionmsg.Ping{Nonce: 1}, wire.FailUnexpected},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newHarness(t, func(o *Options) { o.Admission.Guests = false })
				conn := r.dial()
				ann := newClient(t, conn)
				ann.send(sessionmsg.Join{Version: 1, Name: "ann", View: 1, Encoding: "json", Key: hex.EncodeToString(public)})
				line := readLine(t, conn)
				m, err := sessionmsg.DecodeServer([]byte(line))
				if err != nil {
					t.Fatal(err)
				}
				challenge := m.(sessionmsg.Challenge)
				go ann.listen()
				if c.text == nil {
					c.text = sessionmsg.Prove{Signature: hex.EncodeToString(ed25519.Sign(c.key, player.ProofText(challenge.Nonce, challenge.World)))}
				}
				ann.send(c.text)
				pass(time.Second)
				if ann.mu.failure.Code != c.code {
					t.Errorf("failure %+v, want %q", ann.mu.failure, c.code)
				}
				if c.code == "" && (ann.mu.welcome.Player != player.IDOf(public).String() || ann.mu.welcome.Guest) {
					t.Errorf("welcome %+v", ann.mu.welcome)
				}
			})
		})
	}
	t.Run("bad name", func(t *testing.T) { // in a Join that nobody has decoded, as those of other games
		synctest.Test(t, func(t *testing.T) {
			r := newHarness(t)
			here, there := net.Pipe()
			defer here.Close()
			go r.g.serveSession(t.Context(), &streamConn{Conn: there, in: bufio.NewReader(there), framing: lines{}},
				&sessionmsg.Join{Version: 1, Name: "\u212aim", View: 1, Encoding: "json"})
			if line := readLine(t, here); !strings.Contains(line, `"`+wire.FailBadName+`"`) {
				t.Errorf("answered %s", line)
			}
		})
	})
	t.Run("guest", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			r := newHarness(t, func(o *Options) { o.Admission.Guests = false })
			ann := newClient(t, r.dial())
			go ann.listen()
			ann.send(sessionmsg.Join{Version: 1, Name: "ann", View: 1, Encoding: "json"})
			pass(time.Second)
			if ann.mu.failure.Code != wire.FailNoGuests || !ann.mu.ended {
				t.Errorf("failure %+v", ann.mu.failure)
			}
		})
	})
}

// The network's record of a player with a key shows that they logged in at this gateway; the one on its own disk does without. If the
// clock of an earlier gateway was ahead, the player is asked once more, and the login is later all the same.
func TestLogins(t *testing.T) {
	key := ed25519.NewKeyFromSeed(make([]byte, ed25519.SeedSize))
	id := player.IDOf(key.Public().(ed25519.PublicKey))
	for name, ahead := range map[string]time.Duration{"same clock": -time.Minute, "clock behind": time.Hour} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newHarness(t)
				before := nodemsg.PlayerRecord{
					Player: id, Name: "ann", Seq: 1, Gateway: "peerElsewhere", SavedAt: 1, Pose: motion.Pose{X: 3, Y: 30, Z: 4},
					Login: &player.Login{Key: [32]byte(key.Public().(ed25519.PublicKey)), At: time.Now().Add(ahead).UnixMilli()},
				}
				if err := r.network.PutPlayer(t.Context(), before); err != nil {
					t.Fatal(err)
				}
				conn := r.dial()
				ann := newClient(t, conn)
				ann.send(sessionmsg.Join{Version: 1, Name: "ann", View: 1, Encoding: "json", Key: hex.EncodeToString(key.Public().(ed25519.PublicKey))})
				challenges := 1
				if ahead > 0 {
					challenges = 2
				}
				for range challenges {
					m, err := sessionmsg.DecodeServer([]byte(readLine(t, conn)))
					if err != nil {
						t.Fatal(err)
					}
					challenge, ok := m.(sessionmsg.Challenge)
					if !ok {
						t.Fatalf("%T instead of a challenge", m)
					}
					ann.send(sessionmsg.Prove{Signature: hex.EncodeToString(ed25519.Sign(key, player.ProofText(challenge.Nonce, challenge.World)))})
				}
				go ann.listen()
				pass(time.Second)
				conn.Close()
				pass(time.Second)
				got, err := r.network.Player(t.Context(), id)
				if err != nil || got.Gateway != self || got.Login == nil || !got.Login.Proves(self, r.g.World.ID()) || got.Pose.X != before.Pose.X {
					t.Fatalf("published %+v with %+v, %v", got, got.Login, err)
				}
				if got.Login.At <= before.Login.At {
					t.Errorf("the login is not later than the one before: %d, %d", got.Login.At, before.Login.At)
				}
				if row, there := saved(r.disk, id); !there || row.Login != nil || row.Seq != got.Seq {
					t.Errorf("on disk: %+v", row)
				}
			})
		})
	}
}

func readLine(t *testing.T, conn net.Conn) string {
	t.Helper()
	var line []byte
	for b := make([]byte, 1); ; {
		if _, err := io.ReadFull(conn, b); err != nil {
			t.Fatalf("%v after %q", err, line)
		}
		if b[0] == '\n' {
			return string(line)
		}
		line = append(line, b[0])
	}
}

func TestSecondLoginReplacesTheFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newHarness(t)
		bob := r.join("bob", 1)
		first := r.join("ann", 1)
		first.goTo(5.5, 26, 5.5)
		pass(time.Second)
		second := r.join("ann", 1)
		if first.mu.failure.Code != wire.FailReplaced || !first.mu.ended {
			t.Errorf("the first session ended with %+v", first.mu.failure)
		}
		if p := second.mu.welcome.Pose; p.X != 5.5 || p.Y != 26 {
			t.Errorf("the second one begins at %+v, want where the first one stood", p)
		}
		pass(time.Second)
		if got := len(bob.mu.avatars); got != 2 {
			t.Errorf("bob sees %d avatars, want 2", got)
		}
		if got := len(r.g.Online()); got != 2 {
			t.Errorf("%d players online, want 2", got)
		}
	})
}

// A player whose network changed gets back in at once, although the old connection still hangs.
func TestSecondLoginDoesNotWaitForADeadConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newHarness(t)
		dead := newClient(t, r.dial())
		dead.send(sessionmsg.Join{Version: 1, Name: "ann", View: 1, Encoding: "json"})
		pass(time.Second)
		again := newClient(t, r.dial())
		go again.listen()
		again.send(sessionmsg.Join{Version: 1, Name: "ann", View: 1, Encoding: "json"})
		pass(outbox.CloseTimeout + time.Second)
		if again.mu.welcome.Player == "" {
			t.Errorf("not welcome: %+v", again.mu.failure)
		}
	})
}

// A guest's name proves nothing: a stranger cannot replace anybody.
func TestGuestsNameIsTaken(t *testing.T) {
	for address, code := range map[string]string{"192.0.2.1": "", "192.0.2.2": wire.FailNameTaken} {
		synctest.Test(t, func(t *testing.T) {
			r := newHarness(t)
			join := func(address string, port int) *client {
				c := newClient(t, r.dialFrom(&net.TCPAddr{IP: net.ParseIP(address), Port: port}))
				go c.listen()
				c.send(sessionmsg.Join{Version: 1, Name: "ann", View: 1, Encoding: "json"})
				pass(time.Second)
				return c
			}
			first, second := join("192.0.2.1", 5), join(address, 6)
			if second.mu.failure.Code != code || first.mu.ended != (code == "") {
				t.Errorf("from %s: failure %+v; the first one ended: %v", address, second.mu.failure, first.mu.ended)
			}
			if code != "" {
				first.conn.Close()
				pass(time.Second)
				if third := join(address, 7); third.mu.welcome.Player == "" {
					t.Errorf("the name is free, and yet: %+v", third.mu.failure)
				}
			}
		})
	}
}

func TestSequencesFarAhead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newHarness(t)
		ann := r.join("ann", 1)
		for _, c := range []struct {
			ahead time.Duration
			want  string
		}{{9 * time.Minute, ""}, {11 * time.Minute, wire.RefusedStale}, {1e6 * time.Hour, wire.RefusedStale}} {
			ann.seq = firstSeq(time.Now().Add(c.ahead))
			seq := ann.put(grid.Pos{X: 3, Y: 25, Z: 3}, chunk.Brick)
			pass(time.Second)
			if ack := ann.answer(seq); ack.Error != c.want {
				t.Errorf("%v ahead is answered %+v, want %q", c.ahead, ack, c.want)
			}
		}
	})
}

// A guest who numbers their edits ahead of the clock does not make those of another guest of the name look too old.
func TestGuestsDoNotPushTheirNamesake(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newHarness(t)
		eve := r.join("ann", 1)
		eve.seq = firstSeq(time.Now().Add(9 * time.Minute))
		for range 70 {
			seq := eve.put(grid.Pos{X: 3, Y: 25, Z: 3}, chunk.Brick)
			pass(100 * time.Millisecond)
			if ack := eve.answer(seq); ack.Error != "" {
				t.Fatalf("her edit is answered %+v", ack)
			}
		}
		ann := r.join("ann", 1)
		seq := ann.put(grid.Pos{X: 3, Y: 25, Z: 3}, chunk.Planks)
		pass(time.Second)
		if ack := ann.answer(seq); ack.Error != "" {
			t.Errorf("the edit of another one is answered %+v", ack)
		}
	})
}

// An address has room for players; one with an original client holds many connections.
func TestPlayersPerAddress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newHarness(t, func(o *Options) { o.Admission.PerAddress = 2 })
		var open []net.Conn
		text := func(address, text string) string {
			c := r.dialFrom(&net.TCPAddr{IP: net.ParseIP(address), Port: 5})
			open = append(open, c)
			go io.WriteString(c, text) //nolint:errcheck // it may be refused before
			answer := make([]byte, 2)
			if _, err := io.ReadFull(c, answer); err != nil {
				t.Fatal(err)
			}
			go io.Copy(io.Discard, c) //nolint:errcheck // until the end
			return string(answer)
		}
		join := func(address, name string) string {
			text := text(address, fmt.Sprintf(`{"type":"join","version":1,"name":%q,"view":1,"encoding":"json"}`+"\n", name))
			pass(100 * time.Millisecond)
			if r.g.sessions.Of(player.GuestID(name)) == nil {
				return "refused"
			}
			return text
		}
		for _, step := range []struct {
			address string
			times   int
			want    string
		}{
			{"192.0.2.1", 2 * admission.PlayerWeight, "ok"},
			{"192.0.2.1", 1, "no"},
			{"::ffff:192.0.2.1", 1, "no"},
			{"192.0.2.2", 1, "ok"},
			{"2001:db8::1", admission.PlayerWeight, "ok"},
			{"2001:db8::2", admission.PlayerWeight, "ok"},
			{"2001:db8::3", 1, "no"},
			{"2001:db8:0:1::1", 1, "ok"},
			{"127.0.0.1", 3 * admission.PlayerWeight, "ok"},
			{"::1", 1, "ok"},
		} {
			for i := range step.times {
				if got := text(step.address, `{"type":"dht"}`); got != step.want {
					t.Errorf("%s is answered %q the %d. time, want %q", step.address, got, i+1, step.want)
				}
			}
		}
		for _, step := range []struct{ address, name, want string }{
			{"192.0.2.3", "ann", `{"`},
			{"192.0.2.3", "bob", `{"`},
			{"192.0.2.3", "cid", "no"},
			{"192.0.2.2", "dan", `{"`}, // beside a connection of an original client
			{"192.0.2.2", "eve", "refused"},
		} {
			if got := join(step.address, step.name); got != step.want && (step.want != "no" || got != "refused") {
				t.Errorf("%s joins from %s and is answered %q, want %q", step.name, step.address, got, step.want)
			}
		}
		for _, c := range open {
			c.Close()
		}
		pass(time.Minute)
		for _, address := range []string{"192.0.2.1", "192.0.2.2", "192.0.2.3", "2001:db8::1", "2001:db8:0:1::1"} {
			if _, err := r.g.limits.Admit(&net.TCPAddr{IP: net.ParseIP(address)}, r.g.Admission.PerAddress*admission.PlayerWeight); err != nil {
				t.Errorf("connections of %s are still counted", address)
			}
		}
	})
}

func TestGoodbye(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newHarness(t)
		ann := r.join("ann", 1)
		ann.goTo(5.5, 26, 5.5)
		stalled := newClient(t, r.dial())
		stalled.send(sessionmsg.Join{Version: 1, Name: "bob", View: 1, Encoding: "json"})
		r.dial() // sends nothing
		pass(100 * time.Millisecond)
		began := time.Now()
		r.stop()
		if took := time.Since(began); took > 2*outbox.CloseTimeout {
			t.Errorf("stopping took %v", took)
		}
		synctest.Wait()
		if ann.mu.failure.Code != wire.FailShuttingDown || !ann.mu.ended {
			t.Errorf("ended with %+v", ann.mu.failure)
		}
		for _, name := range []string{"ann", "bob"} {
			published, err := r.network.Player(t.Context(), guestID(name))
			saved, _ := saved(r.disk, guestID(name))
			if err != nil || saved != published {
				t.Errorf("%s is saved as %+v, published as %+v (%v)", name, saved, published, err)
			}
			if name == "ann" && published.Pose.X != 5.5 {
				t.Errorf("ann is published at %+v", published.Pose)
			}
		}
	})
}

// A listener that fails ends the gateway, which returns the reason.
func TestDoorThatFails(t *testing.T) {
	for _, name := range []string{"game", "http"} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newHarness(t)
				ann := r.join("ann", 1)
				broken := errors.New("socket broken")
				map[string]*pipeListener{"game": r.game, "http": r.http}[name].fail <- broken
				if err := <-r.ended; !errors.Is(err, broken) {
					t.Errorf("ended with %v", err)
				}
				close(r.ended)
				if synctest.Wait(); ann.mu.failure.Code != wire.FailShuttingDown {
					t.Errorf("the player got %+v", ann.mu.failure)
				}
			})
		})
	}
}

func TestTooMuch(t *testing.T) {
	for name, m := range map[string]sessionmsg.FromClient{
		"moves": sessionmsg.Move{Pose: motion.Pose{X: .5, Y: 25, Z: .5}},
		"pings": sessionmsg.Ping{Nonce: 1},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newHarness(t)
				ann, bob := r.join("ann", 1), r.join("bob", 1)
				for range movesAtOnce + 1 {
					ann.send(m)
				}
				pass(time.Second)
				if ann.mu.failure.Code != wire.FailRate || bob.mu.ended {
					t.Errorf("ann ended with %+v, bob ended: %v", ann.mu.failure, bob.mu.ended)
				}
			})
		})
	}
	t.Run("views", func(t *testing.T) { // the last one that was wanted counts in the end
		synctest.Test(t, func(t *testing.T) {
			r := newHarness(t, func(o *Options) { o.Admission.MaxView = 3 })
			ann := r.join("ann", 1)
			pass(time.Second)
			few := ann.mu.wholes
			for range 5 {
				ann.send(sessionmsg.View{View: 3})
				pass(300 * time.Millisecond)
				ann.send(sessionmsg.View{View: 1})
				pass(300 * time.Millisecond)
			}
			if resent := ann.mu.wholes - few; resent != 49-9 || ann.mu.ended {
				t.Errorf("%d chunks were sent, ann ended: %v", resent, ann.mu.ended)
			}
			pass(2 * time.Second) // 5 s after it became larger
			ann.send(sessionmsg.Ping{Nonce: 1})
			pass(100 * time.Millisecond)
			if len(ann.mu.chunks) != 25 { // one chunk more than the view is kept
				t.Errorf("ann sees %d chunks in the end, want 25", len(ann.mu.chunks))
			}
		})
	})
	t.Run("chat", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			r := newHarness(t)
			ann, bob := r.join("ann", 1), r.join("bob", 1)
			for range chatAtOnce + 2 {
				ann.send(sessionmsg.Chat{Text: "la"})
			}
			pass(100 * time.Millisecond)
			if len(bob.mu.said) != chatAtOnce || len(ann.mu.notices) != 1 {
				t.Errorf("bob received %d lines, ann was %d updates", len(bob.mu.said), len(ann.mu.notices))
			}
		})
	})
}

func TestCorrections(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newHarness(t)
		ann := r.join("ann", 1)
		ann.goTo(500, 25, .5)
		ann.goTo(.5, 1000, .5)
		pass(time.Second)
		if ann.mu.corrections != 2 {
			t.Errorf("%d corrections, want 2", ann.mu.corrections)
		}
		if got := r.g.Online()[0].Pose; got.X != .5 || got.Y != 25 {
			t.Errorf("ann is at %+v", got)
		}
	})
}

func TestCheckEdit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newHarness(t)
		ann := r.join("ann", 1)
		bob := r.join("bob", 1)
		bob.goTo(-4.1, 25, .5) // in another region than ann
		pass(time.Second)
		s := r.g.sessions.Of(guestID("ann"))
		bedrock := grid.Pos{X: 0, Y: 0, Z: 0}
		for _, c := range []struct {
			name string
			pos  grid.Pos
			b    chunk.Block
			want string
		}{
			{"free", grid.Pos{X: 3, Y: 25, Z: 3}, chunk.Brick, ""},
			{"below the world", grid.Pos{X: 3, Y: -1, Z: 3}, chunk.Brick, wire.RefusedOutOfWorld},
			{"above the world", grid.Pos{X: 3, Y: height, Z: 3}, chunk.Brick, wire.RefusedOutOfWorld},
			{"beyond the world", grid.Pos{X: -1 << 31, Y: 3, Z: 3}, chunk.Brick, wire.RefusedNotLoaded},
			{"out of view", grid.Pos{X: 300, Y: 3, Z: 3}, chunk.Brick, wire.RefusedNotLoaded},
			{"unknown", grid.Pos{X: 3, Y: 25, Z: 3}, 60000, wire.RefusedUnknownBlock},
			{"bedrock", grid.Pos{X: 3, Y: 25, Z: 3}, chunk.Bedrock, wire.RefusedNotPlaceable},
			{"far", grid.Pos{X: 20, Y: 25, Z: 3}, chunk.Brick, wire.RefusedOutOfReach},
			{"into oneself", grid.Pos{X: 0, Y: 26, Z: 0}, chunk.Brick, wire.RefusedInsidePlayer},
			{"beneath oneself", grid.Pos{X: 0, Y: 24, Z: 0}, chunk.Brick, ""},
			{"into bob", grid.Pos{X: -5, Y: 25, Z: 0}, chunk.Brick, wire.RefusedInsidePlayer},
			{"into bob's edge", grid.Pos{X: -4, Y: 25, Z: 0}, chunk.Brick, wire.RefusedInsidePlayer},
			{"beside bob", grid.Pos{X: -3, Y: 25, Z: 0}, chunk.Brick, ""},
			{"a door at bob's edge, at the other side of its block", grid.Pos{X: -4, Y: 25, Z: 0}, chunk.Door + 1, ""},
			{"air into bob", grid.Pos{X: -5, Y: 25, Z: 0}, chunk.Air, ""},
			{"water into bob", grid.Pos{X: -5, Y: 25, Z: 0}, chunk.Water, ""},
		} {
			if _, got := s.checkEdit(c.pos, c.b); got != c.want {
				t.Errorf("%s: %q, want %q", c.name, got, c.want)
			}
		}
		if got := checks.BlockChange(chunk.Bedrock, chunk.Air); got != wire.RefusedUnbreakable {
			t.Errorf("breaking bedrock at %v: %q", bedrock, got)
		}
		// Bob's body in another chunk, and another region, than the block.
		bob.goTo(-.2, 25, 3.5)
		pass(time.Second)
		if _, got := s.checkEdit(grid.Pos{X: 0, Y: 25, Z: 3}, chunk.Brick); got != wire.RefusedInsidePlayer {
			t.Errorf("into bob, over the border: %q", got)
		}
		// Ann jumps: her own place counts, not the one that the region saw last.
		ann.goTo(.5, 26.1, .5)
		synctest.Wait()
		if _, got := s.checkEdit(grid.Pos{X: 0, Y: 25, Z: 0}, chunk.Brick); got != "" {
			t.Errorf("beneath oneself in a jump: %q", got)
		}
		allowed := 0
		for range 2 * editsAtOnce {
			if _, got := s.checkEdit(grid.Pos{X: 3, Y: 25, Z: 3}, chunk.Brick); got == "" {
				allowed++
			} else if got != wire.RefusedRate {
				t.Fatalf("%q", got)
			}
		}
		if allowed < editsAtOnce-20 || allowed > editsAtOnce {
			t.Errorf("%d edits at once", allowed)
		}
	})
}

// panickyDisk panics when a certain player is loaded.
type panickyDisk struct{ *playerstest.Memory }

func (d panickyDisk) Get(table string, key []byte) ([]byte, error) {
	if eve := guestID("eve"); bytes.Equal(key, eve[:]) {
		panic("a mistake of ours")
	}
	return d.Memory.Get(table, key)
}

// A panic ends the session in which it happens, with a message, and leaves nothing behind: the writer ends, too.
func TestPanicEndsOneSession(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newHarness(t, func(o *Options) { o.Storage = panickyDisk{playerstest.NewMemory()} })
		ann := r.join("ann", 1)
		before := goroutines()
		for range 3 {
			eve := newClient(t, r.dial())
			eve.open(sessionmsg.Join{Version: 1, Name: "eve", View: 1})
			pass(time.Second)
			if eve.mu.failure.Code != wire.FailInternal || !eve.mu.ended {
				t.Errorf("eve got %+v, ended: %t", eve.mu.failure, eve.mu.ended)
			}
			eve.conn.Close()
		}
		pass(time.Second)
		if after := goroutines(); after > before { // before metrics are read, which starts others
			t.Errorf("%d goroutines, were %d", after, before)
		}
		if ann.mu.ended {
			t.Error("ann's session ended, too")
		}
		if n := counted(t, r.g, "voxeld_panics_total", "connection"); n != 3 {
			t.Errorf("%v panics were counted", n)
		}
	})
}

// goroutines returns how many there are. runtime.NumGoroutine also counts those that are just ending.
func goroutines() int {
	stacks := make([]byte, 1<<20)
	return bytes.Count(stacks[:runtime.Stack(stacks, true)], []byte("goroutine ")) - bytes.Count(stacks, []byte("in goroutine "))
}

// panickyLands are regions over one of whose links a panic occurs.
type panickyLands struct {
	*lands
	armed atomic.Bool
}

func (l *panickyLands) Follow(ctx context.Context, pos grid.ChunkPos) (region.Link, nodemsg.Region, error) {
	link, info, err := l.lands.Follow(ctx, pos)
	if err != nil {
		return link, info, err
	}
	return &panickyLink{link, &l.armed}, info, nil
}

type panickyLink struct {
	region.Link
	armed *atomic.Bool
}

func (k *panickyLink) Receive(ctx context.Context) (nodemsg.FromRegion, error) {
	frame, err := k.Link.Receive(ctx)
	if k.armed.CompareAndSwap(true, false) {
		panic("a mistake of ours")
	}
	return frame, err
}

// A panic while a message of a region is handled ends the link with that region. The next link makes up for it, and nobody notices.
func TestPanicEndsOneLink(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var bad *panickyLands
		r := newHarness(t, func(o *Options) {
			bad = &panickyLands{lands: o.Regions.(*lands)}
			o.Regions = bad
		})
		ann := r.join("ann", 1)
		ann.goTo(.5, 25, .5)
		pass(time.Second)
		bad.armed.Store(true)
		first := ann.put(grid.Pos{X: 1, Y: 25, Z: 3}, chunk.Brick)
		pass(5 * time.Second)
		second := ann.put(grid.Pos{X: 2, Y: 25, Z: 3}, chunk.Stone)
		pass(time.Second)
		for _, seq := range []uint64{first, second} {
			if a := ann.answer(seq); a.Error != "" {
				t.Errorf("edit %d is refused: %s", seq, a.Error)
			}
		}
		ann.sees(r.lands, 1)
		if n := counted(t, r.g, "voxeld_panics_total", "subscription"); n != 1 || bad.armed.Load() {
			t.Errorf("%v panics were counted", n)
		}
	})
}
