package main

import (
	"context"
	"encoding/hex"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/voxelpopuli/voxeld/chunk"
	"github.com/voxelpopuli/voxeld/cmd/voxeld/internal/admin"
	"github.com/voxelpopuli/voxeld/dht/admission"
	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/internal/config"
	"github.com/voxelpopuli/voxeld/region"
	"github.com/voxelpopuli/voxeld/test/chaos/hostile"
	kit "github.com/voxelpopuli/voxeld/test/testkit/daemon"
	"github.com/voxelpopuli/voxeld/test/testkit/netns"
	"github.com/voxelpopuli/voxeld/trust"
	"github.com/voxelpopuli/voxeld/wire"
)

// revocationTime is how long it may take until all nodes have excluded a revoked one.
const revocationTime = 5 * time.Second

// refused runs the node, which must not get into the world, and returns what it says.
func (d *daemon) refused(join ...string) string {
	d.t.Helper()
	args := []string{"run", "--data-dir", d.dir, "--listen", "/ip4/" + d.ip + "/tcp/4001", "--game", d.Game, "--http", d.HTTP, "--metrics", ""}
	for _, entry := range join {
		args = append(args, "--join", entry)
	}
	_, errs, code := voxeld(d.t, args...)
	if code != exitFailed {
		d.t.Fatalf("it ends with exit code %d: %s", code, errs)
	}
	return errs
}

// operate runs a command on the node, and returns its output.
func (d *daemon) operate(args ...string) string {
	d.t.Helper()
	out, errs, code := voxeld(d.t, append(args, "--data-dir", d.dir)...)
	if code != 0 {
		d.t.Fatalf("voxeld %s: exit %d: %s", strings.Join(args, " "), code, errs)
	}
	return strings.TrimSpace(out)
}

// connected returns how many nodes the node is connected to.
func (d *daemon) connected() int {
	d.t.Helper()
	var s admin.Status
	d.ask("status", &s)
	return s.Peers
}

