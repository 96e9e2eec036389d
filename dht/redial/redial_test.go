package redial

import (
	"fmt"
	"testing"
	"time"

	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/core/test"
	ma "github.com/multiformats/go-multiaddr"

	"github.com/voxelpopuli/voxeld/dht/address"
	"github.com/voxelpopuli/voxeld/internal/kv"
)

// peerTable is the table of known peers.
type peerTable map[string][]byte

func (p peerTable) Scan(_ string, _ []byte, visit func(key, value []byte) error) error {
	for key, value := range p {
		if err := visit([]byte(key), value); err != nil {
			return err
		}
	}
	return nil
}

func (p peerTable) commit(writes []kv.Write) {
	for _, w := range writes {
		if w.Value == nil {
			delete(p, string(w.Key))
		} else {
			p[string(w.Key)] = w.Value
		}
	}
}

func names(entries []*Entry) string {
	var list []string
	for _, e := range entries {
		list = append(list, e.Name)
	}
	return fmt.Sprint(list)
}

func TestRedialBacksOff(t *testing.T) {
	start := time.Unix(1_700_000_000, 0)
	meeting := address.Target{Text: "meeting", Addr: ma.StringCast("/ip4/192.0.2.1/tcp/1")}
	id, err := test.RandPeerID()
	if err != nil {
		t.Fatal(err)
	}
	known := map[peer.ID]knownPeer{id: {Addrs: []string{"/ip4/192.0.2.2/tcp/1", "rubbish"}, Seen: start.Unix()}}
	none := func(peer.ID) bool { return false }

	r := newSchedule(time.Second, []address.Target{meeting}, known)
	due := r.Next(start, none)
	if got, want := names(due), fmt.Sprintf("[%s meeting]", id); got != want {
		t.Fatalf("due at first: %s, want %s", got, want)
	}
	// Never answered: the attempts of ten minutes.
	tries := map[string]int{}
	for second := range 600 {
		now := start.Add(time.Duration(second) * time.Second)
		for _, e := range r.Next(now, none) {
			tries[e.Name]++
			r.MarkFailed(e, now)
		}
	}
	// 1, 2 and then 4 seconds apart: they are few.
	if tries["meeting"] != 2+600/4 || tries[id.String()] != 2+600/4 {
		t.Errorf("attempts in ten minutes: %v", tries)
	}
	forgetful := newSchedule(time.Second, nil, map[peer.ID]knownPeer{id: known[id]})
	if writes := forgetful.Forget(id); len(writes) != 1 || writes[0].Value != nil || string(writes[0].Key) != id.String() || forgetful.Knows() {
		t.Errorf("a peer is forgotten: %v", writes)
	}
	if due := forgetful.Next(start, none); len(due) > 0 || forgetful.Forget(id) != nil {
		t.Errorf("a forgotten peer is dialled: %s", names(due))
	}
	// Every peer is retried forever, and an answer resets the wait.
	now := start.Add(time.Hour)
	for _, e := range r.Next(now, none) {
		r.MarkReached(e, id, now)
	}
	if due := r.Next(now.Add(time.Hour), func(peer.ID) bool { return true }); len(due) != 0 {
		t.Errorf("dialled although connected: %s", names(due))
	}
	due = r.Next(now.Add(4*time.Second), none)
	if len(due) != 2 || due[0].wait != time.Second {
		t.Errorf("due after the connections were lost: %s", names(due))
	}
	// Another node may answer at an address without an id, so the old id does not count as connected.
	for _, e := range due {
		r.MarkFailed(e, now)
	}
	if due := r.Next(now.Add(time.Hour), func(other peer.ID) bool { return other == id }); names(due) != "[meeting]" {
		t.Errorf("due while the peer that was there is connected: %s", names(due))
	}
	delete(r.known, id)
	r.refresh()
	if due := r.Next(now.Add(time.Hour), none); names(due) != "[meeting]" {
		t.Errorf("due after the peer was forgotten: %s", names(due))
	}
}

