package hostile

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/voxelpopuli/voxeld/dht"
	"github.com/voxelpopuli/voxeld/dht/admission"
	"github.com/voxelpopuli/voxeld/dht/transport"
	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/player"
	"github.com/voxelpopuli/voxeld/policy"
	regiontransport "github.com/voxelpopuli/voxeld/region/transport"
	"github.com/voxelpopuli/voxeld/store"
	"github.com/voxelpopuli/voxeld/trust"
	"github.com/voxelpopuli/voxeld/wire"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
	"github.com/voxelpopuli/voxeld/world"
)

// unbeatable is the highest epoch and term that a record can have.
const unbeatable = 1<<48 - 1

// A Liar is an admitted node that lies. To others it lives, and leads the catalog: it answers questions about any land
// with itself.
type Liar struct {
	Self nodemsg.Member
	// Recovered has it say that every region was recovered on it alone, and not only that its members have changed.
	Recovered atomic.Bool

	host     *transport.Host
	dht      *dht.DHT
	world    world.Genesis
	charter  func() uint64 // the number of the newest one
	victims  []string      // peer ids
	asked    atomic.Int64
	followed atomic.Int64
	closers  []func() error
}

// Impersonate returns a liar with the identity of a stopped daemon, from its database. It connects to its victims,
// which are addresses as in /ip4/127.0.0.1/tcp/4001, and can be reached at another one. It says that players find it at
// the game address.
func Impersonate(ctx context.Context, database, listen, game string, victims []string) (l *Liar, err error) {
	l = &Liar{Self: nodemsg.Member{Game: game}}
	defer func() {
		if err != nil {
			err = errors.Join(fmt.Errorf("impersonate a node: %w", err), l.Close())
		}
	}()
	db, err := store.Open(store.Options{Path: database})
	if err != nil {
		return l, err
	}
	l.closers = append(l.closers, db.Close)
	running, stop := context.WithCancel(context.WithoutCancel(ctx))
	var wg sync.WaitGroup
	l.closers = append(l.closers, func() error { stop(); wg.Wait(); return nil })
	wg.Go(func() { db.Run(running) }) //nolint:errcheck // a liar needs no durable storage
	row, err := db.Get(world.GenesisTable, []byte(world.GenesisKey))
	if err != nil {
		return l, err
	}
	if l.world, err = world.DecodeGenesis(row); err != nil {
		return l, err
	}
	if l.host, err = transport.NewHost(transport.Options{Storage: db, Listen: []string{listen}}); err != nil {
		return l, err
	}
	l.closers = append(l.closers, l.host.Close)
	l.Self.Peer = l.host.PeerID()
	id, err := hex.DecodeString(l.world.ID())
	if err != nil {
		return l, err
	}
	gate, err := admission.Open(admission.Options{
		World: trust.World(id), Roots: l.world.Roots, Genesis: l.world.Encode(), Storage: db, Host: l.host,
		Root: func() (trust.Signer, error) { return nil, errors.New("no root key") }, Logger: slog.New(slog.DiscardHandler), Registerer: prometheus.NewRegistry(),
	})
	if err != nil {
		return l, err
	}
	l.charter = func() uint64 { return gate.Charter().Number }
	wg.Go(func() { gate.Run(running) }) //nolint:errcheck // it ends with the context
	l.host.HandleAsk(admission.Protocol, gate.Answer)
	l.host.SetGate(gate)
	l.host.HandleAsk(l.protocol(regiontransport.AskProtocol), l.answer)
	l.host.Handle(l.protocol(regiontransport.LinkProtocol), l.lead)
	if l.dht, err = dht.Join(l.host, dht.Options{World: l.world.ID(), Placement: l.world.Placement, Storage: db}); err != nil {
		return l, err
	}
	l.closers = append(l.closers, l.dht.Close)
	for _, address := range victims {
		peer, err := l.host.Connect(ctx, address)
		if err != nil {
			return l, err
		}
		l.victims = append(l.victims, peer)
	}
	return l, nil
}

// Close ends the liar's life.
func (l *Liar) Close() error {
	var errs []error
	for i := len(l.closers) - 1; i >= 0; i-- {
		errs = append(errs, l.closers[i]())
	}
	l.closers = nil
	return errors.Join(errs...)
}

// Believed returns how many questions about land the liar was asked as the catalog.
func (l *Liar) Believed() int { return int(l.asked.Load()) }