// A node needs a token. A token admits as many nodes as it says. A node that is revoked, or its operator or token, is
// excluded everywhere within seconds, and comes back when that is lifted.
func TestAdmission(t *testing.T) {
	t.Parallel()
	a := startDaemon(t)
	address := "/ip4/" + a.ip + "/tcp/4001"
	stranger := newDaemon(t, kit.Options{})
	if said := stranger.refused(address); !strings.Contains(said, "with a token only") {
		t.Errorf("without a token: %s", said)
	}
	token := a.operate("invite", "--operator", "Ada")
	b := startDaemon(t, "--join", token)
	if said := stranger.refused(token); !strings.Contains(said, "was used") {
		t.Errorf("with a used token: %s", said)
	}
	two := a.operate("invite", "--uses", "2")
	c := startDaemon(t, "--join", two)
	for _, d := range []*daemon{a, b, c} {
		eventually(t, "everybody knows everybody", patience, func() bool { return d.connected() == 2 })
	}
	if said := a.operate("status"); !strings.Contains(said, "gives out tokens, as the only node") || !strings.Contains(said, "certificate valid until") {
		t.Errorf("status of the issuer:\n%s", said)
	}
	if said := a.operate("invite", "--list"); strings.Count(said, "\n") != 1 || !strings.Contains(said, "1 of 2") {
		t.Errorf("of two tokens, one is used up, the other half:\n%s", said)
	}
	if said, _, _ := voxeld(t, "doctor", "--data-dir", a.dir); !strings.Contains(said, "only one node gives out tokens") || !strings.Contains(said, "makes no backups") {
		t.Errorf("the doctor does not note what is missing:\n%s", said)
	}
	if _, errs, code := voxeld(t, "invite", "--data-dir", b.dir); code == 0 || !strings.Contains(errs, "no issuer") {
		t.Errorf("a node that is no issuer invites: %s", errs)
	}
	var peers []admin.Peer
	a.ask("peers", &peers)
	operators := map[string]string{}
	for _, p := range peers {
		operators[p.Peer] = p.Operator
	}
	if operators[b.Status.Peer] != "Ada" || operators[c.Status.Peer] != "founder" {
		t.Errorf("operators: %v", operators)
	}

	for _, revoked := range []struct {
		kind     string
		what     []string
		listed   string
		excluded *daemon
		other    *daemon
		token    string // which admits nobody meanwhile
	}{
		{"node", []string{b.Status.Peer}, b.Status.Peer, b, c, ""},
		{"operator", []string{"--operator", "Ada"}, "Ada", b, c, a.operate("invite", "--operator", "Ada")},
		{"token", []string{"--token", two}, "token", c, b, two},
	} {
		revoke := append([]string{"peers", "revoke"}, revoked.what...)
		begun := time.Now()
		a.operate(append(revoke, "--reason", "broken", "--force")...) // regions may just have two members
		eventually(t, revoked.listed+" is excluded", revocationTime, func() bool {
			return a.connected() == 1 && revoked.other.connected() == 1 && revoked.excluded.connected() == 0
		})
		t.Logf("%s is excluded after %v", revoked.listed, time.Since(begun).Round(time.Millisecond))
		for _, d := range []*daemon{a, revoked.other} {
			eventually(t, "the node lists it", revocationTime, func() bool {
				said := d.operate("peers", "revoked")
				return strings.Contains(said, revoked.listed) && strings.Contains(said, "broken")
			})
		}
		eventually(t, "the excluded node says by whom it is", patience, func() bool {
			said, _, _ := voxeld(t, "status", "--data-dir", revoked.excluded.dir)
			return strings.Contains(said, "is excluded from the world: "+revoked.kind) && strings.Contains(said, "by "+a.Status.Peer+": broken")
		})
		if said, _, _ := voxeld(t, "doctor", "--data-dir", revoked.excluded.dir); !strings.Contains(said, "by "+a.Status.Peer) || strings.Contains(said, "certificate: node") {
			t.Errorf("the doctor of the excluded node:\n%s", said)
		}
		if said := a.operate("peers"); !strings.Contains(said, "revoked") {
			t.Errorf("the list of nodes does not mark the one that is revoked:\n%s", said)
		}
		if revoked.token != "" {
			if said := stranger.refused(revoked.token); !strings.Contains(said, "revoked") {
				t.Errorf("with a token that is revoked: %s", said)
			}
		}
		a.operate(append(revoke, "--lift")...)
		for _, d := range []*daemon{a, b, c} {
			eventually(t, "the node is back", patience, func() bool { return d.connected() == 2 })
		}
	}
}

// What operators order on a node is in its log, with who did, and without tokens.
func TestOrdersAreLogged(t *testing.T) {
	t.Parallel()
	d := startDaemon(t)
	token := d.operate("invite", "--operator", "Ada")
	d.operate("peers", "revoke", "--token", token, "--reason", "lost")
	if _, _, code := voxeld(t, "region", "recover", "9,9/0000", "--yes", "--data-dir", d.dir); code == 0 {
		t.Error("land that does not exist was recovered")
	}
	d.operate("backup", "--data-dir", d.dir, filepath.Join(t.TempDir(), "b.voxback"))
	nobody := "12D3KooWSwuJ3aPoNbCdyd7ifNvj98pjrfPWfxeJxpRDoEDczKWG"
	if _, _, code := voxeld(t, "peers", "appoint", nobody, "--data-dir", d.dir); code == 0 {
		t.Error("a node that is not there was appointed")
	}
	for _, forgetful := range [][]string{
		{"revoke", token}, {"revoke", "--operator", token[:len(token)-3], "--force"}, {"forget", token, "--yes"}, {"appoint", strings.ToUpper(token)}, {"dismiss", token},
	} {
		_, _, _ = voxeld(t, append([]string{"peers", "--data-dir", d.dir}, forgetful...)...)
	}
	if _, errs, code := voxeld(t, "drain", "--data-dir", d.dir); code != 0 {
		t.Errorf("drain: exit %d: %s", code, errs)
	}
	me := fmt.Sprintf("uid=%d", os.Getuid())
	for _, said := range []string{
		`"ordered by an operator" path=/invite ` + me + ` operator=Ada`,
		`"ordered by an operator" path=/peers/revoke ` + me + ` kind=token subject="a token"`,
		`"ordered by an operator" path=/backup ` + me,
		`"ordered by an operator" path=/peers/appoint ` + me + ` node=` + nobody,
		`"an operator's order has failed" path=/peers/appoint ` + me + ` node=` + nobody + ` error="`,
		`"ordered by an operator" path=/drain ` + me,
	} {
		if !strings.Contains(d.Output(), said) {
			t.Errorf("the log has no %s", said)
		}
	}
	if strings.Contains(strings.ToLower(d.Output()), token[:40]) {
		t.Error("the log has a token")
	}
}

