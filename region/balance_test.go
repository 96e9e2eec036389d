package region

import (
	"context"
	"fmt"
	"maps"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/region/actor"
	"github.com/voxelpopuli/voxeld/region/placement"
)

// town is a world of nodes with given loads, in which every region has three members, and A is nearest to all keys.
type town struct {
	t     *testing.T
	net   *network
	peers []string
	mu    struct {
		sync.Mutex
		nodes map[string]*node
		base  map[string]float64 // cores that a node uses for other things than the regions that it leads
		each  float64            // cores that each region costs
	}
}

// cells are the places of the town's regions, each in a founded cell of its own.
var cells = []grid.ChunkPos{{X: 4, Z: 4}, {X: 20, Z: 4}, {X: 4, Z: 20}, {X: 20, Z: 20}}

func newTown(t *testing.T, shed bool, peers ...string) *town {
	w := &town{t: t, net: newNetwork(t), peers: peers}
	w.mu.nodes, w.mu.base = make(map[string]*node), make(map[string]float64)
	w.net.copies = 3
	w.net.near(peers...)
	w.net.adjust = func(peer string, o *Options) {
		o.Balance = placement.Balance{
			Shed: shed, Capacity: 1, CPU: w.meter(peer),
			Players: func() int { return 0 }, Stored: func() int64 { return 0 }, Sent: func() uint64 { return 0 },
		}
	}
	for _, peer := range peers {
		it := w.net.start(peer, newDisk())
		it.regions.probe = func(l *actor.Land, entry []byte) {
			if l.Leads() && entry == nil {
				<-time.After(time.Millisecond) // so that time passes while the region is at work
			}
		}
		w.mu.Lock()
		w.mu.nodes[peer] = it
		w.mu.Unlock()
	}
	return w
}

// meter returns a clock of the CPU time that a node uses.
func (w *town) meter(peer string) func() (time.Duration, bool) {
	last, used := time.Now(), time.Duration(0)
	return func() (time.Duration, bool) {
		now := time.Now()
		used += time.Duration(w.load(peer) * float64(now.Sub(last)))
		last = now
		return used, true
	}
}

func (w *town) load(peer string) float64 {
	w.mu.Lock()
	it, load, each := w.mu.nodes[peer], w.mu.base[peer], w.mu.each
	w.mu.Unlock()
	if it != nil {
		load += each * float64(len(it.regions.ledLands()))
	}
	return load
}

func (w *town) set(each float64, base map[string]float64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.mu.each = each
	maps.Copy(w.mu.base, base)
}

// watch keeps a gateway in each region until ctx ends.
func (w *town) watch(ctx context.Context) (wait func()) {
	var crew sync.WaitGroup
	for _, pos := range cells {
		crew.Go(func() {
			for ctx.Err() == nil {
				if link, _, err := w.mu.nodes[w.peers[0]].Follow(ctx, pos); err == nil {
					for err == nil {
						frame, failed := link.Receive(ctx)
						if err = failed; frame.Closed != "" {
							break
						}
					}
					link.Close()
				}
				select {
				case <-ctx.Done():
				case <-time.After(100 * time.Millisecond):
				}
			}
		})
	}
	return crew.Wait
}

// leaders returns how many regions each node leads, and moves how many were moved because of load.
func (w *town) leaders() string {
	var all []string
	for _, peer := range w.peers {
		all = append(all, fmt.Sprintf("%s%d", peer, len(w.mu.nodes[peer].regions.ledLands())))
	}
	return strings.Join(all, " ")
}

func (w *town) moves(kind string) (n float64) {
	for _, peer := range w.peers {
		n += w.mu.nodes[peer].metric("voxeld_balance_moves_total", kind)
	}
	return n
}

func (w *town) expect(what, leaders string, leader, member float64) {
	w.t.Helper()
	if got := w.leaders(); got != leaders {
		w.t.Errorf("%s: %s lead, want %s", what, got, leaders)
	}
	if l, m := w.moves("leader"), w.moves("member"); l != leader || m != member {
		w.t.Errorf("%s: %v leaders and %v members were moved, want %v and %v", what, l, m, leader, member)
	}
}

// A node that is too busy hands regions to the other members. Then nothing moves until it is quiet again: the regions return.
func TestBusyNodeShedsRegions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newTown(t, true, "A", "B", "C", "D")
		ctx, stop := context.WithCancel(context.Background())
		defer w.watch(ctx)()
		defer stop()
		<-time.After(30 * time.Second)
		w.expect("at first", "A4 B0 C0 D0", 0, 0)
		w.set(0.2, map[string]float64{"A": 0.1, "B": 0.1, "C": 0.1, "D": 0.1})
		<-time.After(time.Minute)
		busy := w.leaders()
		if n := w.moves("leader"); busy[:2] != "A2" || n != 2 {
			t.Errorf("under load: %s lead after %v moves, want A2", busy, n)
		}
		<-time.After(10 * time.Minute)
		w.expect("later", busy, 2, 0)
		w.set(0.01, nil)
		<-time.After(time.Minute)
		w.expect("when it is quiet", "A4 B0 C0 D0", 2, 0)
	})
}

// If all members of its regions are too busy, another node becomes a member instead of one, and leads.
func TestBusyMemberIsReplaced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newTown(t, true, "A", "B", "C", "D", "E")
		ctx, stop := context.WithCancel(context.Background())
		defer w.watch(ctx)()
		defer stop()
		w.set(0, map[string]float64{"A": 0.1, "B": 0.55, "C": 0.58, "D": 0.1, "E": 0.05})
		<-time.After(time.Minute)
		w.set(0.2, nil)
		<-time.After(3 * time.Minute)
		if led := w.leaders(); led[:2] != "A2" || !strings.Contains(led, "B0 C0") {
			t.Errorf("under load: %s lead, want A2 and none B and C", led)
		}
		leader, member := w.moves("leader"), w.moves("member")
		if leader+member != 2 || member < 1 {
			t.Errorf("%v leaders and %v members were moved, want 2 of both", leader, member)
		}
		led := w.leaders()
		<-time.After(10 * time.Minute)
		w.expect("later", led, leader, member)
		w.set(0.01, map[string]float64{"B": 0.1, "C": 0.1})
		<-time.After(2 * time.Minute)
		w.expect("when it is quiet", "A4 B0 C0 D0 E0", leader, member)
		for _, r := range w.mu.nodes["A"].Regions(context.Background()) {
			if len(r.Region.Members) != 3 || !actor.HasMember(r.Region, "B") || !actor.HasMember(r.Region, "C") {
				t.Errorf("members %v", r.Region.Members)
			}
		}
	})
}

// Without balancing, loads are known, and change nothing.
func TestBalanceOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newTown(t, false, "A", "B", "C")
		ctx, stop := context.WithCancel(context.Background())
		defer w.watch(ctx)()
		defer stop()
		w.set(0.3, nil)
		<-time.After(2 * time.Minute)
		w.expect("under load", "A4 B0 C0", 0, 0)
		if load, _ := w.mu.nodes["B"].detector.Load("A"); load == nil || load.Busy < 1000 || load.Led != 5 {
			t.Errorf("B knows of A: %+v", load)
		}
	})
}
