package region

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/voxelpopuli/voxeld/chunk"
	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
)

// hang returns the error of a question across a cut: at once, or for a silent cut when the caller's time is over. It
// waits even if the cut heals meanwhile, since what a broken connection lost is not sent again.
func (n *network) hang(ctx context.Context, err error) error {
	n.mu.Lock()
	mute := n.mu.mute
	n.mu.Unlock()
	if !mute {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, 15*time.Second) // as dht does
	defer cancel()
	<-ctx.Done()
	return ctx.Err()
}

func (n *network) setMute(mute bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.mu.mute = mute
}

// walks is the DHT while nodes are cut off: a walk that meets such a node waits as long as dht lets walks wait, and
// then fails.
type walks struct{ *network }

func (w walks) hang(ctx context.Context) error {
	w.mu.Lock()
	cut := false
	for _, apart := range w.mu.apart {
		cut = cut || apart
	}
	w.mu.Unlock()
	if !cut {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	<-ctx.Done()
	return ctx.Err()
}

func (w walks) Region(ctx context.Context, cell grid.Cell) (nodemsg.Region, error) {
	if err := w.hang(ctx); err != nil {
		return nodemsg.Region{}, err
	}
	return w.network.Region(ctx, cell)
}

func (w walks) Catalog(ctx context.Context) (nodemsg.Region, error) {
	if err := w.hang(ctx); err != nil {
		return nodemsg.Region{}, err
	}
	return w.network.Catalog(ctx)
}

// builder is a player who keeps editing through a node. Like a gateway it finds the link again after each failure, with
// growing pauses.
type builder struct {
	node *node
	name string
	mu   struct {
		sync.Mutex
		seq   uint64
		acked time.Time // the newest acknowledgement
	}
}

// longestRetry is the longest pause between two attempts of a gateway.
const longestRetry = 1500 * time.Millisecond

// explore looks for land until it is found, and returns the time when it was.
func (b *builder) explore(pos grid.ChunkPos) (found time.Time) {
	for retry := 100 * time.Millisecond; ; retry = min(2*retry, longestRetry) {
		link, _, err := b.node.Follow(context.Background(), pos)
		if err == nil {
			link.Close()
			return time.Now()
		}
		<-time.After(retry)
	}
}

func (b *builder) run(ctx context.Context) {
	retry := 100 * time.Millisecond
	for ctx.Err() == nil {
		link, _, err := b.node.Follow(ctx, here)
		if err == nil {
			began := time.Now()
			moved := b.build(ctx, link)
			link.Close()
			if time.Since(began) > longestRetry {
				retry = 100 * time.Millisecond
			}
			if moved && time.Since(began) > 100*time.Millisecond {
				continue
			}
		}
		select {
		case <-ctx.Done():
		case <-time.After(retry):
		}
		retry = min(2*retry, longestRetry)
	}
}

// build edits over one link until it ends, and reports whether it ended because another node leads.
func (b *builder) build(ctx context.Context, link Link) (moved bool) {
	ctx, cancel := context.WithCancel(ctx)
	var sender sync.WaitGroup
	defer sender.Wait()
	defer cancel()
	sender.Go(func() {
		for ctx.Err() == nil {
			b.mu.Lock()
			b.mu.seq++
			seq := b.mu.seq
			b.mu.Unlock()
			if link.Send(nodemsg.ToRegion{Edits: []nodemsg.Intent{guest(b.name, seq, at(here, int32(seq)%60), chunk.Stone)}}) != nil {
				return
			}
			select {
			case <-ctx.Done():
			case <-time.After(200 * time.Millisecond):
			}
		}
	})
	for {
		frame, err := link.Receive(ctx)
		if err != nil || frame.Closed != "" {
			link.Close()
			return err == nil && frame.Leader != ""
		}
		b.mu.Lock()
		for _, r := range frame.Results {
			if r.Refused == "" {
				b.mu.acked = time.Now()
			}
		}
		b.mu.Unlock()
	}
}

func (b *builder) ackedSince(t time.Time) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.mu.acked.After(t)
}

// Any node may be cut off, for any time. Soon after the cut has healed, the players of every node can edit again and
// find land that was unknown to them, although questions across the cut and DHT walks still hang. Of the 10 s that are
// allowed, dht needs silentTime until it has replaced a dead connection.
func TestHealedCutServesSoon(t *testing.T) {
	const asked = 10*time.Second - 3*time.Second
	for _, away := range []string{"A", "B", "D", "AB", "AD", "CD", "BCD"} {
		t.Run(away, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				dice := rand.New(rand.NewPCG(1, uint64(len(away)+int(away[0]))))
				n := newNetwork(t)
				n.copies = 3
				n.adjust = func(_ string, o *Options) { o.Records = walks{n} }
				n.near("A", "B", "C")
				var all []*builder
				for _, peer := range []string{"A", "B", "C", "D"} {
					all = append(all, &builder{node: n.start(peer, newDisk()), name: fmt.Sprint("guest", len(all))})
				}
				<-time.After(20 * time.Second) // the catalog has its members
				ctx, cancel := context.WithCancel(context.Background())
				var wg sync.WaitGroup
				defer wg.Wait()
				defer cancel()
				for _, b := range all {
					wg.Go(func() { b.run(ctx) })
				}
				<-time.After(10 * time.Second)
				n.setMute(true)
				for round := range int32(rounds) {
					took, report := n.heal(all, away, round, dice)
					if t.Logf("after %v served again after %v, %s", away, took, report); took > asked {
						t.Errorf("%s apart: served again after %v, %s", away, took, report)
					}
				}
			})
		})
	}
}

// rounds is the number of cuts of each kind.
const rounds = 4

// heal cuts nodes off, lets a player on each node enter new land meanwhile, and heals the cut. It returns how long it
// then takes until all players are served, and which player was the last.
func (n *network) heal(all []*builder, away string, round int32, dice *rand.Rand) (slowest time.Duration, report string) {
	apart := func(off bool) {
		for peer := range strings.SplitSeq(away, "") {
			n.cut(peer, off)
		}
	}
	apart(true)
	hold := 6*time.Second + time.Duration(dice.Int64N(int64(34*time.Second)))
	found := make([]time.Time, len(all))
	var explorers sync.WaitGroup
	for i, b := range all {
		pos := grid.ChunkPos{X: here.X + 16*(round+1), Z: here.Z + 16*int32(i)}
		wait := time.Duration(dice.Int64N(int64(hold)))
		explorers.Go(func() {
			<-time.After(wait)
			found[i] = b.explore(pos)
		})
	}
	<-time.After(hold)
	apart(false)
	healed := time.Now()
	note := func(b *builder, what string, at time.Time) {
		if took := at.Sub(healed); took > slowest {
			slowest, report = took, fmt.Sprintf("%s on %s after a cut of %v", what, b.node.peer, hold)
		}
	}
	for _, b := range all {
		for !b.ackedSince(healed) && time.Since(healed) < time.Minute {
			<-time.After(20 * time.Millisecond)
		}
		note(b, "edits", time.Now())
	}
	explorers.Wait()
	for i, b := range all {
		note(b, "new land", found[i])
	}
	<-time.After(5 * time.Second)
	return slowest, report
}
