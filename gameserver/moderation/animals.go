package moderation

import (
	"context"
	"errors"
	"math/rand/v2"
	"strconv"

	"github.com/voxelpopuli/voxeld/creature"
	"github.com/voxelpopuli/voxeld/policy"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
	"github.com/voxelpopuli/voxeld/wire/notice"
)

const (
	// animalsAtOnce is how many animals a command has born, and animalsRadius how far away the removal of animals
	// reaches if no radius is given.
	animalsAtOnce, animalsRadius = 50, 16
	// animalsApart is how far from the player they are born, in blocks.
	animalsApart = 1.5
)

// Animals has creatures born, and removed; a *creatures.Keeper.
type Animals interface {
	Add(ctx context.Context, all []creature.Creature) (born int, err error)
	Remove(ctx context.Context, near nodemsg.Removal) (removed int, err error)
}

// animals has animals born where the player is, or removes those around. It returns why it does not.
func (s *Permissions) animals(args []string, g Gateway) error {
	if len(args) == 0 || len(args) > 2 || g.Animals == nil {
		return policy.ErrUsage
	}
	removes, n := args[0] == "remove", 1
	most := animalsAtOnce
	if removes {
		n, most = animalsRadius, 1000
	}
	if len(args) == 2 {
		var err error
		if n, err = strconv.Atoi(args[1]); err != nil || n < 1 || n > most {
			return policy.ErrUsage
		}
	}
	at := g.Pose()
	if removes {
		s.background(g, func(ctx context.Context) []notice.Notice {
			removed, err := g.Animals.Remove(ctx, nodemsg.Removal{At: at, Radius: float64(n)})
			return changedAnimals(notice.New("animals_removed", "{count} {count:animal is|animals are} gone.", removed), err)
		})
		return nil
	}
	kind, err := creature.Parse(args[0])
	if err != nil {
		return policy.ErrUsage
	}
	at.Pitch = 0
	all := make([]creature.Creature, n)
	for i := range all {
		pose := at
		pose.X += (2*rand.Float64() - 1) * animalsApart
		pose.Z += (2*rand.Float64() - 1) * animalsApart
		if pose.Chunk() != at.Chunk() { // all in one region
			pose = at
		}
		all[i] = creature.Creature{Kind: kind, Pose: pose}
	}
	s.background(g, func(ctx context.Context) []notice.Notice {
		born, err := g.Animals.Add(ctx, all)
		if err == nil && born < n {
			err = notice.New("animals_full", "only {count} {count:animal was|animals were} born: no more may live in this land", born)
		}
		return changedAnimals(notice.New("animals_born", "{count} {count:animal is|animals are} here now.", born), err)
	})
	return nil
}

// changedAnimals returns what a command has done with animals, or why it has not.
func changedAnimals(done notice.Notice, err error) []notice.Notice {
	var why notice.Notice
	switch {
	case errors.As(err, &why):
		done = why.Sentence()
	case err != nil:
		done = notice.New("animals_not_now", "This land does not answer right now, or too many animals were born just now. Try again.")
	}
	return []notice.Notice{done}
}
