package mod

import (
	"errors"
	"fmt"

	"github.com/voxelpopuli/voxeld/chunk"
	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/wire"
)

// Check returns why a mod may not have these effects of one event; nil if it may. All members of a region decide the
// same: it depends on nothing else.
func (g Grant) Check(effects []Effect) error {
	if len(effects) > MaxEffects {
		return fmt.Errorf("%d effects of one event, and at most %d are allowed", len(effects), MaxEffects)
	}
	messages := 0
	for _, e := range effects {
		var err error
		switch {
		case e.count() != 1:
			err = errors.New("an effect is one of set, timer and message")
		case e.Set != nil:
			err = g.checkSet(*e.Set)
		case e.Timer != nil:
			err = g.checkTimer(*e.Timer)
		case e.Message != nil:
			if messages++; messages > MaxMessages {
				err = fmt.Errorf("more than %d messages", MaxMessages)
			} else {
				err = checkMessage(*e.Message)
			}
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (e Effect) count() (n int) {
	for _, set := range [...]bool{e.Set != nil, e.Timer != nil, e.Message != nil} {
		if set {
			n++
		}
	}
	return n
}

func (g Grant) checkPlace(at grid.Pos) error {
	if !g.In(at) {
		return fmt.Errorf("%v is outside of the mod's area", at)
	}
	return nil
}

func (g Grant) checkSet(s Set) error {
	for _, block := range [...]chunk.Block{s.From, s.To} {
		if !g.Blocks.Has(block) {
			return fmt.Errorf("the mod may not change %s", block.Name())
		}
	}
	if s.Pos.Y == 0 { // always bedrock
		return errors.New("the lowest blocks cannot be changed")
	}
	return g.checkPlace(s.Pos)
}

func (g Grant) checkTimer(t SetTimer) error {
	switch {
	case t.After < 0 || t.After > MaxDelay:
		return fmt.Errorf("a timer after %d ms: want 0 to %d", t.After, int64(MaxDelay))
	case len(t.Data) > MaxData:
		return fmt.Errorf("the data of a timer has %d bytes, and at most %d are allowed", len(t.Data), MaxData)
	}
	return g.checkPlace(t.Pos)
}

func checkMessage(m Message) error {
	if m.Text == "" || len(m.Text) > MaxMessage {
		return fmt.Errorf("a message of %d bytes, and 1 to %d are allowed", len(m.Text), MaxMessage)
	}
	return nil
}

// CheckProposal returns why effects must not be proposed, beyond Check: it depends on the version. Members do not ask it
// of what was proposed, as their versions may differ.
func CheckProposal(effects []Effect) error {
	for _, e := range effects {
		if s := e.Set; s != nil && s.To != chunk.Air && !s.To.Placeable() {
			return fmt.Errorf("%s cannot be placed", s.To.Name())
		}
		if m := e.Message; m != nil {
			if err := wire.CheckChat(m.Text); err != nil {
				return err
			}
		}
	}
	return nil
}

// CountBlocks returns how many blocks the effects change, for the rate.
func CountBlocks(effects []Effect) (n int) {
	for _, e := range effects {
		if e.Set != nil {
			n++
		}
	}
	return n
}
