package directory

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/region/transport"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
	"github.com/voxelpopuli/voxeld/world"
)

// This file finds out who leads the catalog. The catalog's record in the DHT is a hint, since every admitted node can
// sign one, and so is what a single node says: a node leads the catalog if most of its members say so (docs/adr/0041).

const (
	// statusTime bounds the time that a node takes to say who leads the catalog. Newcomers wait for longer, since a
	// liar may be faster than honest nodes.
	statusTime = time.Second
	// maxPolled bounds how many nodes are asked, so that liars cannot name any number.
	maxPolled = 48
)

// errNoLeader means that the members that answer agree on no leader, perhaps because they elect one.
var errNoLeader = errors.New("most of its members are down, or it has no leader")

// FindCatalog asks who leads the catalog, and with which members, and caches the answer. The members that this node
// knows are asked first. If most of them do not agree, the nodes that should be members are asked, and last those that
// the DHT names. Callers that ask at the same time share the answer.
func (d *Directory) FindCatalog(ctx context.Context) (nodemsg.Region, error) {
	return d.flights.Do(ctx, d.Tasks, "catalog", func(ctx context.Context) (nodemsg.Region, error) {
		p := poll{d: d, limit: statusTime}
		at, err := p.find(ctx)
		if err != nil {
			return nodemsg.Region{}, fmt.Errorf("find the catalog: %w", err)
		}
		return d.CacheCatalog(at), nil
	})
}

// led returns the catalog's region, or an error while it has no leader.
func led(at nodemsg.Region) (nodemsg.Region, error) {
	if at.Leader == "" {
		return nodemsg.Region{}, errNoLeader
	}
	return at, nil
}

// walkToCatalog returns the nodes nearest to the catalog's key, as a walk through the DHT finds them.
func (d *Directory) walkToCatalog(ctx context.Context) []string {
	ctx, cancel := context.WithTimeout(ctx, lookTime)
	defer cancel()
	near, err := d.Records.Nearest(ctx, grid.CatalogKey, Candidates)
	if err != nil {
		d.Logger.Debug("nodes near the catalog's key not found", "error", err)
	}
	return near
}

