package mod

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"

	"github.com/pelletier/go-toml/v2"

	"github.com/voxelpopuli/voxeld/blocktable"
	"github.com/voxelpopuli/voxeld/chunk"
	"github.com/voxelpopuli/voxeld/wire"
)

// API is the version of what scripts are passed and return.
const API = 1

// ManifestFile and ScriptFile are the files that each mod has.
const (
	ManifestFile = "mod.toml"
	ScriptFile   = "main.js"
)

// MaxName is the longest name of a mod, in bytes.
const MaxName = 20

const (
	// maxText is the longest version, title or setting, in bytes.
	maxText     = 200
	maxSettings = 32
)

// Manifest is a mod as its author describes it, in mod.toml.
type Manifest struct {
	Name    string `toml:"name"`
	Version string `toml:"version"`
	API     int    `toml:"api"`
	Title   string `toml:"title"` // one line for people
	// Permissions are what the mod needs. It has what an operator grants it.
	Permissions Permissions `toml:"permissions"`
	// Settings are the defaults of what operators may set.
	Settings map[string]string `toml:"settings"`
}

// Permissions are what a mod asks for.
type Permissions struct {
	Events []Kind   `toml:"events"`
	Blocks []string `toml:"blocks"` // names of blocks that it puts and takes away; "all": any
	Rate   int      `toml:"rate"`   // blocks that it changes in a minute; 0: DefaultRate
}

// ParseManifest reads a mod.toml, and checks it.
func ParseManifest(data []byte) (Manifest, error) {
	var m Manifest
	d := toml.NewDecoder(bytes.NewReader(data)).DisallowUnknownFields()
	if err := d.Decode(&m); err != nil {
		return Manifest{}, fmt.Errorf("%s: %w", ManifestFile, err)
	}
	if err := m.validate(); err != nil {
		return Manifest{}, fmt.Errorf("%s: %w", ManifestFile, err)
	}
	return m, nil
}

func (m Manifest) validate() error {
	if err := CheckName(m.Name); err != nil {
		return err
	}
	if m.API != API {
		return fmt.Errorf("api = %d: this version of voxeld knows %d", m.API, API)
	}
	if m.Version == "" || len(m.Version) > maxText || len(m.Title) > maxText {
		return fmt.Errorf("version and title: want at most %d bytes, and a version", maxText)
	}
	for _, text := range [...]string{m.Version, cmp.Or(m.Title, "-")} { // terminals show them
		if err := wire.CheckChat(text); err != nil {
			return fmt.Errorf("version and title: %w", err)
		}
	}
	if len(m.Settings) > maxSettings {
		return fmt.Errorf("%d settings, want at most %d", len(m.Settings), maxSettings)
	}
	for key, value := range m.Settings {
		if key == "" || len(key) > maxText || len(value) > maxText {
			return fmt.Errorf("setting %.20q: want 1 to %d bytes", key, maxText)
		}
	}
	_, err := m.Permissions.grant()
	return err
}

// Grant returns a grant of what the mod asks for, everywhere.
func (m Manifest) Grant(content Hash) Grant {
	g, _ := m.Permissions.grant() // ParseManifest has checked it
	g.Name, g.Content = m.Name, content
	return g
}

func (p Permissions) grant() (g Grant, err error) {
	g.Events, g.Rate = slices.Compact(slices.Sorted(slices.Values(p.Events))), p.Rate
	if g.Rate == 0 {
		g.Rate = DefaultRate
	}
	if g.Blocks, err = parseBlocks(p.Blocks); err != nil {
		return Grant{}, err
	}
	return g, g.validate()
}

// parseBlocks returns the blocks with the names.
func parseBlocks(names []string) (b Blocks, err error) {
	for _, name := range names {
		if name == allBlocks {
			return Blocks{All: true}, nil
		}
		block, known := blocktable.Named(name)
		if !known || block.Base() != block {
			return Blocks{}, fmt.Errorf("there is no block %.40q", name)
		}
		if block != chunk.Air && !slices.Contains(b.Bases, block) {
			b.Bases = append(b.Bases, block)
		}
	}
	slices.Sort(b.Bases)
	return b, nil
}

// CheckName returns an error unless the name of a mod is 1 to MaxName lower-case ASCII letters, digits, '_' and '-', and
// begins with a letter.
func CheckName(name string) error {
	ok := len(name) >= 1 && len(name) <= MaxName && name[0] >= 'a' && name[0] <= 'z'
	for i := range len(name) {
		c := name[i]
		ok = ok && ('a' <= c && c <= 'z' || '0' <= c && c <= '9' || c == '_' || c == '-')
	}
	if !ok {
		return fmt.Errorf("name %.40q: want a letter, and up to %d lower-case letters, digits, _ and -", name, MaxName)
	}
	return nil
}
