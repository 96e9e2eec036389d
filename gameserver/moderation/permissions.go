package moderation

import (
	"context"
	"crypto/ed25519"
	"net"
	"reflect"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/time/rate"

	"github.com/voxelpopuli/voxeld/chunk"
	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/motion"
	"github.com/voxelpopuli/voxeld/player"
	"github.com/voxelpopuli/voxeld/policy"
	"github.com/voxelpopuli/voxeld/policy/place"
	"github.com/voxelpopuli/voxeld/wire"
	"github.com/voxelpopuli/voxeld/wire/notice"
	"github.com/voxelpopuli/voxeld/wire/sessionmsg"
)

// travelEvery and travelsAtOnce limit how often a player may be brought elsewhere: each time they are sent the land
// there.
const (
	travelEvery   = 2 * time.Second
	travelsAtOnce = 5
)

func newTravels() *rate.Limiter { return rate.NewLimiter(rate.Every(travelEvery), travelsAtOnce) }

// commandTime bounds the time that a command waits for other nodes.
const commandTime = 15 * time.Second

// maxTasks is the most commands of a player that are under way, or wait for that.
const maxTasks = 4

// task waits for other nodes, and returns what the player is shown then.
type task func(context.Context) (answer []notice.Notice)

// Permissions is what the player of one session may do.
type Permissions struct {
	enforcer *Enforcer
	send     func(sessionmsg.FromServer) // must not block
	key      ed25519.PublicKey           // nil for a guest
	who      policy.Subject
	verdict  atomic.Pointer[policy.Verdict] // of the last judgement
	followed atomic.Int64                   // how many rollbacks the player was shown the progress of
	travels  *rate.Limiter                  // of commands that bring the player elsewhere
	visited  bool                           // the player has visited a place; the session's reader's

	mu struct {
		sync.Mutex
		greeted bool
		sent    *sessionmsg.Permissions // that the client was last sent
		around  around
		claims  []sessionmsg.Claim // that the client was last sent
		waiting []policy.Request   // of the player, when they were last judged
		tasks   []task             // the first one is under way; the others wait for it
		began   time.Time          // when the first one did

		correspondent string // the name of whom the player exchanged the last private line with; empty: nobody
	}
}

// Admit judges a player who joins: a guest, or the owner of a key. An error means that they may not. Messages to the
// player go to send.
func (e *Enforcer) Admit(id player.ID, name string, key ed25519.PublicKey, remote net.Addr, send func(sessionmsg.FromServer)) (*Permissions, error) {
	s := &Permissions{enforcer: e, send: send, key: key, who: subject(id, name, key == nil, remote), travels: newTravels()}
	var err error
	if s.who.Name, err = e.nameFor(s.who); err != nil {
		return nil, err
	}
	if err := e.refuseFlooder(id); err != nil {
		return nil, err
	}
	return s, s.Judge()
}

// Name returns the name under which the player plays.
func (s *Permissions) Name() string { return s.who.Name }

// Judge judges the player again, and returns why they may not play any more; nil if they may. The client is told what
// has changed.
func (s *Permissions) Judge() error {
	v := s.enforcer.judge(s.who)
	s.verdict.Store(&v)
	if err := s.enforcer.refusal(v); err != nil {
		return err
	}
	if err := s.refuseName(); err != nil {
		return err
	}
	s.tell()
	s.tellAnswers()
	return nil
}

// tellAnswers tells the player which of their requests were answered since they were last judged.
func (s *Permissions) tellAnswers() {
	if s.key == nil {
		return
	}
	var waiting []policy.Request
	given := func(policy.Request) bool { return false }
	s.mu.Lock()
	before := s.mu.waiting
	s.enforcer.Read(func(p *policy.State) {
		waiting = p.RequestsOf(s.who.Player)
		has := make(map[int]bool)
		for _, r := range before {
			has[r.ID] = p.Has(r)
		}
		given = func(r policy.Request) bool { return has[r.ID] }
	})
	s.mu.waiting = waiting
	s.mu.Unlock()
	for _, r := range before {
		switch {
		case slices.ContainsFunc(waiting, func(still policy.Request) bool { return still.ID == r.ID }):
		case given(r):
			s.notice(notice.New("request_approved", "Your request for {what} is approved.", r.What()))
		default:
			s.notice(notice.New("request_denied", "Your request for {what} is denied.", r.What()))
		}
	}
}

// SeenAt enters that the player came back, as their login at a gateway proves, if a name or a claim of theirs is to be
// confirmed by that. After an error it is tried again when they join the next time.
func (s *Permissions) SeenAt(ctx context.Context, gateway string, login player.Login) error {
	unconfirmed := false
	s.enforcer.Read(func(p *policy.State) { unconfirmed = p.Unconfirmed(login.Player(), s.enforcer.wall()) })
	if !unconfirmed {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, commandTime)
	defer cancel()
	_, err := s.enforcer.Enter(ctx, policy.Seen(gateway, s.who.Name, login), nil)
	return err
}

