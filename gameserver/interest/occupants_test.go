package interest

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/voxelpopuli/voxeld/motion"
	"github.com/voxelpopuli/voxeld/player"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
)

// If a region sends a body twice, the first one counts, for the mirror as for its subscribers.
func TestDoubledBodiesAreTakenOnce(t *testing.T) {
	first := nodemsg.Body{Player: player.GuestID("ann"), Name: "ann", Pose: motion.Pose{X: 1}}
	second := first
	second.Pose.X = 2
	var list Occupants
	var difference nodemsg.ChunkDelta
	change := list.Replace([]nodemsg.Body{first, second}, &difference)
	if want := []nodemsg.Body{first}; !slices.Equal(list.Bodies(), want) || !slices.Equal(change.Entered, want) || !slices.Equal(difference.Enter, want) {
		t.Errorf("the mirror has %+v, subscribers are sent %+v, and %+v came; want %+v", list.Bodies(), difference.Enter, change.Entered, want)
	}
}

// A chunk's occupants behave like a map, whatever order they are sent in, and moves are searched for along the list
// only as far as necessary.
func TestOccupantsAreAMapOfBodies(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	var list Occupants
	twin := make(map[player.ID]nodemsg.Body)
	someone := func() player.ID { return player.GuestID(fmt.Sprint(rng.IntN(40))) }
	for round := range 2000 {
		pose := motion.Pose{X: float64(round)}
		switch id := someone(); rng.IntN(4) {
		case 0, 1:
			_, known := twin[id]
			twin[id] = nodemsg.Body{Player: id, Pose: pose}
			if came := list.put(twin[id]); came == known {
				t.Fatalf("round %d: entered: %v, present: %v", round, came, known)
			}
		case 2:
			want, known := twin[id]
			delete(twin, id)
			if last, here := list.remove(id); here != known || last != want {
				t.Fatalf("round %d: %+v was here: %v, want %+v: %v", round, last, here, want, known)
			}
		case 3:
			var moves []nodemsg.BodyMove
			for range rng.IntN(60) {
				moves = append(moves, nodemsg.BodyMove{Player: someone(), Pose: pose})
			}
			if rng.IntN(2) == 0 {
				slices.SortFunc(moves, func(a, b nodemsg.BodyMove) int { return slices.Compare(a.Player[:], b.Player[:]) })
			}
			var want []player.ID
			for _, m := range moves {
				if b, here := twin[m.Player]; here {
					b.Pose = m.Pose
					twin[m.Player] = b
					want = append(want, m.Player)
				}
			}
			var got []player.ID
			for _, o := range list.move(moves, nil) {
				got = append(got, o.Player)
			}
			if !slices.Equal(got, want) {
				t.Fatalf("round %d: %v moved, want %v", round, got, want)
			}
		}
		if len(list) != len(twin) || !slices.IsSortedFunc(list, func(a, b Occupant) int { return slices.Compare(a.Player[:], b.Player[:]) }) {
			t.Fatalf("round %d: %d Occupants, want %d in order", round, len(list), len(twin))
		}
		for id, b := range twin {
			if o := list.Of(id); o == nil || o.Body != b {
				t.Fatalf("round %d: %v is %+v, want %+v", round, id, o, b)
			}
		}
	}
}