// Many lost peers together are dialled no more often than a few, except for bootstrap addresses. When one of them is
// back, by its own dial or by this node's, all others are tried at once.
func TestRedialOfMany(t *testing.T) {
	start := time.Unix(1_700_000_000, 0)
	known := make(map[peer.ID]knownPeer)
	for range 200 {
		id, err := test.RandPeerID()
		if err != nil {
			t.Fatal(err)
		}
		known[id] = knownPeer{Addrs: []string{"/ip4/192.0.2.2/tcp/1"}, Seen: start.Unix()}
	}
	meeting := address.Target{Text: "meeting", Addr: ma.StringCast("/ip4/192.0.2.1/tcp/1")}
	for _, inbound := range []bool{false, true} {
		r := newSchedule(time.Second, []address.Target{meeting}, known)
		none := func(peer.ID) bool { return false }
		tries := map[string]int{}
		now := start
		for range 600 {
			now = now.Add(time.Second)
			for _, e := range r.Next(now, none) {
				tries[e.Name]++
				r.MarkFailed(e, now)
			}
		}
		all := 0
		for _, n := range tries {
			all += n
		}
		if tries["meeting"] < 600/16 || all > 200*(7+600/50)+60 {
			t.Errorf("%d attempts in ten minutes, %d of the meeting place", all, tries["meeting"])
		}
		// Long after the last attempt, one peer is back.
		waiting := func() []*Entry { return r.Next(now, none) }
		for len(waiting()) > 0 {
			for _, e := range waiting() {
				r.MarkFailed(e, now)
			}
		}
		var one *Entry
		for _, e := range r.entries {
			if !e.Bootstrap {
				one = e
				break
			}
		}
		connected := func(id peer.ID) bool { return id == one.ID }
		if !inbound {
			r.MarkReached(one, one.ID, now)
		}
		if due := r.Next(now, connected); len(due) != 200 {
			t.Errorf("inbound %v: %d of 200 others are dialled when one is back", inbound, len(due))
		}
		for _, e := range r.entries {
			r.MarkFailed(e, now)
		}
	}
}

func TestKnownPeers(t *testing.T) {
	now := time.Unix(1_700_000_000, 0)
	known := make(map[peer.ID]knownPeer)
	storage := make(peerTable)
	settled := false
	see := func(ids []peer.ID, addr string, now time.Time) int {
		t.Helper()
		seen := make(map[peer.ID][]string)
		for _, id := range ids {
			seen[id] = []string{addr}
		}
		writes := updateKnown(known, seen, now, settled)
		storage.commit(writes)
		return len(writes)
	}
	var ids []peer.ID
	for range maxKnown + 10 {
		id, err := test.RandPeerID()
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, id)
	}
	old := ids[:10]
	if n := see(old, "/ip4/192.0.2.1/tcp/1", now); n != 10 {
		t.Errorf("%d writes for ten new peers", n)
	}
	if n := see(old, "/ip4/192.0.2.1/tcp/1", now.Add(time.Minute)); n != 0 {
		t.Errorf("%d writes though nothing changed", n)
	}
	if n := see(old, "/ip4/192.0.2.1/tcp/2", now.Add(time.Minute)); n != 10 {
		t.Errorf("%d writes for ten new addresses", n)
	}
	now = now.Add(time.Hour)
	see(ids[10:], "/ip4/192.0.2.1/tcp/1", now) // ten too many: the oldest are dropped
	loaded, err := loadKnown(storage)
	if err != nil {
		t.Fatal(err)
	}
	if len(loaded) != maxKnown || len(known) != maxKnown {
		t.Errorf("%d peers on disk, %d in memory, want %d", len(loaded), len(known), maxKnown)
	}
	for _, id := range old {
		if _, there := loaded[id]; there {
			t.Error("an older peer was kept")
		}
	}
	see(nil, "", now.Add(forgetKnown+time.Hour))
	if len(storage) != maxKnown {
		t.Errorf("%d peers known after a month by a clock that has not settled", len(storage))
	}
	settled = true
	see(nil, "", now.Add(forgetKnown+time.Hour))
	if len(storage) != 0 {
		t.Errorf("%d peers known after a month", len(storage))
	}
	// Damaged entries do not prevent a start.
	storage["rubbish"], storage[ids[0].String()] = []byte{0xa0}, []byte("rubbish")
	if loaded, err := loadKnown(storage); err != nil || len(loaded) != 0 {
		t.Errorf("damaged entries return %v, %v", loaded, err)
	}
}