// refuseName returns an error if another player has registered the name since the player joined.
func (s *Permissions) refuseName() error {
	if owner, registered := s.enforcer.OwnerOf(s.who.Name); !registered || owner == s.who.Player {
		return nil
	}
	if s.key == nil {
		return wire.Stop(wire.FailNameTaken, notice.New("registered_since", "another player has registered the name {name}: join again under another name", s.who.Name))
	}
	return wire.Stop(wire.FailNameTaken, notice.New("shown_as", "another player has registered the name {name}: join again, and you are shown as {shown}",
		s.who.Name, player.Namesake(s.who.Name, s.who.Player.String(), 0)))
}

// border returns the border that holds for the player; nil for none. Each move asks for it: most worlds have none, and
// then the verdict need not be loaded.
func (s *Permissions) border() *place.Border {
	if s.enforcer.border.Load() == nil {
		return nil
	}
	return s.verdict.Load().Border
}

// MayGo reports whether the border of the world lets the player go from one place to another.
func (s *Permissions) MayGo(from, to motion.Pose) bool {
	return s.border().Allows(from.X, from.Z, to.X, to.Z)
}

// BringInside returns where a player is to be brought who is outside of the border of the world, such as one that was
// set where they were, and tells them; outside is false if they may be where they are. The height is left to the
// caller.
func (s *Permissions) BringInside(at motion.Pose) (to motion.Pose, outside bool) {
	to = at
	if to.X, to.Z, outside = s.border().Nearest(at.X, at.Z); outside {
		s.notice(notice.New("brought_inside", "The world ends here: you were brought back inside its border."))
	}
	return to, outside
}

// Edits returns how many blocks a second the player may change, if this node lets each player change so many.
func (s *Permissions) Edits(node rate.Limit) rate.Limit {
	return editsOf(s.verdict.Load().Edits, node)
}

// RefuseBulk returns why the player may not change so many blocks by a bulk edit now, as a code of wire; empty if they
// may, and then the blocks are counted.
func (s *Permissions) RefuseBulk(blocks int) string {
	limits := s.verdict.Load().Bulk
	switch {
	case limits.AtOnce == 0:
		return wire.RefusedNotAllowed
	case !s.enforcer.bulks.allow(s.who.Player, limits, blocks, s.enforcer.wall()):
		return wire.RefusedRate
	}
	return ""
}

// Mute returns why others may not read what the player writes; nil if they may.
func (s *Permissions) Mute() error {
	if mute := s.enforcer.judge(s.who).Mute; mute != nil {
		return mute.Describe(s.enforcer.wall())
	}
	return s.enforcer.floodMute(s.who.Player)
}

// Greet sends what follows the welcome.
func (s *Permissions) Greet() {
	s.mu.Lock()
	s.mu.greeted = true
	s.mu.Unlock()
	s.tell()
	if message := s.enforcer.Settings().Message; message != "" {
		s.notice(notice.Plain(message))
	}
}

func (s *Permissions) notice(n notice.Notice) { s.send(sessionmsg.Notice(n)) }

// Tell shows the player why something was not done; nil: nothing.
func (s *Permissions) Tell(why error) {
	if why != nil {
		s.notice(sentence(why))
	}
}

// tell sends what the player may do, once they are greeted, and unless the client knows it.
func (s *Permissions) tell() {
	v := s.verdict.Load()
	role := v.Role
	var own string
	s.enforcer.Read(func(p *policy.State) { own = p.NameOf(s.who.Player) })
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.mu.greeted {
		return
	}
	defer s.sendClaims()
	m := sessionmsg.Permissions{Role: role.String(), Name: own, Commands: []sessionmsg.CommandHelp{}, Bulk: v.Bulk.AtOnce}
	for _, c := range s.commands(role) {
		m.Commands = append(m.Commands, sessionmsg.CommandHelp{Name: c.Name, Group: c.Group, Usage: c.Usage, Help: c.Help})
	}
	if s.mu.sent != nil && reflect.DeepEqual(m, *s.mu.sent) {
		return
	}
	s.mu.sent = &m
	s.send(m)
}

// commands lists the commands that the player may use. Guests cannot sign any.
func (s *Permissions) commands(role policy.Role) []policy.Command {
	return slices.DeleteFunc(policy.For(role), func(c policy.Command) bool { return s.key == nil && !c.Local })
}

