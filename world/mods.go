package world

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"maps"
	"slices"

	"github.com/voxelpopuli/voxeld/mod"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
)

// This file keeps what mods may do in a region (docs/adr/0121). A grant comes as the operator's signed command, and
// whether a mod is suspended in the region as an entry of its own; so all members judge effects alike.

// modState is what a region knows of a mod.
type modState struct {
	act       nodemsg.Act // the operator's command
	grant     mod.Grant
	removed   bool
	suspended string // why the mod is suspended in this region; empty if it is not
	// from is when the minute began in which used blocks were changed, in Unix milliseconds.
	from int64
	used int

	events, timers int // that wait; counted anew when the region is loaded
}

// acts reports whether the mod gets events and has effects.
func (m *modState) acts() bool {
	return m != nil && !m.removed && !m.grant.Off && m.suspended == ""
}

// keeps reports whether an event of the mod waits on, when what the mod may do has changed.
func (m *modState) keeps(kind mod.Kind) bool {
	return m.acts() || kind == mod.Timer && m != nil && !m.removed
}

// Reasons for which a region suspends a mod by itself.
const (
	SuspendedEvents = "too many events" // wait for it
	SuspendedTimers = "too many timers"
)

// maxReason is the longest reason for which a mod is suspended, in bytes.
const maxReason = 200

// Kinds of entries with tagMod.
const (
	modGrant   = 0 // the act follows, in CBOR
	modSuspend = 1 // the names of the mod and of the reason follow, each with its length as a uvarint
	modForget  = 2 // the name of the mod follows, with its length as a uvarint
)

// EncodeGrant returns the log entry with an operator's command about a mod.
func EncodeGrant(act nodemsg.Act) ([]byte, error) {
	encoded, err := nodemsg.EncodeAct(act)
	return append([]byte{tagMod, modGrant}, encoded...), err
}

// EncodeSuspend returns the log entry that suspends a mod in the region, until an operator's next command about it.
func EncodeSuspend(name, reason string) []byte {
	return appendText(appendText([]byte{tagMod, modSuspend}, name), reason[:min(len(reason), maxReason)])
}

// EncodeForget returns the log entry after which the region knows nothing of a mod.
func EncodeForget(name string) []byte { return appendText([]byte{tagMod, modForget}, name) }

func (l *Land) applyMod(index uint64, entry []byte) (Outcome, error) {
	malformed := fmt.Errorf("%w: about a mod", errBatch)
	if len(entry) < 2 {
		return Outcome{}, malformed
	}
	r, changed := reader{data: entry[2:]}, false
	switch entry[1] {
	case modGrant:
		act, err := nodemsg.DecodeAct(entry[2:])
		if err != nil {
			return Outcome{}, fmt.Errorf("%w: %w", malformed, err)
		}
		changed = !l.structure.RefusesEdits() && l.grant(index, act)
	case modSuspend:
		name, reason := r.text(mod.MaxName), r.text(maxReason)
		if r.bad || len(r.data) > 0 || reason == "" {
			return Outcome{}, malformed
		}
		changed = !l.structure.RefusesEdits() && l.suspend(index, name, reason)
	case modForget:
		name := r.text(mod.MaxName)
		if r.bad || len(r.data) > 0 {
			return Outcome{}, malformed
		}
		changed = !l.structure.RefusesEdits() && l.forgetMod(index, name)
	default:
		return Outcome{}, malformed
	}
	return Outcome{Mods: changed}, nil
}

// grant takes over an operator's command, and reports whether that changes anything: it does not if the command is none
// of an operator about a mod, is not signed, is the last one, or one of too many mods. Which of two commands is newer
// does not count: then one that a leader has made up could be newer than all of the policy's.
func (l *Land) grant(index uint64, act nodemsg.Act) bool {
	grant, removed, ok := mod.ReadCommand(act.Text)
	before := l.mods[grant.Name]
	switch {
	case !ok, !act.Operator, l.Proofs.SignedAct == nil, !l.Proofs.SignedAct(act), before != nil && SameCommand(before.act, act),
		before == nil && len(l.mods) >= mod.MaxKnownMods,
		!removed && (before == nil || before.removed) && l.grantedMods() >= mod.MaxMods:
		return false
	}
	l.changeMod(index, grant.Name, func(m *modState) {
		m.act, m.grant, m.removed, m.suspended = act, grant, removed, ""
	})
	l.dropEvents(index)
	return true
}

// SameCommand reports whether two acts are the same command of the same operator.
func SameCommand(a, b nodemsg.Act) bool {
	return a.Seq == b.Seq && a.Text == b.Text && bytes.Equal(a.Key, b.Key)
}

func (l *Land) grantedMods() (n int) {
	for _, m := range l.mods {
		if !m.removed {
			n++
		}
	}
	return n
}