// The regions of a node that is revoked get other members at once, though they would wait an hour for one that is
// silent.
func TestRevokedMembersAreReplaced(t *testing.T) {
	t.Parallel()
	all := cluster(t, 4, "--replace-after", "1h")
	for i := range int32(6) {
		locate(t, all[i%4].Game, grid.ChunkPos{X: 64 * i, Z: 64 * i})
	}
	var revoked *daemon
	eventually(t, "all regions have all their members, and a node that is not the founder's has some", patience, func() bool {
		i := slices.IndexFunc(all[1:], func(d *daemon) bool { return d.metric("voxeld_node_regions") > 0 })
		if i >= 0 {
			revoked = all[1+i]
		}
		return i >= 0 && complete(slices.DeleteFunc(slices.Clone(all), func(d *daemon) bool { return d.metric("voxeld_node_regions") == 0 }))
	})
	all[0].operate("peers", "revoke", revoked.Status.Peer)
	left := slices.DeleteFunc(slices.Clone(all), func(d *daemon) bool { return d == revoked })
	eventually(t, "the other nodes have all regions, with three copies", patience, func() bool {
		return complete(left) && !slices.ContainsFunc(left[0].doctor().Findings, func(f region.Finding) bool {
			return f.Kind == "under_replicated" && f.Subject != "catalog" // which wants four members
		})
	})
}

// Three of four nodes are the founder's, one is Ada's: it has a copy of every region.
func TestOperatorsShareRegions(t *testing.T) {
	t.Parallel()
	const replicas, cells = "--replicas=2", 8
	a := startDaemon(t, replicas)
	founders := a.operate("invite", "--uses", "2")
	all := []*daemon{a, startDaemon(t, replicas, "--join", founders), startDaemon(t, replicas, "--join", founders)}
	adas := startDaemon(t, replicas, "--join", a.operate("invite", "--operator", "Ada"))
	all = append(all, adas)
	for _, d := range all {
		eventually(t, "everybody knows everybody", patience, func() bool { return d.connected() == len(all)-1 })
	}
	for i := range int32(cells) {
		locate(t, all[i%4].Game, grid.ChunkPos{X: 64 * i, Z: 64 * i})
	}
	eventually(t, "Ada's node has a copy of every region", 2*patience, func() bool {
		copies := 0
		for _, r := range adas.regions() {
			if r.Voters == 2 {
				copies++
			}
		}
		return copies >= cells
	})
}

// Three nodes of three operators have three copies of every region. When two more operators run one, it has five, so
// that no two of them are most of its members.
func TestFiveOperators(t *testing.T) {
	t.Parallel()
	const cells = 4
	a := startDaemon(t)
	all := []*daemon{a}
	grow := func(operators ...string) {
		for _, name := range operators {
			all = append(all, startDaemon(t, "--join", a.operate("invite", "--operator", name)))
		}
		for _, d := range all {
			eventually(t, "everybody knows everybody", patience, func() bool { return d.connected() == len(all)-1 })
		}
	}
	have := func(voters int) {
		t.Helper()
		have := make(map[string]bool) // some are closed again before the last one has them
		eventually(t, fmt.Sprintf("all regions have %d voters, and are healthy", voters), 2*patience, func() bool {
			for _, d := range all {
				for _, r := range d.regions() {
					if r.Leader == d.Status.Peer && r.Voters == voters {
						have[r.ID] = true
					}
				}
			}
			return len(have) >= cells && complete(all)
		})
	}
	grow("Ada", "Bob")
	for i := range int32(cells) {
		locate(t, all[i%3].Game, grid.ChunkPos{X: 64 * i, Z: 64 * i})
	}
	have(3)
	grow("Cleo", "Dan")
	have(5)
}

