package config

import "strings"

// Kind is the type of an option's value, and says how its texts are read.
type Kind int

// The kinds of options. A List is separated by commas in a variable or a flag, and a flag may be repeated.
// A Switch is true or false; a flag without a value means true.
const (
	Text     Kind = iota // string
	List                 // []string
	Number               // int
	Switch               // bool
	Duration             // time.Duration: 90s, 5m
	Size                 // int64, in bytes: 19200, 64MiB
	Address              // string, host:port
	URL                  // string
	Path                 // string, of a file or directory
	Word                 // string, one of Words
)

// Option is a setting: a flag, a TOML key and an environment variable.
type Option struct {
	Name    string // of the flag, without dashes: "data-dir"
	Kind    Kind
	Default string   // as written on the command line; if empty, Usage states the default, or there is none
	Usage   string   // one line: what it is, its unit, and its consequence
	Words   []string // the values of a Word
	Reload  bool     // whether a running daemon takes a new value (voxeld reload)

	check func(value any) error // refuses impossible values; nil: every value of the kind is possible
}

// Group is a heading of the help, and the options below it.
type Group struct {
	Name    string
	Options []Option
}

// Key returns the option's key in TOML: "data_dir".
func (o Option) Key() string { return strings.ReplaceAll(o.Name, "-", "_") }

// Variable returns the option's environment variable: "VOXELD_DATA_DIR".
func (o Option) Variable() string { return prefix + strings.ToUpper(o.Key()) }

const prefix = "VOXELD_"

// fileVariable names the configuration file, as the flag --config does.
const fileVariable = prefix + "CONFIG"