// Followed returns how many gateways have followed an introduction of the liar.
func (l *Liar) Followed() int { return int(l.followed.Load()) }

// introduced is the id of all regions that only the liar knows.
const introduced = 78

// Introduce sends all victims an introduction of the liar as the leader of a region around the chunk, which is listed
// nowhere. It returns how many have answered.
func (l *Liar) Introduce(ctx context.Context, pos grid.ChunkPos) (answered int) {
	region := l.claim(introduced)
	region.Cell = grid.CellAt(pos, grid.FoundingLabel)
	for _, peer := range l.victims {
		if _, ok := l.ask(ctx, peer, nodemsg.Question{Introduce: &region}); ok {
			answered++
		}
	}
	return answered
}

// lead accepts gateways as the leader of a region that the liar has introduced.
func (l *Liar) lead(_ context.Context, _ string, s io.ReadWriteCloser) {
	in := bufio.NewReader(s)
	hello, err := wire.ReadFrame[nodemsg.Hello](in, wire.MaxFrame)
	if err != nil || hello.Region != introduced {
		return
	}
	l.followed.Add(1)
	if err := errors.Join(wire.WriteFrame(s, nodemsg.FromRegion{Alive: true}), wire.WriteFrame(s, nodemsg.FromRegion{Tick: 1})); err != nil {
		return
	}
	io.Copy(io.Discard, in) //nolint:errcheck // until the gateway ends the link
}

// World returns the id of the world.
func (l *Liar) World() string { return l.world.ID() }

// Heard reports whether a node answers the liar.
func (l *Liar) Heard(ctx context.Context, peer string) bool {
	_, answered := l.ask(ctx, peer, nodemsg.Question{Describe: &nodemsg.Describe{}})
	return answered
}

func (l *Liar) protocol(name string) string { return "/voxeld/" + l.world.ID()[:16] + name }

// answer answers as the only member of the catalog, which leads all land. It agrees to become a member of groups, and
// to remove others from them, and does nothing of that.
func (l *Liar) answer(_ context.Context, _ string, question []byte) ([]byte, error) {
	q, err := nodemsg.DecodeQuestion(question)
	if err != nil {
		return nil, err
	}
	var answer nodemsg.Answer
	switch {
	case q.Status != nil:
		for _, id := range q.Status.Regions {
			status := nodemsg.RegionStatus{
				Region: id, State: nodemsg.StateOpen, Leader: l.Self.Peer, Term: unbeatable, Epoch: unbeatable,
				Members: []nodemsg.MemberStatus{{Replica: nodemsg.Replica{ID: 1, Peer: l.Self.Peer}}},
			}
			if l.Recovered.Load() {
				status.Recovered = unbeatable / nodemsg.RecoveredEpoch
			}
			answer.Statuses = append(answer.Statuses, status)
		}
	case q.Rejoin != nil:
		answer.Replica = unbeatable
	case q.Authority != nil:
		l.asked.Add(1)
		region := l.claim(cmp.Or(q.Authority.ID, 77))
		region.Cell = grid.CellAt(q.Authority.Chunk, grid.FoundingLabel)
		answer.Region = &region
	default:
		answer.Member = &l.Self
	}
	return nodemsg.EncodeAnswer(answer)
}

// claim returns a region of which the liar is the only member.
func (l *Liar) claim(id uint64) nodemsg.Region {
	return nodemsg.Region{ID: id, Epoch: unbeatable, Term: unbeatable, Leader: l.Self.Peer, Members: []nodemsg.Member{l.Self}}
}

// ask asks a node, and returns its answer, and whether it is one without an error.
func (l *Liar) ask(ctx context.Context, peer string, q nodemsg.Question) (answer nodemsg.Answer, ok bool) {
	question, err := nodemsg.EncodeQuestion(q)
	if err != nil {
		panic(err) // the questions of this package can be encoded
	}
	reply, err := l.host.Ask(ctx, peer, l.protocol(regiontransport.AskProtocol), question)
	if err != nil {
		return answer, false
	}
	answer, err = nodemsg.DecodeAnswer(reply)
	return answer, err == nil && answer.Error == ""
}

