package players

import (
	"time"

	"github.com/voxelpopuli/voxeld/motion"
	"github.com/voxelpopuli/voxeld/player"
	"github.com/voxelpopuli/voxeld/wire"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
)

const (
	// doubtMemory is how long a doubt is kept for a player who is not here: they may be about to join.
	doubtMemory = time.Minute
	// recallTime is how long after they came a player is brought to where they left. Later they have gone about their
	// business here.
	recallTime = 30 * time.Second
)

// doubt concerns a player who came when the network did not answer: it may have a newer record than this node. Theirs
// is not published before it has answered, since it would replace the other one.
type doubt struct {
	began   row       // this node's record when they came; the zero row: none
	came    time.Time // first
	since   time.Time // when they came again, or were last here
	settled bool      // the network has answered
	newer   *nodemsg.PlayerRecord
	// recalled is where they left elsewhere, until they are brought there; nil if they are not to be.
	recalled *motion.Pose
}

// merge sets the home of the player's record to that of the network's newer record, unless they have chosen another
// since, the place if they are about to be brought there, and a guest's password. A nil doubt changes nothing.
func (d *doubt) merge(r *nodemsg.PlayerRecord) {
	if d == nil || d.newer == nil {
		return
	}
	r.Seq = max(r.Seq, d.newer.Seq+1)
	if done := d.newer.Counted(); done > r.Counted() {
		r.Done = min(done, wire.MaxDone)
	}
	if sameHome(r.Home, d.began.Home) {
		r.Home = d.newer.Home
	}
	if d.newer.Verifier != nil {
		r.Verifier = d.newer.Verifier
	}
	if d.recalled != nil {
		r.Pose = *d.recalled
	}
}

func sameHome(a, b *motion.Pose) bool { return a == b || a != nil && b != nil && *a == *b }

// doubts are those about players who are here, are being published, or came a short while ago. A Store's are guarded by
// its mutex.
type doubts map[player.ID]*doubt

// note begins a doubt about a player, whose row is given.
func (ds doubts) note(id player.ID, began row) {
	if d := ds[id]; d != nil && !d.settled {
		d.since = time.Now()
		return
	}
	ds[id] = &doubt{began: began, came: time.Now(), since: time.Now()}
}

// settle ends the doubt about a player, if there is one, with the network's record of them; the zero one if it has
// none.
func (ds doubts) settle(id player.ID, remembered nodemsg.PlayerRecord, now time.Time) {
	d := ds[id]
	if d == nil || d.settled {
		return
	}
	d.settled = true
	if remembered.Seq > 0 && !remembered.Expired(now) && d.began.base.compare(remembered) > 0 {
		d.newer = &remembered
	}
}

// recall has a player brought to where they left, if the network has just said that they left elsewhere.
func (d *doubt) recall() {
	if d != nil && d.newer != nil && d.recent() {
		d.recalled = &d.newer.Pose
	}
}

// recent reports whether the player came so lately that they are brought to where they left.
func (d *doubt) recent() bool { return time.Since(d.came) <= recallTime }

// recent returns those of the players here for whom the network is asked again and again, so that they are brought to
// where they left.
func (ds doubts) recent(here []Presence) (all []Presence) {
	if len(ds) == 0 {
		return nil
	}
	for _, p := range here {
		if d := ds[p.Player]; d != nil && !d.settled && d.recent() {
			all = append(all, p)
		}
	}
	return all
}

// forget deletes the doubts about players who are not here, and of whom nothing is left to publish.
func (ds doubts) forget(here []Presence, idle func(player.ID) bool) {
	if len(ds) == 0 {
		return
	}
	for _, p := range here {
		if d := ds[p.Player]; d != nil {
			d.since = time.Now() // they may be about to leave, and are saved after that
		}
	}
	for id, d := range ds {
		if time.Since(d.since) > doubtMemory && idle(id) {
			delete(ds, id)
		}
	}
}
