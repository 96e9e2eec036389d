package gameserver

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/voxelpopuli/voxeld/gameserver/players"
	"github.com/voxelpopuli/voxeld/gameserver/players/playerstest"
	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/internal/kv"
	"github.com/voxelpopuli/voxeld/player"
	"github.com/voxelpopuli/voxeld/wire"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
	"github.com/voxelpopuli/voxeld/wire/sessionmsg"
)

// The players of one address share a limit of edits, however many names and connections they use.
func TestEditsOfAnAddress(t *testing.T) {
	for _, c := range []struct {
		address     string
		least, most int
	}{
		{"192.0.2.1", 400, 700},
		{"127.0.0.1", 1200, 1200},
	} {
		synctest.Test(t, func(t *testing.T) {
			r := newHarness(t, func(o *Options) { o.Admission.PerAddress = 20 })
			const connections, each = 40, 30
			var all []*original
			for i := range connections {
				all = append(all, r.connectFrom(c.address, fmt.Sprintf("builder%d", i), grid.ChunkPos{}))
			}
			for i, o := range all {
				var edits strings.Builder
				for j := range each {
					fmt.Fprintf(&edits, `{"type":7,"args":[%d,30,%d,2],"player":""}`+"\n", j, i%32)
				}
				go o.send(edits.String())
			}
			pass(time.Second)
			refused := valueOf(t, r.g.metrics.refusals.WithLabelValues(wire.RefusedRate))
			if n := connections*each - int(refused); n < c.least || n > c.most {
				t.Errorf("%d edits from %s were accepted, want %d to %d", n, c.address, c.least, c.most)
			}
		})
	}
}

// Players of one address who come again and again are refused for a while.
func TestJoinsOfAnAddress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newHarness(t, func(o *Options) { o.Admission.PerAddress = 10 })
		refused := 0
		for i := range 40 {
			c := newClient(t, r.dialFrom(&net.TCPAddr{IP: net.ParseIP("192.0.2.1"), Port: i + 1}))
			c.open(sessionmsg.Join{Version: 1, Name: fmt.Sprintf("guest%d", i), View: 1})
			pass(50 * time.Millisecond)
			if c.mu.failure.Code == wire.FailRate {
				refused++
			}
			c.conn.Close()
			pass(50 * time.Millisecond)
		}
		if refused < 20 || refused > 23 { // in 4 s
			t.Errorf("%d of 40 were refused", refused)
		}
	})
}

// countingDisk counts how often players are saved, and how many are.
type countingDisk struct {
	*playerstest.Memory
	saved   atomic.Int64
	players sync.Map
}

func (d *countingDisk) Commit(writes []kv.Write) error {
	for _, w := range writes {
		if w.Table == players.Table {
			d.saved.Add(1)
			d.players.Store(string(w.Key), nil)
		}
	}
	return d.Memory.Commit(writes)
}

// An original client that registers and deregisters as fast as it can causes few writes.
func TestRegistrationsOfAnAddress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		disk := &countingDisk{Memory: playerstest.NewMemory()}
		r := newHarness(t, func(o *Options) { o.Admission.PerAddress, o.Storage = 4, disk })
		ann := r.connectFrom("192.0.2.1", "ann", grid.ChunkPos{})
		go func() {
			for range 500 {
				ann.send(`{"type":1,"args":[0,0],"player":"ann"}` + "\n" + `{"type":2,"args":[0,0],"player":"ann"}` + "\n")
			}
		}()
		pass(10 * time.Second)
		if n := disk.saved.Load(); n < 16 || n > 40 {
			t.Errorf("the player was saved %d times in 10 s", n)
		}
	})
}

// countingNetwork counts lookups of players.
type countingNetwork struct {
	*playerstest.Memory
	lookups atomic.Int64
}

func (n *countingNetwork) Player(ctx context.Context, id player.ID) (nodemsg.PlayerRecord, error) {
	n.lookups.Add(1)
	return n.Memory.Player(ctx, id)
}