// suspend suspends a mod, and reports whether it acted. What has happened and waits for it is dropped; its timers are
// kept.
func (l *Land) suspend(index uint64, name, reason string) bool {
	if !l.mods[name].acts() {
		return false
	}
	l.changeMod(index, name, func(m *modState) { m.suspended = reason })
	l.dropEvents(index)
	return true
}

// forgetMod removes all of a mod, and reports whether there was something.
func (l *Land) forgetMod(index uint64, name string) bool {
	m := l.mods[name]
	if m == nil {
		return false
	}
	l.tracked.rowChanges(index, Part{Sequences: true}, l.modKey(name), m.encode(), false)
	delete(l.mods, name)
	l.dirtyRows.mods[name] = struct{}{}
	l.dropEvents(index)
	return true
}

// changeMod changes the row of a mod, or adds one.
func (l *Land) changeMod(index uint64, name string, change func(*modState)) {
	part, key := Part{Sequences: true}, l.modKey(name)
	m := l.mods[name]
	if m == nil {
		m = new(modState)
		l.mods[name] = m
	} else {
		l.tracked.rowChanges(index, part, key, m.encode(), false)
	}
	change(m)
	l.tracked.rowChanges(index, part, key, m.encode(), true)
	l.dirtyRows.mods[name] = struct{}{}
}

// modRow returns the value of the row of a mod, nil if there is none.
func (l *Land) modRow(name string) []byte {
	if m := l.mods[name]; m != nil {
		return m.encode()
	}
	return nil
}

// encode returns the row: the act in CBOR and the reason, each with its length as a uvarint; from and used as uvarints.
func (m *modState) encode() []byte {
	act, err := nodemsg.EncodeAct(m.act)
	if err != nil {
		panic(fmt.Sprintf("encode an act that was decoded: %v", err))
	}
	b := appendText(appendText(nil, string(act)), m.suspended)
	return binary.AppendUvarint(binary.AppendUvarint(b, uint64(m.from)), uint64(m.used))
}

func decodeMod(name string, row []byte) (*modState, bool) {
	r := reader{data: row}
	m := new(modState)
	act, err := nodemsg.DecodeAct([]byte(r.text(nodemsg.MaxAct)))
	m.suspended, m.from = r.text(maxReason), r.int64()
	used := r.uvarint()
	var ok bool
	m.act, m.used = act, int(min(used, mod.MaxRate))
	m.grant, m.removed, ok = mod.ReadCommand(act.Text)
	return m, err == nil && act.Operator && ok && m.grant.Name == name && used <= mod.MaxRate && !r.bad && len(r.data) == 0
}

// mergeMod returns what two regions know of a mod: the newer command, and what both halves have used.
func mergeMod(a, b *modState) *modState {
	merged := *b
	if a == nil {
		return &merged
	}
	if a.act.Seq > b.act.Seq {
		merged = *a
	} else if a.act.Seq == b.act.Seq && b.suspended == "" {
		merged.suspended = a.suspended
	}
	merged.from, merged.used = max(a.from, b.from), min(a.used+b.used, mod.MaxRate)
	return &merged
}

// countMods counts anew what waits for each mod.
func (l *Land) countMods() {
	for _, m := range l.mods {
		m.events, m.timers = 0, 0
	}
	for _, g := range l.pinned {
		for _, w := range g.inbox.all() {
			l.countEvent(w, 1)
		}
	}
}

func (l *Land) countEvent(w *waiting, by int) {
	switch m := l.mods[w.event.Mod]; {
	case m == nil:
	case w.event.Kind == mod.Timer:
		m.timers += by
	default:
		m.events += by
	}
}

// ModStatus is what a region knows of a mod.
type ModStatus struct {
	mod.Grant
	Act       nodemsg.Act // the operator's command
	Removed   bool
	Suspended string // why it is suspended in this region; empty if it is not
	Events    int    // that wait, without timers
	Timers    int
}

// Acts reports whether the mod gets events and has effects in the region.
func (s ModStatus) Acts() bool { return !s.Removed && !s.Off && s.Suspended == "" }

// Mods returns what the region knows of mods, by name.
func (l *Land) Mods() []ModStatus {
	all := make([]ModStatus, 0, len(l.mods))
	for _, name := range slices.Sorted(maps.Keys(l.mods)) {
		all = append(all, l.mods[name].status())
	}
	return all
}

// Mod returns what the region knows of a mod. It reports false if that is nothing.
func (l *Land) Mod(name string) (ModStatus, bool) {
	m := l.mods[name]
	if m == nil {
		return ModStatus{}, false
	}
	return m.status(), true
}

func (m *modState) status() ModStatus {
	return ModStatus{Grant: m.grant, Act: m.act, Removed: m.removed, Suspended: m.suspended, Events: m.events, Timers: m.timers}
}
