package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/test/testkit/daemon"
	"github.com/voxelpopuli/voxeld/test/testkit/figure"
	"github.com/voxelpopuli/voxeld/test/testkit/process"
	"github.com/voxelpopuli/voxeld/test/testkit/sessionclient"
	"github.com/voxelpopuli/voxeld/wire/sessionmsg"
)

// address measures what the clients of one address make a node hold.
type address struct{ *bench }

func newAddress(b *bench) *cobra.Command {
	return b.command("address", "Memory and processor that the idle clients of one address take",
		"Lets players of one address join who see twelve chunks in each direction, together and far apart, and connects original\n"+
			"clients with ever more regions until they are refused. All are idle. The daemon takes this program for a proxy, so that\n"+
			"they are not clients of its own machine. It takes ten minutes, most of them for founding the regions.",
		address{b}.run)
}

// apart is the distance in blocks of players who see no common land, nor any of the regions that another one sees.
const apart = 44 * grid.ChunkSize

func (b address) run(ctx context.Context) error {
	table := figure.Table{Head: []string{"idle clients of one address", "chunks in view", "open regions", "heap, MiB", "resident, MiB", "% of a core"}}
	for _, c := range []struct {
		name            string
		players, places int
	}{
		{"none", 0, 0},
		{"64 players, all in one place", 64, 1},
		{"4 players, all far apart", 4, 4},
		{"64 players, all far apart", 64, 64},
	} {
		if err := b.measure(ctx, &table, func(ctx context.Context, a *crowdOfAddress) (string, error) {
			return c.name, a.join(ctx, c.players, c.places)
		}); err != nil {
			return err
		}
	}
	if err := b.measure(ctx, &table, func(ctx context.Context, a *crowdOfAddress) (string, error) {
		n, err := a.connect(ctx)
		return fmt.Sprintf("%d original connections, each in another region; more are refused", n), err
	}); err != nil {
		return err
	}
	return b.publishIn("operations.md", "address", table.Markdown())
}

// measure adds a row to the table: of a new daemon, after clients have come.
func (b address) measure(ctx context.Context, table *figure.Table, come func(context.Context, *crowdOfAddress) (string, error)) error {
	daemons, err := b.daemons(ctx, 1, "--trusted-proxy", "127.0.0.0/8")
	if err != nil {
		return err
	}
	d := daemons[0]
	defer d.Kill()
	a := &crowdOfAddress{d: d}
	defer a.leave()
	name, err := come(ctx, a)
	if err != nil {
		return err
	}
	if err := process.Pause(ctx, 20*time.Second); err != nil {
		return err
	}
	use, err := memoryOf(ctx, d)
	if err != nil {
		return err
	}
	before, err := d.Scrape(ctx)
	if err != nil {
		return err
	}
	began := time.Now()
	if err := process.Pause(ctx, 20*time.Second); err != nil {
		return err
	}
	after, err := d.Scrape(ctx)
	if err != nil {
		return err
	}
	const cpu, mib = "process_cpu_seconds_total", 1 << 20
	load := (after.Value(cpu) - before.Value(cpu)) / time.Since(began).Seconds()
	table.Add(name, fmt.Sprint(after.Value("voxeld_chunks_loaded")), fmt.Sprint(after.Value("voxeld_regions_loaded")),
		fmt.Sprintf("%.0f", use.heap/mib), fmt.Sprintf("%.0f", use.rss/mib), fmt.Sprintf("%.1f", percent(load)))
	logf("%s: measured", name)
	return nil
}

// crowdOfAddress is the clients of one address.
type crowdOfAddress struct {
	d     *daemon.Daemon
	conns []net.Conn
	crew  sync.WaitGroup
}