// Nodes that are started together share a token in a file. It outlives restarts.
func TestTokenFile(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "join")
	a := newDaemon(t, kit.Options{Args: []string{"--token-file", file}})
	b := newDaemon(t, kit.Options{Args: []string{"--join", "@" + file}})
	if said := b.refused("@" + file); !strings.Contains(said, "no token in") {
		t.Errorf("without the file: %s", said)
	}
	a.init()
	a.start()
	secret := func() string {
		t.Helper()
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		token, err := config.ParseToken(string(text))
		if err != nil || token.Secret == nil {
			t.Fatalf("token %v: %v", token, err)
		}
		return token.Secret.ID().String()
	}
	first := secret()
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode of the file: %v, %v", info.Mode(), err)
	}
	b.start()
	if a.Status.WorldID != b.Status.WorldID {
		t.Errorf("two worlds: %s and %s", a.Status.WorldID, b.Status.WorldID)
	}
	a.terminate()
	a.start()
	if again := secret(); again != first {
		t.Errorf("the token changed at a restart: %s, %s", first, again)
	}
	b.terminate()
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	b.start() // it has its certificate
}

// A node that has lost its data, and so would create a world, does not replace the token of the world that others still
// have.
func TestTokenFileOfAnotherWorld(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "join")
	token := config.Token{World: strings.Repeat("ab", 32), Secret: new(trust.Secret), Addrs: []string{"/ip4/127.0.0.9/tcp/4001/p2p/12D3KooWDpJ7As7BWAwRMfu1VU2WCqNjvq387JEYKDBj4kx6nXTN"}}.String()
	if err := os.WriteFile(file, []byte(token+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	a := newDaemon(t, kit.Options{Args: []string{"--token-file", file}})
	if err := a.Start(t.Context(), ""); err == nil {
		t.Error("it started")
	} else if said := err.Error(); a.ExitCode() != exitUsage || !strings.Contains(said, file+" is of world abababababab") ||
		!strings.Contains(said, "--join") || !strings.Contains(said, "remove the file") {
		t.Errorf("exit %d: %s", a.ExitCode(), said)
	}
	if text, err := os.ReadFile(file); strings.TrimSpace(string(text)) != token || err != nil {
		t.Fatalf("the token was replaced: %s, %v", text, err)
	}
	if _, err := os.Lstat(filepath.Join(a.dir, databaseName)); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("it left a database, and voxeld restore would be refused: %v", err)
	}
	if err := os.Truncate(file, 0); err != nil {
		t.Fatal(err)
	}
	for range 2 { // with an empty file, and then with its own token
		a.start()
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if own, err := config.ParseToken(string(text)); own.World != a.Status.WorldID || err != nil {
			t.Errorf("the token is of world %s, want %s: %v", own.World, a.Status.WorldID, err)
		}
		a.terminate()
	}
}