// TooFast is called for a line or a command that the player has sent too fast, and which was not carried out. An error
// ends the session.
func (s *Permissions) TooFast() error {
	now := s.enforcer.wall()
	ban := time.Duration(s.enforcer.Settings().FloodBan) * time.Millisecond
	if s.verdict.Load().Role.AtLeast(policy.Moderator) {
		ban = 0
	}
	switch s.enforcer.floods.note(s.who.Player, now, ban) {
	case floodWarned:
		if mute := s.enforcer.floodMute(s.who.Player); mute != nil {
			s.Tell(mute)
			return nil
		}
		s.notice(notice.New("too_fast", "You write too fast; that was not sent. Go on like that, and you are muted for a minute."))
	case floodMuted:
		s.notice(notice.New("too_fast_muted", "You write too fast, and are muted for a minute."))
	case floodBanned:
		return s.enforcer.refuseFlooder(s.who.Player)
	}
	return nil
}

// background runs what has to wait for other nodes, once the player's earlier commands are carried out, and then shows
// what it returns. Pages register a name by themselves: what their player commands a moment later need not be repeated.
func (s *Permissions) background(g Gateway, next task) {
	s.mu.Lock()
	waiting := len(s.mu.tasks)
	stuck := waiting > 0 && time.Since(s.mu.began) > time.Second
	if waiting < maxTasks {
		s.mu.tasks = append(s.mu.tasks, next)
	}
	if waiting == 0 {
		s.mu.began = time.Now()
	}
	s.mu.Unlock()
	switch {
	case waiting == 0:
		g.Background(s.runTasks)
	case waiting == maxTasks:
		s.notice(notice.New("commands_wait", "Wait until your last commands are carried out."))
	case stuck:
		s.notice(notice.New("after_last_command", "This is carried out after your last command, which is not answered yet."))
	}
}

// runTasks runs tasks in order, until none is left: the first one is there.
func (s *Permissions) runTasks(ctx context.Context) {
	for left := 1; left > 0; {
		s.mu.Lock()
		first := s.mu.tasks[0]
		s.mu.Unlock()
		answer := await(ctx, first)
		s.mu.Lock()
		s.mu.tasks, s.mu.began = slices.Delete(s.mu.tasks, 0, 1), time.Now()
		left = len(s.mu.tasks)
		s.mu.Unlock()
		for _, line := range answer {
			s.notice(line)
		}
	}
}

func await(ctx context.Context, t task) []notice.Notice {
	ctx, cancel := context.WithTimeout(ctx, commandTime)
	defer cancel()
	return t(ctx)
}

// RefuseEdit returns why the player may not change a block, as a code of wire; empty if they may.
func (s *Permissions) RefuseEdit(at grid.Pos) string {
	return s.enforcer.refuseEdit(s.who, *s.verdict.Load(), at)
}

// RefuseText returns why the player may not write the text of an edit, and tells them if they are muted; empty if they
// may.
func (s *Permissions) RefuseText(e sessionmsg.Edit) string {
	if !chunk.Block(e.Block).IsSign() || wire.CheckSign(e.Text) != nil {
		return wire.RefusedText
	}
	if why := s.Mute(); why != nil {
		s.Tell(why)
		return wire.RefusedMuted
	}
	return ""
}

// NoteEdit counts an edit that the player has requested.
func (s *Permissions) NoteEdit(removed bool) {
	if now := s.enforcer.wall(); now.UnixMilli() < s.verdict.Load().NewUntil {
		s.enforcer.newcomers.note(s.who.Player, removed, now)
	}
}

// Keeps reports whether a claim keeps the player from going from one block into another.
func (s *Permissions) Keeps(from, to grid.Pos) bool {
	return s.enforcer.claims.Load().Keeps(s.who.ClaimID(), s.verdict.Load().Role, from, to) != nil
}

// around is where claims are shown to a player: in the chunks around one.
type around struct {
	at     grid.ChunkPos
	radius int32
}

// Surround sends the claims around the player, who is in a chunk and sees so many in each direction, unless the client
// knows them.
func (s *Permissions) Surround(at grid.ChunkPos, view int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mu.around = around{at, int32(min(view, sessionmsg.ClaimRadius))} //nolint:gosec // at most ClaimRadius
	s.sendClaims()
}

// sendClaims sends the claims around the player, unless the client knows them. The caller holds the lock.
func (s *Permissions) sendClaims() {
	if s.mu.around.radius == 0 { // the player has no place yet
		return
	}
	near := s.enforcer.claims.Load().Near(s.mu.around.at, s.mu.around.radius, sessionmsg.MaxClaims)
	if len(near)+len(s.mu.claims) == 0 {
		return
	}
	all := make([]sessionmsg.Claim, 0, len(near))
	id, role := s.who.ClaimID(), s.verdict.Load().Role
	s.enforcer.Read(func(p *policy.State) {
		for _, c := range near {
			all = append(all, sessionmsg.Claim{
				Owner: p.PlayerLabel(c.Owner), Name: c.Name, Min: c.Min, Max: c.Max,
				Member: c.Has(id), Build: c.MayBuild(id, role), Enter: c.MayEnter(id, role),
			})
		}
	})
	if !reflect.DeepEqual(all, s.mu.claims) {
		s.mu.claims = all
		s.send(sessionmsg.Claims{Claims: all})
	}
}
