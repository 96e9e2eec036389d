package replica_test

import (
	"errors"
	"flag"
	"fmt"
	"hash/fnv"
	"io"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/cryptotest"
	"time"
)

// The simulation is described in doc.go.
var (
	simulationSeeds   = flag.String("simulation.seeds", "1-10", "seeds of the simulation, as 7 or 1-20 or 1,5,9")
	simulationMinutes = flag.Int("simulation.minutes", 30, "virtual minutes that each seed is simulated")
	simulationTrace   = flag.String("simulation.trace", "", "file for the whole trace of the last seed")
)

// TestSimulation runs whole clusters in virtual time. It fails at the first broken guarantee.
func TestSimulation(t *testing.T) {
	seeds, err := parseSeeds(*simulationSeeds)
	if err != nil {
		t.Fatal(err)
	}
	began, minutes := time.Now(), 0.0
	total := make(map[string]int)
	for _, seed := range seeds {
		s := simulate(t, seed, *simulationMinutes)
		minutes += s.now.Minutes()
		for name, n := range s.counts {
			total[name] += n
		}
		total["slowest to be well again, ms"] = max(total["slowest to be well again, ms"], int(s.slowest/time.Millisecond))
		if s.failure != "" {
			t.Fatalf("%s", s.report(*simulationMinutes))
		}
		t.Logf("seed %d: trace %016x, %d events", seed, s.hash, s.seq)
	}
	names := slices.Sorted(maps.Keys(total))
	for _, name := range names {
		t.Logf("%-32s %d", name, total[name])
	}
	seconds := time.Since(began).Seconds()
	t.Logf("%d seeds, %.0f virtual minutes in %.1f s: %.1f a second", len(seeds), minutes, seconds, minutes/seconds)
}

// TestSimulationReplays: the same seed has the same result, also in another process.
func TestSimulationReplays(t *testing.T) {
	const seed, minutes = 3, 3
	first, second := simulate(t, seed, minutes), simulate(t, seed, minutes)
	if first.hash != second.hash || first.seq != second.seq {
		t.Fatalf("trace %016x of %d events, then %016x of %d", first.hash, first.seq, second.hash, second.seq)
	}
	if other := simulate(t, seed+1, minutes); other.hash == first.hash {
		t.Fatal("another seed does the same")
	}
	if os.Getenv("VOXELD_SIMULATION_CHILD") != "" {
		fmt.Printf("trace %016x\n", first.hash)
		return
	}
	child := exec.Command(os.Args[0], "-test.run", "^TestSimulationReplays$")
	child.Env = append(os.Environ(), "VOXELD_SIMULATION_CHILD=1")
	said, err := child.CombinedOutput()
	if want := fmt.Sprintf("trace %016x\n", first.hash); err != nil || !strings.Contains(string(said), want) {
		t.Fatalf("another process: %v, %s, want %s", err, said, want)
	}
}

func parseSeeds(text string) ([]uint64, error) {
	var seeds []uint64
	for part := range strings.SplitSeq(text, ",") {
		low, high, span := strings.Cut(part, "-")
		if !span {
			high = low
		}
		from, err := strconv.ParseUint(low, 10, 64)
		to, err2 := strconv.ParseUint(high, 10, 64)
		if err = errors.Join(err, err2); err != nil || to < from {
			return nil, fmt.Errorf("parse seeds %q: %w", text, err)
		}
		for ; from <= to; from++ {
			seeds = append(seeds, from)
		}
	}
	return seeds, nil
}

// sim is a simulated cluster with its players. Everything happens in the goroutine of simulate, in the order of the
// queue; all randomness comes from the seed.
type sim struct {
	seed    uint64
	random  *rand.Rand
	now     time.Duration // virtual
	queue   []task        // a heap
	seq     uint64
	nodes   []*machine
	peers   map[string]*machine
	network networkFaults
	models  map[uint64]*model
	clients []*client
	cells   []place
	calm    bool
	asleep  bool // regions may hibernate
	counts  map[string]int
	slowest time.Duration // from the end of faults until all was well
	history map[string][]operation
	blocks  uint16
	flooded uint64
	events  int // in this second

	hash    uint64
	notes   [1024]note // the newest, as a ring
	noted   int
	failure string
	trace   io.Writer // all notes, if requested
}

// task is something that happens at a time. Tasks of the same time happen in the order in which they were planned.
type task struct {
	at  time.Duration
	seq uint64
	do  func()
}

func (s *sim) at(at time.Duration, do func()) {
	s.seq++
	q := append(s.queue, task{at: max(at, s.now), seq: s.seq, do: do})
	i := len(q) - 1
	for i > 0 {
		parent := (i - 1) / 2
		if !q[i].before(q[parent]) {
			break
		}
		q[i], q[parent] = q[parent], q[i]
		i = parent
	}
	s.queue = q
}

func (t task) before(o task) bool { return t.at < o.at || t.at == o.at && t.seq < o.seq }

func (s *sim) next() task {
	q := s.queue
	first, n := q[0], len(q)-1
	q[0], q[n] = q[n], task{}
	q = q[:n]
	for i := 0; ; {
		least := i
		for child := 2*i + 1; child <= 2*i+2 && child < n; child++ {
			if q[child].before(q[least]) {
				least = child
			}
		}
		if least == i {
			break
		}
		q[i], q[least] = q[least], q[i]
		i = least
	}
	s.queue = q
	return first
}

// tooMuch is the most tasks that a virtual second may have; a few hundred are usual.
const tooMuch = 50_000