// An open world is closed, one node after the other, without losing an edit, or what operators and those whom they gave
// roles have ordered. Then a stranger is refused.
func TestOpenWorldIsClosed(t *testing.T) {
	t.Parallel()
	a := newDaemon(t, kit.Options{})
	if err := a.Init(t.Context(), "--seed", "33", "--open"); err != nil {
		t.Fatal(err)
	}
	a.start()
	if said := a.operate("status"); !strings.Contains(said, "open:") {
		t.Errorf("status:\n%s", said)
	}
	address := "/ip4/" + a.ip + "/tcp/4001"
	b, c := startDaemon(t, "--join", address), startDaemon(t, "--join", address)
	all := []*daemon{a, b, c}
	ann := join(t, b.Game, "ann", 1)
	built := under(ann, 1, 0, 2)
	ann.until("the ground", func() bool { _, ok := ann.at(built); return ok })
	ann.put(built, chunk.Brick)
	ann.leave()
	token := a.operate("owner")
	ada, mod := joinWithKey(t, b.Game, "ada", "ada's key"), joinWithKey(t, c.Game, "mod", "mod's key")
	ada.command("register")
	mod.command("register")
	for _, step := range []struct {
		by         *tester
		text, want string
	}{
		{ada, "owner " + token, "You own this world"},
		{ada, "role mod moderator", "mod has the role moderator."},
		{mod, "ban eve", "eve is banned for good."},
	} {
		if got := step.by.command(step.text); !strings.HasPrefix(got, step.want) {
			t.Errorf("%s: %s", step.text, got)
		}
	}
	b.operate("ban", "gus")
	ada.leave()
	mod.leave()
	threefold(t, all)

	a.operate("peers", "close")
	a.terminate()
	a.start()
	for _, d := range all[1:] {
		d.terminate()
		if err := d.Start(t.Context(), a.operate("invite")); err != nil {
			t.Fatal(err)
		}
	}
	for _, d := range all {
		eventually(t, "everybody knows everybody", patience, func() bool { return d.connected() == 2 })
	}
	join(t, c.Game, "bob", 1).sees(built, chunk.Brick)
	for _, d := range all {
		for _, name := range []string{"eve", "gus"} {
			if code := dialSession(t, d.Game, name, 1).ended(); code != wire.FailBanned {
				t.Errorf("%s, who is banned, is answered %q", name, code)
			}
		}
	}
	ada, mod = joinWithKey(t, b.Game, "ada", "ada's key"), joinWithKey(t, c.Game, "mod", "mod's key")
	ada.until("the role of an owner", func() bool { return ada.Permissions.Role == "owner" })
	mod.until("the role of a moderator", func() bool { return mod.Permissions.Role == "moderator" })
	if got := ada.command("pardon eve"); got != "The ban of eve is lifted." {
		t.Error(got)
	}
	eventually(t, "a command under the charter ends the time without one", patience, func() bool {
		return strings.Contains(a.operate("audit"), "set players builder")
	})
	agree(t, a, b, c)
	if said := newDaemon(t, kit.Options{}).refused(address); !strings.Contains(said, "with a token only") {
		t.Errorf("without a token: %s", said)
	}
	c.terminate()
	c.start() // with its old --join, and its certificate
}

// newStranger returns a stranger that is connected to the node.
func newStranger(t *testing.T, d *daemon) *hostile.Stranger {
	t.Helper()
	s, err := hostile.NewStranger(t.Context(), "/ip4/"+takeAddress(t)+"/tcp/4001", d.Listen)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

// A stranger without a token is served nothing but the admission protocol, and what every libp2p host answers.
func TestStranger(t *testing.T) {
	t.Parallel()
	d := startDaemon(t)
	s := newStranger(t, d)
	host, peer := s.Host, s.Peer
	served, err := host.LibP2P().Peerstore().GetProtocols(host.LibP2P().Network().Peers()[0])
	if err != nil || len(served) < 8 {
		t.Fatalf("the node has the protocols %v, %v", served, err)
	}
	for _, protocol := range served {
		name := string(protocol)
		if name == admission.Protocol || strings.HasPrefix(name, "/ipfs/") {
			continue
		}
		ctx, cancel := context.WithTimeout(t.Context(), 15*time.Second)
		if answer, err := host.Ask(ctx, peer, name, []byte{0xa0}); err == nil || ctx.Err() != nil {
			t.Errorf("%s: %x, %v", name, answer, err)
		}
		cancel()
		if _, err := host.Connect(t.Context(), d.Listen); err != nil { // strangers are disconnected after a while
			t.Fatal(err)
		}
	}
	if world, err := admission.World(t.Context(), host, peer); err != nil || hex.EncodeToString(world[:]) != d.Status.WorldID {
		t.Errorf("the world's id: %x, %v", world, err)
	}
}

// floodTime is how long strangers flood a node.
var floodTime = flag.Duration("flood-time", 5*time.Second, "how long strangers flood a node in TestStrangersFlood")

// separate returns options of daemons with networks of their own, where strangers have one address and nodes have
// others. Without root, or the tools for it, all are on loopback, where a node tells strangers apart only once it has
// made a connection.
func separate(t *testing.T, n int) []kit.Options {
	t.Helper()
	nodes := make([]kit.Options, n)
	if why := netns.Missing(); why != "" {
		t.Logf("on loopback: %s", why)
		return nodes
	}
	const prefix = "vxflood"
	if err := netns.Sweep(prefix); err != nil {
		t.Fatal(err)
	}
	bridge, err := netns.NewBridge(prefix, "10.79.0", n)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := netns.Sweep(prefix); err != nil {
			t.Error(err)
		}
	})
	for i := range nodes {
		nodes[i] = kit.Options{IP: bridge.Address(i + 1)}
		nodes[i].Prefix = bridge.Enter(i + 1)
	}
	return nodes
}