// knownMembers returns the catalog's members as this node knows them: the voters of its own copy, which may be old, or
// those that it was told before.
func (d *Directory) knownMembers() []string {
	if own := votersOf(d.OwnCatalog()); len(own) > 0 {
		return own
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	return peersOf(d.mu.catalog)
}

// CacheCatalog stores where the catalog is, and returns it.
func (d *Directory) CacheCatalog(root nodemsg.Region) nodemsg.Region {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.mu.catalog = root
	return root
}

// A poll asks nodes who leads the catalog. Only one goroutine uses it.
type poll struct {
	d     *Directory
	limit time.Duration // for the answers of nodes that are asked together
	said  []statement   // in the order in which the nodes were to be asked
}

// find asks in the order of FindCatalog.
func (p *poll) find(ctx context.Context) (nodemsg.Region, error) {
	known := p.d.knownMembers()
	at, votes := p.ask(ctx, known, len(known)/2+1)
	if votes > len(known)/2 {
		return led(at)
	}
	near := p.d.Records.NearestKnown(grid.CatalogKey, Candidates)
	if len(known) == 0 { // a newcomer knows few nodes, perhaps only a liar
		p.limit = transport.AskTimeout
		near = append(near, p.d.walkToCatalog(ctx)...)
	}
	at, votes = p.askAll(ctx, near)
	if votes == 0 {
		looking, cancel := context.WithTimeout(ctx, lookTime)
		defer cancel()
		hint, err := p.d.Records.Catalog(looking)
		if err != nil {
			return nodemsg.Region{}, err
		}
		at, votes = p.askAll(ctx, peersOf(hint))
	}
	if votes == 0 || p.replaces(known, at) {
		return nodemsg.Region{}, errNoLeader
	}
	return led(at)
}

// askAll asks nodes, and then the members that they name, and returns the catalog's region with most votes, and their
// number.
func (p *poll) askAll(ctx context.Context, peers []string) (at nodemsg.Region, votes int) {
	p.ask(ctx, peers, maxPolled)
	var named []string
	for _, s := range p.said {
		named = append(named, votersOf(s.status)...)
	}
	return p.ask(ctx, named, maxPolled)
}

// ask asks nodes that were not asked yet, until enough members agree, also on a leader.
func (p *poll) ask(ctx context.Context, peers []string, enough int) (at nodemsg.Region, votes int) {
	ctx, cancel := context.WithTimeout(ctx, p.limit)
	defer cancel()
	type answer struct {
		of     int
		status nodemsg.RegionStatus
	}
	first := len(p.said)
	for _, peer := range peers {
		if len(p.said) < maxPolled && !slices.ContainsFunc(p.said, func(s statement) bool { return s.peer == peer }) {
			p.said = append(p.said, statement{peer: peer})
		}
	}
	answers := make(chan answer, len(p.said))
	for i := first; i < len(p.said); i++ {
		go func(peer string) { answers <- answer{i, p.statusOf(ctx, peer)} }(p.said[i].peer)
	}
	at, votes = elected(p.said)
	for i := first; i < len(p.said) && (votes < enough || at.Leader == ""); i++ {
		a := <-answers
		p.said[a.of].status = a.status
		at, votes = elected(p.said)
	}
	return at, votes
}

// statement is what a node says of its copy of the catalog.
type statement struct {
	peer   string
	status nodemsg.RegionStatus // zero until it has answered
}

// statusOf asks a node for the status of its copy of the catalog. The result is zero if there is no answer.
func (p *poll) statusOf(ctx context.Context, peer string) nodemsg.RegionStatus {
	if peer == p.d.Self.Peer {
		return p.d.OwnCatalog()
	}
	answer, err := p.d.Questions.Ask(ctx, peer, nodemsg.Question{Status: &nodemsg.StatusRequest{Regions: []uint64{world.CatalogID}}})
	if err != nil || len(answer.Statuses) != 1 || answer.Statuses[0].Region != world.CatalogID {
		return nodemsg.RegionStatus{}
	}
	return answer.Statuses[0]
}

// replaces reports whether others claim to be the catalog: a member from before says that it still is one, and none of
// these members was one before, or it is a single node's word, which no issuer has signed. A catalog has one member,
// where it had more, only after a recovery.
func (p *poll) replaces(before []string, at nodemsg.Region) bool {
	members := peersOf(at)
	known := slices.ContainsFunc(members, func(peer string) bool { return slices.Contains(before, peer) })
	alone := len(members) == 1 && !slices.ContainsFunc(p.said, func(s statement) bool {
		return s.status.Epoch == at.Epoch && slices.Equal(votersOf(s.status), members) && p.d.Vouched(s.status)
	})
	if known && !alone {
		return false
	}
	return slices.ContainsFunc(p.said, func(s statement) bool {
		voters := votersOf(s.status)
		return slices.Contains(before, s.peer) && slices.Contains(voters, s.peer) && !slices.Equal(voters, members)
	})
}

// elected returns the catalog's region on whose members most of these members agree, and how many do; 0 if no majority
// of members does. Of two such regions it is the one with more votes, else the one whose members were to be asked
// first. It has a leader if most members name the same one.
func elected(said []statement) (at nodemsg.Region, votes int) {
	for _, s := range said {
		members := votersOf(s.status)
		agree, leaders := 0, make(map[string]int)
		for _, other := range said {
			if slices.Contains(members, other.peer) && other.status.Epoch == s.status.Epoch && slices.Equal(votersOf(other.status), members) {
				agree++
				leaders[other.status.Leader]++
			}
		}
		if 2*agree <= len(members) || agree <= votes {
			continue
		}
		at, votes = nodemsg.Region{ID: world.CatalogID, Epoch: s.status.Epoch, Term: s.status.Term}, agree
		for _, peer := range members {
			at.Members = append(at.Members, nodemsg.Member{Peer: peer})
			if 2*leaders[peer] > len(members) {
				at.Leader = peer
			}
		}
	}
	return at, votes
}

// votersOf returns the members that vote, according to an open copy; else none.
func votersOf(s nodemsg.RegionStatus) []string {
	if s.State != nodemsg.StateOpen {
		return nil
	}
	var voters []string
	for _, m := range s.Members {
		if !m.Replica.Learner {
			voters = append(voters, m.Replica.Peer)
		}
	}
	return voters
}

func peersOf(info nodemsg.Region) []string {
	peers := make([]string, len(info.Members))
	for i, m := range info.Members {
		peers[i] = m.Peer
	}
	return peers
}