// dial connects one of them, as a proxy does.
func (a *crowdOfAddress) dial(ctx context.Context) (net.Conn, error) {
	c, err := new(net.Dialer).DialContext(ctx, "tcp", a.d.Game)
	if err != nil {
		return nil, err
	}
	a.conns = append(a.conns, c)
	_, err = fmt.Fprintf(c, "PROXY TCP4 203.0.113.7 203.0.113.1 %d 4002\r\n", 1024+len(a.conns))
	return c, err
}

// leave disconnects them.
func (a *crowdOfAddress) leave() {
	for _, c := range a.conns {
		c.Close() //nolint:errcheck // nothing is lost with it
	}
	a.crew.Wait()
}

// join lets players join and go to so many places.
func (a *crowdOfAddress) join(ctx context.Context, players, places int) error {
	for i := range players {
		nc, err := a.dial(ctx)
		if err != nil {
			return err
		}
		c := sessionclient.New(nc)
		if _, err := c.Join(sessionmsg.Join{Name: fmt.Sprint("idle-", i), View: 1, Encoding: sessionmsg.EncodingCBOR}); err != nil {
			return err
		}
		if _, err := c.Enter(nil); err != nil {
			return err
		}
		place := i % places
		visit := fmt.Sprintf("visit %d 250 %d", place%8*apart, place/8*apart)
		if _, err := c.Send(sessionmsg.Command{Text: visit}); err != nil {
			return err
		}
		a.stay(c)
		if err := process.Pause(ctx, time.Second/2); err != nil { // two may join in a second
			return err
		}
	}
	return nil
}

// stay follows a player's teleport and stays there until the connection ends. Pings keep the session alive.
func (a *crowdOfAddress) stay(c *sessionclient.Conn) {
	corrections, done := make(chan sessionmsg.Correction), make(chan struct{})
	a.crew.Go(func() {
		defer close(done)
		for {
			m, err := c.Read()
			if err != nil {
				return
			}
			if to, ok := m.FromServer.(sessionmsg.Correction); ok {
				corrections <- to
			}
		}
	})
	a.crew.Go(func() {
		ping := time.NewTicker(10 * time.Second)
		defer ping.Stop()
		for {
			var messages []sessionmsg.FromClient
			select {
			case <-done:
				return
			case to := <-corrections:
				messages = append(messages, sessionmsg.Move{Pose: to.Pose}, sessionmsg.View{View: 12})
			case <-ping.C:
				messages = append(messages, sessionmsg.Ping{Nonce: 1})
			}
			for _, m := range messages {
				c.Send(m) //nolint:errcheck // the reader sees the end of the connection
			}
		}
	})
}

// connect connects original clients with one more region after the other until they are refused, and returns how many
// there are.
func (a *crowdOfAddress) connect(ctx context.Context) (n int, err error) {
	for ; ; n++ {
		at := fmt.Sprintf(`"chunk":[%d,%d]`, n%64*16+8, n/64*16+8)
		founder, err := new(net.Dialer).DialContext(ctx, "tcp", a.d.Game) // from this machine
		if err != nil {
			return n, err
		}
		_, err = handshake(founder, `{"type":"generate",`+at+`}`)
		if err = errors.Join(err, founder.Close()); err != nil {
			return n, err
		}
		c, err := a.dial(ctx)
		if err != nil {
			return n, err
		}
		answer, err := handshake(c, `{"type":"connect","player":"idle",`+at+`}`)
		if err != nil || answer != "ok" {
			return n, err
		}
		a.crew.Go(func() { io.Copy(io.Discard, c) }) //nolint:errcheck // until it is closed
		if err := process.Pause(ctx, 50*time.Millisecond); err != nil {
			return n, err
		}
	}
}

// handshake returns the answer to a handshake of the original protocol.
func handshake(c net.Conn, text string) (answer string, err error) {
	if _, err := io.WriteString(c, text); err != nil {
		return "", err
	}
	two := make([]byte, 2)
	_, err = io.ReadFull(bufio.NewReaderSize(c, 16), two)
	return string(two), err
}
