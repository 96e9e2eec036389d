package policy

import (
	"cmp"
	"slices"

	"github.com/voxelpopuli/voxeld/mod"
	"github.com/voxelpopuli/voxeld/wire"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
	"github.com/voxelpopuli/voxeld/wire/notice"
)

// Mod is what an operator has granted a mod, or that it was removed.
type Mod struct {
	mod.Grant
	// Act is the operator's command that says so: regions keep it, so that each of their members can verify it.
	Act     nodemsg.Act
	Removed bool // the grant is the last one
}

// Mods returns the mods that have been granted something, by name; those that were removed, too. The caller must not
// change them.
func (s *State) Mods() []Mod { return s.mods }

// ModNamed returns the mod with a name, unless it was removed.
func (s *State) ModNamed(name string) (Mod, bool) {
	i, found := s.findMod(name)
	if !found || s.mods[i].Removed {
		return Mod{}, false
	}
	return s.mods[i], true
}

func (s *State) findMod(name string) (int, bool) {
	return slices.BinarySearchFunc(s.mods, name, func(m Mod, name string) int { return cmp.Compare(m.Name, name) })
}

// grant grants a mod what it may do, instead of what it was granted before: NAME HASH and as mod.ParseGrant reads it.
func grant(s *State, by author, args []string, _ int64) (func() Effect, error) {
	g, err := mod.ParseGrant(args)
	if err != nil {
		return nil, err
	}
	if len(mod.GrantCommand+" "+g.String()) > wire.MaxChat { // a restore enters it so
		return nil, notice.New("long_grant", "the grant is too long: name fewer blocks, or all")
	}
	if err := s.checkNewer(g.Name, by); err != nil {
		return nil, err
	}
	_, there := s.ModNamed(g.Name)
	_, known := s.findMod(g.Name)
	switch {
	case !there && s.grantedMods() >= mod.MaxMods:
		return nil, notice.New("many_mods", "there are {count} mods: remove some first", s.grantedMods())
	case !known && len(s.mods) >= mod.MaxKnownMods:
		return nil, notice.New("many_mod_names", "this world has had {count} mods: give this one the name of one that was removed", len(s.mods))
	}
	return func() Effect {
		s.putMod(Mod{Grant: g, Act: by.act})
		return Effect{Text: notice.New("mod_granted", "The mod {mod} has the grant: {grant}", g.Name, g)}
	}, nil
}

// revoke removes a mod: NAME.
func revoke(s *State, by author, args []string, _ int64) (func() Effect, error) {
	if len(args) != 1 {
		return nil, ErrUsage
	}
	m, there := s.ModNamed(args[0])
	if !there {
		return nil, notice.New("no_mod", "there is no mod {mod}", args[0])
	}
	if err := s.checkNewer(m.Name, by); err != nil {
		return nil, err
	}
	return func() Effect {
		s.putMod(Mod{Grant: m.Grant, Act: by.act, Removed: true})
		return Effect{Text: notice.New("mod_removed", "The mod {mod} is removed.", m.Name)}
	}, nil
}

// checkNewer returns an error unless the author has signed the command after the last one about the mod: regions know
// by that which of two counts.
func (s *State) checkNewer(name string, by author) error {
	if i, known := s.findMod(name); known && by.act.Seq <= s.mods[i].Act.Seq {
		return notice.New("old_grant", "another operator has changed the mod {mod} at a later time: compare the clocks of your machines", name)
	}
	return nil
}

func (s *State) grantedMods() (n int) {
	for i := range s.mods {
		if !s.mods[i].Removed {
			n++
		}
	}
	return n
}

func (s *State) putMod(m Mod) {
	all := slices.Clone(s.mods)
	if i, known := s.findMod(m.Name); known {
		all[i] = m
	} else {
		all = slices.Insert(all, i, m)
	}
	s.mods = all
	s.modActs = make([]nodemsg.Act, len(all))
	for i := range all {
		s.modActs[i] = all[i].Act
	}
}

// modCommands returns the commands that grant what the mods are granted.
func modCommands(s *State) (all []string) {
	for i := range s.mods {
		if m := &s.mods[i]; !m.Removed {
			all = append(all, mod.GrantCommand+" "+m.Grant.String())
		}
	}
	return all
}

// ModActs returns the last command about each mod, by the mods' names. The caller must not change them.
func (b *Builders) ModActs() []nodemsg.Act { return b.modActs }