// Regions returns the regions that the catalog lists, and of how many of them the liar is a member.
func (l *Liar) Regions(ctx context.Context) (all []nodemsg.Region, member int) {
	for _, peer := range l.victims {
		answer, ok := l.ask(ctx, peer, nodemsg.Question{Regions: &nodemsg.RegionsRequest{}})
		if !ok || len(answer.Regions) <= len(all) {
			continue // it does not hold the catalog, or no more of it
		}
		all, member = answer.Regions, 0
		for _, r := range all {
			for _, m := range r.Members {
				if m.Peer == l.Self.Peer {
					member++
				}
			}
		}
	}
	return all, member
}

// Replicas returns as which replica a node is a member of these regions, and of the catalog, as it says. Regions of
// which it has no copy are left out.
func (l *Liar) Replicas(ctx context.Context, peer string, regions []nodemsg.Region) map[uint64]uint64 {
	ids := []uint64{world.CatalogID}
	for _, r := range regions {
		ids = append(ids, r.ID)
	}
	replicas := make(map[uint64]uint64)
	for page := range slices.Chunk(ids, nodemsg.MaxStatuses) {
		answer, _ := l.ask(ctx, peer, nodemsg.Question{Status: &nodemsg.StatusRequest{Regions: page, Log: true}})
		for _, s := range answer.Statuses {
			if s.State != nodemsg.StateNone {
				replicas[s.Region] = s.Replica
			}
		}
	}
	return replicas
}

// change asks all nodes to change the catalog, and returns whether that has happened. Who does not lead the catalog
// answers with who does.
func (l *Liar) change(ctx context.Context, q nodemsg.Question) bool {
	for _, peer := range l.victims {
		if answer, ok := l.ask(ctx, peer, q); ok && answer.Region != nil && answer.Region.ID != world.CatalogID {
			return true
		}
	}
	return false
}

// A Lie is something that a liar tells all its victims.
type Lie struct {
	Name string
	// Tell returns how often the lie was believed, as far as the answers show it.
	Tell func(l *Liar, ctx context.Context) (believed int)
}

// Lies are all lies but the founding of land, of which nodes may do a little.
var Lies = []Lie{
	{"I am the only member of every region", (*Liar).capture},
	{"every region has you as a replica that you are not", (*Liar).renumber},
	{"you have forgotten entries of every region", (*Liar).accuse},
	{"every region sleeps", (*Liar).sleep},
	{"every region continues without you", (*Liar).supersede},
	{"every region has you as another replica", (*Liar).invite},
	{"records of every region", (*Liar).publishRegions},
	{"I am the catalog", (*Liar).publishCatalog},
	{"streams with half of a message", (*Liar).halfMessages},
	{"commands that nobody has typed", (*Liar).forgeCommands},
}

func (l *Liar) capture(ctx context.Context) (believed int) {
	all, _ := l.Regions(ctx)
	for _, r := range all {
		if len(r.Members) == 1 && r.Members[0].Peer == l.Self.Peer {
			continue // it founded the region
		}
		moved := l.claim(r.ID)
		moved.Cell, moved.Epoch, moved.Term = r.Cell, r.Epoch+1000, r.Term+1000
		for _, peer := range l.victims {
			if answer, ok := l.ask(ctx, peer, nodemsg.Question{Moved: &moved}); ok && answer.Region != nil && answer.Region.ID == r.ID && answer.Region.Leader == l.Self.Peer {
				believed++
			}
		}
	}
	return believed
}

// renumber reports regions with the members that they have, as other replicas, and then claims to these that the
// regions continue without them.
func (l *Liar) renumber(ctx context.Context) (believed int) {
	all, _ := l.Regions(ctx)
	for _, r := range all {
		if len(r.Members) == 1 {
			continue // it founded the region
		}
		moved := r
		moved.Epoch++
		moved.Members = slices.Clone(r.Members)
		for i := range moved.Members {
			moved.Members[i].Replica = unbeatable - uint64(i) //nolint:gosec // few
		}
		for _, peer := range l.victims {
			if answer, ok := l.ask(ctx, peer, nodemsg.Question{Moved: &moved}); ok && answer.Region != nil && answer.Region.ID == r.ID && answer.Region.Members[0].Replica == unbeatable {
				believed++
			}
		}
	}
	return believed + l.supersede(ctx)
}

