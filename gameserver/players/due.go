package players

import (
	"math"
	"slices"
	"time"

	"github.com/voxelpopuli/voxeld/motion"
	"github.com/voxelpopuli/voxeld/player"
)

// This file decides when the places of players who are here are saved, and when they are published: when they arrive,
// when they have gone far, and periodically, but in a crowd only so many a second: each record is signed, and a walker
// soon has gone far again.

const (
	// saveEvery is the interval at which players who moved are saved on this node's disk; it bounds what a killed node
	// loses.
	saveEvery = time.Second
	// PublishEvery is the interval at which a player who is here is published.
	PublishEvery = time.Minute
	// publishDistance is how far, in blocks, a player may go from their published place before they are published
	// again, but not within publishPause of the last time. It bounds how far players are set back if their gateway is
	// killed: by half a minute of walking, and by up to a minute and more in a crowd of more than 120. A record is
	// verified by five nodes and written to the disk by each: with 15 s the records of a thousand walkers on a hundred
	// nodes took a sixth of a core.
	publishDistance, publishPause = 16, 30 * time.Second
	// At each save, once a second, enough players are published that everybody has a turn once in PublishEvery, those
	// with the oldest record first; but at least publishLeast, which is what 120 walkers need, and at most publishMost.
	// A record is signed and sent to several nodes near its key, and those nodes verify it and write it to disk: with
	// 50 a second, each of four gateways of a crowd spent more on records than on motion, and with 10 for each quarter
	// of a crowd of 1,000 still a seventh of all that it spent.
	publishLeast, publishMost = 4, 10
)

// Presence is a player who is here, and their place.
type Presence struct {
	Player player.ID
	Name   string
	Guest  bool
	Pose   motion.Pose
	Home   *motion.Pose  // never changed, only replaced; nil: none
	Done   uint64        // how many events they have sent (vclock.Owner.Done); 0 if these are not counted
	Login  *player.Login // nil: a guest
	// Verifier is of the password with which a guest keeps the name; nil: none.
	Verifier *player.Verifier
}

// lastPublished is where and when a player who is here was published last.
type lastPublished struct {
	pose motion.Pose
	home *motion.Pose
	at   time.Time
}

// dueOf returns those of the players here who are to be published: they have arrived, have another home or have gone
// far since they were published, or were published long ago. It also returns the marks of all published players who are
// here, as of now.
func dueOf(here []Presence, before map[player.ID]lastPublished) (due []Presence, marks map[player.ID]lastPublished) {
	now := time.Now()
	marks = make(map[player.ID]lastPublished, len(here))
	for _, p := range here {
		m, known := before[p.Player]
		if known {
			marks[p.Player] = m
		}
		age := now.Sub(m.at)
		if !known || m.home != p.Home || age >= PublishEvery || age >= publishPause && distance(m.pose, p.Pose) > publishDistance {
			due = append(due, p)
		}
	}
	if most := publishedOf(len(here)); len(due) > most {
		slices.SortFunc(due, func(a, b Presence) int {
			return marks[a.Player].at.Compare(marks[b.Player].at) // new players have no mark, and go first
		})
		due = due[:most]
	}
	for _, p := range due {
		marks[p.Player] = lastPublished{p.Pose, p.Home, now}
	}
	return due, marks
}

// publishedOf returns how many of the given number of players are published at one save.
func publishedOf(players int) int {
	turn := (time.Duration(players)*saveEvery + PublishEvery - 1) / PublishEvery
	return max(publishLeast, min(publishMost, int(turn)))
}

func distance(a, b motion.Pose) float64 {
	return math.Hypot(math.Hypot(a.X-b.X, a.Z-b.Z), a.Y-b.Y)
}