// run lets virtual time pass.
func (s *sim) run(until time.Duration) {
	for s.failure == "" && len(s.queue) > 0 && s.queue[0].at <= until {
		t := s.next()
		if t.at/time.Second != s.now/time.Second {
			s.events = 0
		}
		if s.events++; s.events > tooMuch {
			s.fail("more than %d things happen in a second: a node does not come to rest", tooMuch)
		}
		s.now = t.at
		t.do()
	}
	if s.failure == "" {
		s.now = until
	}
}

// simulate runs one seed.
func simulate(t *testing.T, seed uint64, minutes int) *sim {
	t.Helper()
	// Raft draws its election timeouts from crypto/rand, and they cannot be injected.
	cryptotest.SetGlobalRandom(t, seed)
	s := &sim{
		seed: seed, random: rand.New(rand.NewPCG(seed, 0x766f78656c64)), peers: make(map[string]*machine),
		models: make(map[uint64]*model), counts: make(map[string]int), history: make(map[string][]operation), hash: 14695981039346656037,
	}
	if *simulationTrace != "" {
		file, err := os.Create(*simulationTrace)
		if err != nil {
			t.Fatal(err)
		}
		defer file.Close()
		s.trace = file
	}
	s.network.clear()
	s.begin()
	for s.failure == "" && s.now < time.Duration(minutes)*time.Minute {
		s.storm()
		s.heal()
		s.trial()
	}
	if s.failure == "" {
		s.linearizable()
	}
	return s
}

// between draws a duration.
func (s *sim) between(low, high time.Duration) time.Duration {
	return low + time.Duration(s.random.Int64N(int64(high-low)+1))
}

func (s *sim) chance(p float64) bool { return p > 0 && s.random.Float64() < p }

// note is one line of the trace. Its contents are part of the hash; it is formatted only for a failure.
type note struct {
	at   time.Duration
	who  string
	what string
	a, b uint64
	data []byte // a raft message
	text string
}

func (n note) String() string {
	said := fmt.Sprintf("  %11.4f %-4s %-10s %s", n.at.Seconds(), n.who, n.what, n.text)
	if n.data != nil {
		return fmt.Sprintf("%s group %d %s", said, n.a, describe(n.data))
	}
	if n.a != 0 || n.b != 0 {
		return fmt.Sprintf("%s %d %d", said, n.a, n.b)
	}
	return said
}

// note adds a line to the trace.
func (s *sim) note(n note) {
	n.at = s.now
	s.mix(uint64(n.at))
	s.mixString(n.who)
	s.mixString(n.what)
	s.mix(n.a)
	s.mix(n.b)
	s.mixString(n.text)
	for _, c := range n.data {
		s.hash = (s.hash ^ uint64(c)) * 1099511628211
	}
	s.notes[s.noted%len(s.notes)] = n
	if s.trace != nil {
		fmt.Fprintln(s.trace, n.String())
	}
	s.noted++
}

func (s *sim) mix(v uint64) {
	s.hash = (s.hash ^ v) * 1099511628211
	s.hash ^= s.hash >> 29
}

func (s *sim) mixString(v string) {
	for i := range len(v) {
		s.hash = (s.hash ^ uint64(v[i])) * 1099511628211
	}
}

func (s *sim) count(what string) { s.counts[what]++ }

// fail records the first failure; the run ends with the current event.
func (s *sim) fail(format string, args ...any) {
	if s.failure == "" {
		s.failure = fmt.Sprintf(format, args...)
	}
}

// report prints the failure, the events before it, and how to reproduce it.
func (s *sim) report(minutes int) string {
	var b strings.Builder
	fmt.Fprintf(&b, "seed %d, after %.2f virtual minutes: %s\n", s.seed, s.now.Minutes(), s.failure)
	for i := max(0, s.noted-len(s.notes)); i < s.noted; i++ {
		n := s.notes[i%len(s.notes)]
		said := n.String()
		if s.noted-i < 60 || s.noted-i < 400 && !strings.Contains(said, "MsgHeartbeat") {
			fmt.Fprintln(&b, said)
		}
	}
	s.summarize(&b)
	fmt.Fprintf(&b, "replay: go test ./replica -run '^TestSimulation$' -v -simulation.seeds=%d -simulation.minutes=%d", s.seed, minutes)
	return b.String()
}

func (s *sim) summarize(w io.Writer) {
	for _, n := range s.nodes {
		fmt.Fprintf(w, "  %s: up %v, paused %v, full %v\n", n.peer, n.host != nil, n.paused, n.full)
		if n.host == nil {
			continue
		}
		for group := range n.opening {
			fmt.Fprintf(w, "    group %d is being opened, or removed; the host has replica %d\n", group, n.host.ReplicaID(group))
		}
		for _, m := range s.inOrder() {
			if id := n.host.ReplicaID(m.group); n.owner(m.group) == nil {
				fmt.Fprintf(w, "    group %d has no owner here; the host has replica %d, drowsy until %v, removed %d\n", m.group, id, n.noWakeUntil[m.group], n.tombstones[m.group])
			}
		}
		for _, o := range n.owners {
			if o.group != nil {
				fmt.Fprintf(w, "    group %d replica %d: %+v, %v\n", o.id, n.host.ReplicaID(o.id), o.group.Status(), o.group.Configuration())
			}
		}
	}
}

func hash64(parts ...[]byte) uint64 {
	h := fnv.New64a()
	for _, p := range parts {
		h.Write(p)
	}
	return h.Sum64()
}
