package policysync

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/voxelpopuli/voxeld/internal/kv"
	"github.com/voxelpopuli/voxeld/player"
	"github.com/voxelpopuli/voxeld/policy"
	"github.com/voxelpopuli/voxeld/region/actor"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
	"github.com/voxelpopuli/voxeld/wire/notice"
)

// Operate carries out a command of this node's operator, and returns what it has done.
func (c *Copy) Operate(ctx context.Context, text string) (string, error) {
	c.operating.Lock() // their numbers are to be in order
	defer c.operating.Unlock()
	act, err := c.sign(text)
	if err != nil {
		return "", err
	}
	done, err := c.Enter(ctx, act, nil)
	return done.Text, err
}

// sign returns a command of the operator, numbered after those before even if the clock is set back. The caller holds
// operating.
func (c *Copy) sign(text string) (act nodemsg.Act, err error) {
	c.numbered = max(uint64(c.Now().UnixMicro()), c.numbered+1)
	act = nodemsg.Act{
		Key: c.Operator.Key, Seq: c.numbered, Operator: true, Charter: c.Operator.Charter(), Text: text,
	}
	act.Signature, err = c.Operator.Sign(policy.SignedText(c.World, act))
	return act, err
}

// errImporting refuses commands of players while it is not known yet which names were registered to whom, and which
// numbers their commands had: they could take a name, or be told to have given a command of before again.
var errImporting = notice.New("importing", "this world is being restored from a backup: until all names are back, which may take some minutes, only moderators give commands")

// Import enters the commands that a restore has left in ImportTable under a prefix, ImportUrgent and then ImportNames.
// It goes on until all are entered, or ctx ends. Those that have no effect are left out.
func (c *Copy) Import(ctx context.Context, prefix string) error {
	type command struct{ key, text []byte }
	var all []command
	err := c.Storage.Scan(ImportTable, []byte(prefix), func(key, value []byte) error {
		all = append(all, command{bytes.Clone(key), bytes.Clone(value)})
		return nil
	})
	if err != nil {
		return err
	}
	if len(all) > 0 {
		c.Logger.Info("roles, names and bans of the backup are being entered", "commands", len(all))
	}
	for _, it := range all {
		if err := c.enterUntilDone(ctx, string(it.text)); err != nil {
			return err
		}
		if err := c.Storage.Commit([]kv.Write{{Table: ImportTable, Key: it.key}}); err != nil {
			return err
		}
	}
	if prefix == ImportNames && c.importing.Swap(false) {
		c.Logger.Info("all roles, names and bans of the backup are entered")
	}
	return nil
}

// enterUntilDone enters a command that may be entered twice, until it is entered or refused.
func (c *Copy) enterUntilDone(ctx context.Context, text string) error {
	for {
		adapted := text
		c.Read(func(s *policy.State) { adapted = s.Adapt(text) })
		_, err := c.Operate(ctx, adapted)
		if err == nil {
			if adapted != text {
				c.Logger.Warn("a player of the backup keeps the role that they were given since, or does not get the name back that somebody else has registered", "command", text, "entered", adapted)
			}
			return nil
		}
		c.operating.Lock()
		act, signErr := c.sign(adapted)
		c.operating.Unlock()
		if signErr != nil || c.check(act) != nil {
			c.Logger.Warn("a part of the policy is not restored", "command", adapted, "error", err)
			return signErr
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(every):
		}
	}
}

