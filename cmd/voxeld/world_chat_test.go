package main

import (
	"flag"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/voxelpopuli/voxeld/test/testkit/sessionclient"
	"github.com/voxelpopuli/voxeld/wire/sessionmsg"
)

var (
	worldChatPlayers = flag.Int("world-chat.players", 12, "players of TestWorldChat, on four nodes")
	worldChatTime    = flag.Duration("world-chat.time", 6*time.Second, "how long they write")
)

// listener is a page that notes when it was shown lines to the world.
type listener struct {
	conn *sessionclient.Conn
	mu   struct {
		sync.Mutex
		shown map[string][]time.Time // by text
	}
}

func (l *listener) read() {
	for {
		m, err := l.conn.Read()
		if err != nil {
			return
		}
		if line, ok := m.FromServer.(sessionmsg.Line); ok && !line.Earlier {
			l.mu.Lock()
			l.mu.shown[line.Text] = append(l.mu.shown[line.Text], time.Now())
			l.mu.Unlock()
		}
	}
}

// lines returns how many lines were shown.
func (l *listener) lines() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.mu.shown)
}

// Players on four nodes write to the world, and the node that leads the land and the catalog is killed meanwhile: each
// of them is shown every line, once.
func TestWorldChat(t *testing.T) {
	t.Parallel()
	first := startDaemon(t)
	token := first.invite()
	all := []*daemon{first}
	for range 4 {
		all = append(all, startDaemon(t, "--join", token))
	}
	agree(t, all...)
	var players []*listener
	for i := range *worldChatPlayers {
		conn, err := sessionclient.Dial(t.Context(), sessionclient.Page(all[1+i%4].HTTP), sessionmsg.Join{Name: fmt.Sprint("p", i), View: 1, Encoding: sessionmsg.EncodingCBOR})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { conn.Close() })
		if _, err := conn.Enter(func(sessionclient.Message) error { return nil }); err != nil {
			t.Fatal(err)
		}
		l := &listener{conn: conn}
		l.mu.shown = make(map[string][]time.Time)
		go l.read()
		players = append(players, l)
	}
	// below what a player may write, and the players of a node
	pace := max(2200*time.Millisecond/time.Duration(len(players)), 70*time.Millisecond)
	sent := make(map[string]time.Time)
	ticker := time.NewTicker(pace)
	defer ticker.Stop()
	for n := range int(*worldChatTime / pace) {
		<-ticker.C
		if time.Duration(n) == *worldChatTime/pace/2 {
			first.kill()
		}
		text := fmt.Sprint("line ", n)
		sent[text] = time.Now()
		if _, err := players[n%len(players)].conn.Send(sessionmsg.Command{Text: "world " + text}); err != nil {
			t.Fatal(err)
		}
	}
	eventually(t, "all are shown all lines", patience, func() bool {
		return !slices.ContainsFunc(players, func(l *listener) bool { return l.lines() < len(sent) })
	})
	var took []time.Duration
	for i, l := range players {
		l.mu.Lock()
		for text, times := range l.mu.shown {
			if len(times) > 1 {
				t.Errorf("player %d was shown %q %d times", i, text, len(times))
			}
			took = append(took, times[0].Sub(sent[text]))
		}
		l.mu.Unlock()
	}
	slices.Sort(took)
	t.Logf("%d lines of %d players, %d shown: p50 %v, p99 %v, %v at most", len(sent), len(players), len(took),
		took[len(took)/2], took[len(took)*99/100], took[len(took)-1])
}
