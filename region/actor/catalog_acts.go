package actor

import (
	"context"
	"errors"
	"fmt"

	"github.com/voxelpopuli/voxeld/player"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
	"github.com/voxelpopuli/voxeld/world/acts"
)

// This file keeps the acts in the catalog: the commands that make the world's policy.

// entering identifies an act that was proposed.
type entering struct {
	by  player.ID // the hash of the key
	seq uint64
}

// entered is the answer about an act: how many acts there are with it.
type entered struct {
	number uint64
	err    error
}

// loadActs reads the stored acts.
func (c *catalog) loadActs() error {
	c.acts = acts.New(c.ActRow)
	if err := c.ActRows(c.acts.Load); err != nil {
		return fmt.Errorf("load the catalog's acts: %w", err)
	}
	return nil
}

func (c *catalog) applyAct(index uint64, act nodemsg.Act) {
	if !c.Signed(act) { // it could keep the commands of somebody else out
		c.group.ReportApplied(index, nil)
		c.answerAct(entering{player.IDOf(act.Key), act.Seq}, entered{err: errors.New("the signature of the command is wrong")})
		return
	}
	writes, err := c.acts.Apply(index, act)
	c.group.ReportApplied(index, writes)
	c.dropStored()
	c.answerAct(entering{player.IDOf(act.Key), act.Seq}, entered{c.acts.Count(), err})
}

func (c *catalog) answerAct(of entering, a entered) {
	for _, waiter := range c.entering[of] {
		waiter <- a // has room for the answer
	}
	delete(c.entering, of)
}

// Enter commits an act, unless it is listed already, and returns how many acts there are then.
func (c *Catalog) Enter(ctx context.Context, act nodemsg.Act) (number uint64, err error) {
	ctx, cancel := context.WithTimeout(ctx, foundTime)
	defer cancel()
	entry, err := acts.EncodeEntry(act)
	if err != nil {
		return 0, err
	}
	answer := make(chan entered, 1)
	a, err := await(ctx, c.Actor, answer, c.enqueue(func(c *catalog) {
		of := entering{player.IDOf(act.Key), act.Seq}
		switch {
		case !c.serves():
			answer <- entered{err: errCatalogElsewhere}
		case c.acts.Has(act):
			answer <- entered{number: c.acts.Count()}
		case c.acts.Older(act):
			answer <- entered{err: errors.New("a later command of the same key is entered already")}
		case c.failure != nil || c.stalled != nil:
			answer <- entered{err: c.refusal()}
		case c.entering[of] == nil:
			if err := c.group.Propose(entry); err != nil {
				answer <- entered{err: fmt.Errorf("enter the command: %w", err)}
				return
			}
			fallthrough
		default:
			c.entering[of] = append(c.entering[of], answer)
		}
	}))
	return a.number, errors.Join(a.err, err)
}

// ErrOtherActs means that the acts of the asker are not those of the catalog.
var ErrOtherActs = errors.New("the catalog has other acts")

// Acts returns a page of the acts after the first ones, whose digest the asker has, as this member has them. A member
// that does not lead may know fewer acts than the asker: then it returns none.
func (c *Catalog) Acts(ctx context.Context, q nodemsg.ActsRequest) ([]nodemsg.Act, error) {
	type page struct {
		acts []nodemsg.Act
		err  error
	}
	answer := make(chan page, 1)
	p, err := await(ctx, c.Actor, answer, c.enqueue(func(c *catalog) {
		if c.fault != nil {
			return
		}
		c.deliver()
		digest, known := c.acts.Digest(q.After)
		switch {
		case known && digest == q.Digest:
			acts, err := c.acts.Page(q.After)
			answer <- page{acts, err}
		case !known && !c.serves():
			answer <- page{}
		default:
			answer <- page{err: ErrOtherActs}
		}
	}))
	return p.acts, errors.Join(p.err, err)
}