// heapSizes returns the sizes of the node's heap within floodTime, the smallest first, and the processor time that it
// takes meanwhile.
func (d *daemon) heapSizes() (sizes []float64, busy float64) {
	d.t.Helper()
	if err := d.Collect(d.t.Context()); err != nil {
		d.t.Fatal(err)
	}
	const processor = "process_cpu_seconds_total"
	busy = -d.metric(processor)
	ctx, cancel := context.WithTimeout(d.t.Context(), *floodTime)
	defer cancel()
	for ctx.Err() == nil {
		sizes = append(sizes, d.metric("go_memstats_heap_inuse_bytes")/(1<<20))
		select {
		case <-time.After(200 * time.Millisecond):
		case <-ctx.Done():
		}
	}
	slices.Sort(sizes)
	return sizes, busy + d.metric(processor)
}

// Strangers that open 3,200 streams a second, and send half of a frame in each, cost a bounded amount of memory, and
// keep no node out. Once their address is refused, they cost hardly any processor time. Part of what the heap grows by
// is garbage, of what the test asks of the node: the cost is what it grows by beyond that, which the test measures
// before. Garbage may be as large as what lives, not four times as large.
func TestStrangersFlood(t *testing.T) {
	t.Parallel()
	const most = 32 // MiB that strangers may cost
	nodes := separate(t, 3)
	nodes[0].Env = append(nodes[0].Env, "GOGC=100")
	d := newDaemon(t, nodes[0])
	d.start()
	enters := func(b *daemon, connected int) {
		t.Helper()
		if err := b.Start(t.Context(), d.operate("invite")); err != nil {
			t.Fatal(err)
		}
		eventually(t, "a node joins", patience, func() bool { return b.connected() == connected })
	}
	enters(newDaemon(t, nodes[1]), 1)
	before, idle := d.heapSizes()

	flooding, end := context.WithCancel(t.Context())
	defer end()
	var wg sync.WaitGroup
	var opened atomic.Int64
	for range 4 {
		s := newStranger(t, d)
		wg.Go(func() { opened.Add(s.Flood(flooding, d.Status.WorldID)) })
	}
	enters(newDaemon(t, nodes[2]), 2)
	sizes, busy := d.heapSizes()
	end()
	wg.Wait()
	median, peak := func(s []float64) float64 { return s[len(s)/2] }, func(s []float64) float64 { return s[len(s)-1] }
	t.Logf("%d streams of strangers: %.0f MiB, at most %.0f, and without them %.0f, at most %.0f; %.1f s of processor in %v, and without them %.1f",
		opened.Load(), median(sizes), peak(sizes), median(before), peak(before), busy, *floodTime, idle)
	if cost := max(median(sizes)-median(before), peak(sizes)-peak(before)); cost > most {
		t.Errorf("strangers cost %.0f MiB, more than %d", cost, most)
	}
}