// accuse sends the other members of all groups heartbeats of the next term: the group counts on entries that they do
// not have. Who believes that asks to be removed, the liar too, which says that it is done.
func (l *Liar) accuse(ctx context.Context) int {
	all, _ := l.Regions(ctx)
	for _, peer := range l.victims {
		var frame nodemsg.RaftFrame
		for _, r := range append(all, nodemsg.Region{ID: world.CatalogID}) {
			answer, ok := l.ask(ctx, peer, nodemsg.Question{Status: &nodemsg.StatusRequest{Regions: []uint64{r.ID}}})
			if !ok || len(answer.Statuses) == 0 {
				continue
			}
			s := answer.Statuses[0]
			self := slices.IndexFunc(s.Members, func(m nodemsg.MemberStatus) bool { return m.Replica.Peer == l.Self.Peer })
			if self < 0 || s.Term == 0 {
				continue
			}
			frame.Messages = append(frame.Messages, nodemsg.RaftMessage{Group: r.ID, Data: heartbeat(s.Members[self].Replica.ID, s.Replica, s.Term+1)})
		}
		s, err := l.host.Open(ctx, peer, l.protocol(regiontransport.RaftProtocol))
		if err != nil || len(frame.Messages) == 0 {
			continue
		}
		(&nodemsg.RaftWriter{W: s}).Write(frame) //nolint:errcheck // the node may end the stream
		s.Close()                                //nolint:errcheck // all has been said
	}
	return 0 // later lies, and whoever compares the replicas, find out
}

// heartbeat returns the raft message of a leader that has committed more than anybody has.
func heartbeat(from, to, term uint64) (message []byte) {
	const msgHeartbeat = 8
	for _, field := range [...]struct {
		number protowire.Number
		value  uint64
	}{{1, msgHeartbeat}, {2, to}, {3, from}, {4, term}, {8, unbeatable}} { // of raftpb.Message
		message = protowire.AppendVarint(protowire.AppendTag(message, field.number, protowire.VarintType), field.value)
	}
	return message
}

func (l *Liar) sleep(ctx context.Context) int {
	all, _ := l.Regions(ctx)
	for _, r := range all {
		for _, peer := range l.victims {
			l.ask(ctx, peer, nodemsg.Question{Sleep: &nodemsg.Sleep{Group: r.ID, Index: 1}})
		}
	}
	return 0
}

// supersede claims to all members of all groups that these were recovered without them. A member that believes it drops
// its copies.
func (l *Liar) supersede(ctx context.Context) int {
	return l.dropped(ctx, func(peer string, r nodemsg.Region) {
		l.ask(ctx, peer, nodemsg.Question{Superseded: &nodemsg.Release{Region: r.ID}})
	})
}

// invite invites all members of all groups to become members again, as other replicas. Who accepts that drops its
// copies.
func (l *Liar) invite(ctx context.Context) int {
	const far = 1 << 20
	return l.dropped(ctx, func(peer string, r nodemsg.Region) {
		invite := nodemsg.Invite{Region: l.claim(r.ID), Replica: far, Voters: []nodemsg.Replica{{ID: far - 1, Peer: l.Self.Peer}, {ID: far, Peer: peer, Learner: true}}}
		invite.Region.Cell = r.Cell
		l.ask(ctx, peer, nodemsg.Question{Invite: &invite})
	})
}

// dropped sends all nodes a claim about every group, and returns how many replicas are no longer on them.
func (l *Liar) dropped(ctx context.Context, tell func(peer string, r nodemsg.Region)) (dropped int) {
	all, _ := l.Regions(ctx)
	for _, peer := range l.victims {
		before := l.Replicas(ctx, peer, all)
		tell(peer, nodemsg.Region{ID: world.CatalogID})
		for _, r := range all {
			tell(peer, r)
		}
		after := l.Replicas(ctx, peer, all)
		for id, replica := range before {
			if after[id] != replica {
				dropped++
			}
		}
	}
	return dropped
}

// publishRegions publishes records, which are hints: they mislead nobody for long.
func (l *Liar) publishRegions(ctx context.Context) int {
	all, _ := l.Regions(ctx)
	for _, r := range all {
		record := l.claim(r.ID)
		record.Cell = r.Cell
		l.dht.PutRegion(ctx, record) //nolint:errcheck // nodes may refuse it
	}
	return 0
}

func (l *Liar) publishCatalog(ctx context.Context) int {
	before := l.Believed()
	l.dht.PutCatalog(ctx, l.claim(world.CatalogID)) //nolint:errcheck // nodes may refuse it
	return l.Believed() - before
}