// Enter carries out a signed command everywhere, and returns what it has done. It has effect on this node when Enter
// returns, and on all others within two seconds, if they reach the catalog. Charge is called once it is known that the
// command would have an effect, and returns why it must not be entered all the same; nil: it may.
func (c *Copy) Enter(ctx context.Context, act nodemsg.Act, charge func() error) (notice.Notice, error) {
	if err := act.Valid(); err != nil {
		return notice.Notice{}, err
	}
	if err := c.verify(act); err != nil {
		return notice.Notice{}, err
	}
	err := c.try(act)
	if err != nil && c.Update(ctx) == nil { // what it depends on, a name or a role, may be new: entered by another node
		err = c.try(act)
	}
	if err == nil && charge != nil {
		err = charge()
	}
	if err != nil {
		return notice.Notice{}, err
	}
	answer := make(chan effect, 1)
	of := asked{player.IDOf(act.Key), act.Seq}
	c.mu.Lock()
	c.mu.asking[of] = answer
	c.mu.Unlock()
	defer func() {
		c.mu.Lock()
		delete(c.mu.asking, of)
		c.mu.Unlock()
	}()
	_, err = c.Directory.Consult(ctx, nodemsg.Question{Act: &act}, func(catalog *actor.Catalog) (nodemsg.Answer, error) {
		number, err := c.AnswerEnter(ctx, c.Self, catalog, act)
		return nodemsg.Answer{Number: number}, err
	})
	if err != nil {
		return notice.Notice{}, err
	}
	for {
		if err := c.Update(ctx); err != nil {
			return notice.Notice{}, fmt.Errorf("the command is entered, but its effect is not known yet: %w", err)
		}
		select {
		case it := <-answer:
			return it.Text, it.err
		case <-ctx.Done():
			return notice.Notice{}, notice.New("effect_unknown", "the command is entered, but its effect is not known yet")
		case <-time.After(every / 10):
		}
	}
}

// check returns why the act would have no effect, as far as is known here.
func (c *Copy) check(act nodemsg.Act) error {
	if err := c.verify(act); err != nil {
		return err
	}
	return c.try(act)
}

// verify returns why the act was not signed, or not now, by the player or operator that it names.
func (c *Copy) verify(act nodemsg.Act) error {
	if act.Seq > uint64(c.Now().Add(maxSkew).UnixMicro()) {
		return notice.New("clock_ahead", "the number of the command is of the future: set the clock of your machine")
	}
	return policy.Verify(c.World, act, c.Issued)
}

// try returns why the act would have no effect after those that are here.
func (c *Copy) try(act nodemsg.Act) error {
	c.mu.RLock()
	defer c.mu.RUnlock()
	now := c.Now()
	by := policy.Subject{Player: player.IDOf(act.Key)}
	if c.importing.Load() && !act.Operator && !c.mu.list.state.Judge(by, now).Role.AtLeast(policy.Moderator) {
		return errImporting
	}
	act.At = now.UnixMilli()
	return c.mu.list.state.Try(act)
}

// AnswerEnter enters an act into the log of the catalog for a peer, if this node leads it and the act would have an
// effect. It returns how many acts there are then.
func (c *Copy) AnswerEnter(ctx context.Context, peer string, catalog *actor.Catalog, act nodemsg.Act) (uint64, error) {
	if peer != c.Self && !c.limits.Allow(peer) {
		return 0, notice.New("commands_of_node", "a node may enter {rate} commands a second, {most} at once: try again later", commandRate, commandBurst)
	}
	id := player.IDOf(act.Key)
	entering := c.entering[int(id[len(id)-1])%len(c.entering)]
	if err := entering.Acquire(ctx, 1); err != nil {
		return 0, fmt.Errorf("wait until the last command of the same player is entered: %w", err)
	}
	defer entering.Release(1)
	root, err := catalog.Info(ctx)
	if err != nil {
		return 0, err
	}
	if root.Leader != c.Self {
		return 0, actor.ErrNotHere
	}
	if err := c.Update(ctx); err != nil {
		return 0, err
	}
	if err := c.check(act); err != nil && !errors.Is(err, policy.ErrRepeated) {
		return 0, err
	}
	if err := c.chargeGateway(peer, act); err != nil {
		return 0, err
	}
	act.At = c.Now().UnixMilli()
	return catalog.Enter(ctx, act)
}