// The connections of one address that ask where players are cause few lookups. Others are answered at once, and those
// of loopback.
func TestPlayerQueriesOfAnAddress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		network := &countingNetwork{Memory: playerstest.NewMemory()}
		r := newHarness(t, func(o *Options) { o.Admission.PerAddress, o.Players = 4, network })
		ask := func(address string, connection, queries int) {
			c := r.dialFrom(&net.TCPAddr{IP: net.ParseIP(address), Port: connection + 1})
			go io.Copy(io.Discard, c) //nolint:errcheck // until the end
			go func() {
				io.WriteString(c, `{"type":"dht"}`) //nolint:errcheck // the lookups show the effect
				for i := range queries {
					fmt.Fprintf(c, "\x01{\"name\":\"new-%d-%d\"}", connection, i)
				}
			}()
		}
		for i := range 10 {
			ask("192.0.2.1", i, 50)
		}
		pass(3 * time.Second)
		if n := network.lookups.Swap(0) / 2; n < 16+4 || n > 16+8 { // of each query two
			t.Errorf("%d queries were answered in 3 s", n)
		}
		if n := counted(t, r.g, "voxeld_address_limits_total", "player_queries"); n == 0 {
			t.Error("the metric says that no query waited")
		}
		pass(10 * time.Second)
		network.lookups.Store(0)
		ask("192.0.2.2", 0, 10)
		ask("127.0.0.1", 0, 100)
		pass(100 * time.Millisecond)
		if n := network.lookups.Load() / 2; n < 110 {
			t.Errorf("%d queries of others were answered at once, want 110", n)
		}
	})
}

// An original client that asks again and again who leads a chunk has the leader asked as often as it may have land
// founded.
func TestRepeatedQueriesOfAnAddress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const atOnce, more = 100, 40
		c := newHarness(t).dialFrom(&net.TCPAddr{IP: net.ParseIP("192.0.2.1"), Port: 1})
		start := time.Now()
		go io.WriteString(c, `{"type":"dht"}`+strings.Repeat("\x00[3,-2]", atOnce+more)) //nolint:errcheck // the answers show errors
		answers := bufio.NewReader(c)
		for i := range atOnce + more {
			if _, err := answers.ReadString('\n'); err != nil {
				t.Fatalf("answer %d: %v", i, err)
			}
		}
		if took := time.Since(start); took < 2*time.Second || took > 2100*time.Millisecond { // 20 a second
			t.Errorf("%d answers took %v", atOnce+more, took)
		}
	})
}

// Original clients of one address with ever new names are let in as seldom as sessions are.
func TestNewNamesOfAnAddress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		disk := &countingDisk{Memory: playerstest.NewMemory()}
		r := newHarness(t, func(o *Options) { o.Admission.PerAddress, o.Storage = 4, disk })
		start := time.Now()
		for i := range 100 {
			name := fmt.Sprintf("new%d", i)
			c := r.connectFrom("192.0.2.1", name, grid.ChunkPos{})
			go c.send(fmt.Sprintf(`{"type":1,"args":[0,0],"player":%q}`+"\n"+`{"type":2,"args":[0,0],"player":%[1]q}`+"\n", name))
		}
		n, most := 0, 4+2*int(time.Since(start).Seconds()+1)
		disk.players.Range(func(any, any) bool { n++; return true })
		if n < 8 || n > most {
			t.Errorf("%d new players were saved, want at most %d", n, most)
		}
	})
}

// All clients of an address together are sent so many bytes a second, whichever protocol they speak. Others are not
// held up.
func TestBytesOfAnAddress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const bytes, atOnce = 10_000, 10 * 10_000
		r := newHarness(t, func(o *Options) { o.Admission.BytesPerAddress = bytes })
		start := time.Now()
		for i := range 20 {
			r.connectFrom("192.0.2.1", "viewer", grid.ChunkPos{X: int32(i)})
			c := newClient(t, r.dialFrom(&net.TCPAddr{IP: net.ParseIP("192.0.2.1"), Port: i + 1}))
			c.open(sessionmsg.Join{Version: 1, Name: fmt.Sprintf("guest%d", i), View: 2})
		}
		pass(5 * time.Second)
		sent, most := valueOf(t, r.g.metrics.bytesOut), bytes*time.Since(start).Seconds()+atOnce
		if sent < .7*most || sent > most {
			t.Errorf("%.0f bytes were sent, want at most %.0f, and not much less", sent, most)
		}
		if n := counted(t, r.g, "voxeld_address_limits_total", "bytes"); n == 0 {
			t.Error("the metric says that no message waited")
		}
		if ann := r.join("ann", 1); len(ann.mu.chunks) != 9 {
			t.Errorf("ann, from another address, sees %d chunks", len(ann.mu.chunks))
		}
	})
}