// halfMessages opens streams to all victims, and sends most of a large message on each.
func (l *Liar) halfMessages(ctx context.Context) int {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	half := bytes.Repeat([]byte{0}, 0x3ffffe)
	copy(half, []byte{0, 0x3f, 0xff, 0xff})
	var wg sync.WaitGroup
	for _, peer := range l.victims {
		for range 20 {
			wg.Go(func() {
				s, err := l.host.Open(ctx, peer, l.protocol(regiontransport.RaftProtocol))
				if err != nil {
					return
				}
				s.Write(half)          //nolint:errcheck // the node may end the stream
				io.Copy(io.Discard, s) //nolint:errcheck // until the node ends it
			})
		}
	}
	wg.Wait()
	return 0
}

// Found founds cells in a row of which it is the only member, at z, and returns how many were founded.
func (l *Liar) Found(ctx context.Context, cells int, z int32) (founded int) {
	for i := range int32(cells) { //nolint:gosec // few
		cell := grid.CellAt(grid.ChunkPos{X: 10_000 + 16*i, Z: z}, grid.FoundingLabel)
		if l.change(ctx, nodemsg.Question{Found: &nodemsg.Found{Cell: cell, Members: []nodemsg.Member{l.Self}}}) {
			founded++
		}
	}
	return founded
}

// PutPlayer publishes a player's record with the liar as the gateway.
func (l *Liar) PutPlayer(ctx context.Context, r nodemsg.PlayerRecord) error {
	r.Gateway = l.Self.Peer
	return l.dht.PutPlayer(ctx, r)
}

// Player returns the network's record of a player.
func (l *Liar) Player(ctx context.Context, id player.ID) (nodemsg.PlayerRecord, error) {
	return l.dht.Player(ctx, id)
}

// forgeCommands asks nodes to enter commands that nobody has typed: one of an operator, signed by a key that is no
// issuer's, and one of a player, with a signature of another text.
func (l *Liar) forgeCommands(ctx context.Context) (believed int) {
	public, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		panic(err) // the system has random numbers
	}
	now := uint64(time.Now().UnixMicro())
	operated := nodemsg.Act{Key: public, Seq: now, Operator: true, Charter: l.charter(), Text: "set players none"}
	operated.Signature = ed25519.Sign(key, policy.SignedText(l.World(), operated))
	typed := nodemsg.Act{Key: public, Seq: now, Name: "mallory", Text: "register"}
	typed.Signature = ed25519.Sign(key, policy.SignedText(l.World(), typed))
	typed.Name = "ada"
	for _, forged := range []nodemsg.Act{operated, typed} {
		for _, peer := range l.victims {
			if answer, ok := l.ask(ctx, peer, nodemsg.Question{Act: &forged}); ok && answer.Number > 0 {
				believed++
			}
		}
	}
	return believed
}

// EditAs asks the node that leads a region to change a block on behalf of a player who has not asked for it, and
// returns why that is refused; empty if it is done. An error means that no victim leads the region now.
func (l *Liar) EditAs(ctx context.Context, r nodemsg.Region, edit nodemsg.Intent) (refused string, err error) {
	for _, peer := range l.victims {
		if refused, err = l.editAt(ctx, peer, r, edit); err == nil {
			return refused, nil
		}
	}
	return "", err
}

func (l *Liar) editAt(ctx context.Context, peer string, r nodemsg.Region, edit nodemsg.Intent) (refused string, err error) {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	s, err := l.host.Open(ctx, peer, l.protocol(regiontransport.LinkProtocol))
	if err != nil {
		return "", err
	}
	defer s.Close() //nolint:errcheck // all has been said
	hello, ask := nodemsg.Hello{Region: r.ID, Cell: r.Cell}, nodemsg.ToRegion{Edits: []nodemsg.Intent{edit}}
	if err := errors.Join(wire.WriteFrame(s, hello), wire.WriteFrame(s, ask)); err != nil {
		return "", err
	}
	stop := context.AfterFunc(ctx, func() { s.Close() }) //nolint:errcheck // the read below fails
	defer stop()
	in := bufio.NewReader(s)
	for {
		m, err := wire.ReadFrame[nodemsg.FromRegion](in, wire.MaxFrame)
		if err != nil {
			return "", err
		}
		if m.Closed != "" {
			return "", errors.New(m.Closed)
		}
		for _, result := range m.Results {
			if result.Player == edit.Player && result.Seq == edit.Seq {
				return result.Refused, nil
			}
		}
	}
}
