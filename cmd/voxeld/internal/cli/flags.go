package cli

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"slices"
	"strings"

	"github.com/coreos/go-systemd/v22/journal"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/voxelpopuli/voxeld/internal/config"
)

// LoadConfig returns the configuration from the file, the environment and the command's flags.
func LoadConfig(c *cobra.Command, file string) (config.Config, error) {
	settings, err := ReadConfig(c, file)
	return settings.Config, err
}

// ReadConfig is LoadConfig, and returns where each value comes from as well.
func ReadConfig(c *cobra.Command, file string) (config.Settings, error) {
	settings, err := config.Read(config.Sources{
		File: file, Default: config.SystemFile, Environ: os.Environ(), Flags: changedFlags(c.Flags()),
	})
	if err != nil {
		return config.Settings{}, Usage(err)
	}
	return settings, nil
}

// AddOptions declares the flags of the named options, or of all options without names.
func AddOptions(c *cobra.Command, file *string, names ...string) {
	flags := c.Flags()
	flags.Var((*pathValue)(file), "config", "configuration file (TOML); see voxeld config")
	for _, o := range config.Options {
		if len(names) > 0 && !slices.Contains(names, o.Name) {
			continue
		}
		if len(names) > 0 {
			o.Usage = gist(o.Usage)
		}
		if o.Kind == config.Switch {
			flags.Bool(o.Name, o.Default == "true", o.Usage)
			continue
		}
		flags.Var(newOptionValue(o), o.Name, o.Usage)
		if o.Kind == config.Word {
			complete := cobra.FixedCompletions(o.Words, cobra.ShellCompDirectiveNoFileComp)
			if err := c.RegisterFlagCompletionFunc(o.Name, complete); err != nil {
				panic(err) // the flag was declared above
			}
		}
	}
}

// OnNode makes c a command for a running node: it adds the flags that name the node, and runs the function with its
// admin socket.
func OnNode(c *cobra.Command, run func(c *cobra.Command, args []string, socket string) error) {
	var file string
	AddOptions(c, &file, "data-dir", "admin")
	c.RunE = func(c *cobra.Command, args []string) error {
		cfg, err := LoadConfig(c, file)
		if err != nil {
			return err
		}
		return run(c, args, cfg.AdminSocket())
	}
}

// gist returns what an option is, without its consequences.
func gist(usage string) string {
	first, rest, _ := strings.Cut(usage, ";")
	if i := strings.Index(rest, " (default "); i >= 0 {
		first += rest[i:]
	}
	return first
}

// typeNames are the names of the kinds in the help. A Word shows its words.
var typeNames = map[config.Kind]string{
	config.Text: "text", config.List: "list", config.Number: "int", config.Duration: "duration", config.Size: "size",
	config.Address: "host:port", config.URL: "url", config.Path: "path",
}

// optionValue holds the texts of a flag whose help shows a type. Package config parses the texts.
type optionValue struct {
	option  config.Option
	texts   []string
	changed bool
}

func newOptionValue(o config.Option) *optionValue {
	return &optionValue{option: o, texts: []string{o.Default}}
}

func (v *optionValue) String() string { return strings.Join(v.texts, ",") }

func (v *optionValue) Type() string {
	if v.option.Kind == config.Word {
		return strings.Join(v.option.Words, "|")
	}
	return typeNames[v.option.Kind]
}

// Set keeps the last text, of a list all texts.
func (v *optionValue) Set(text string) error {
	if !v.changed || v.option.Kind != config.List {
		v.texts = nil
	}
	v.texts, v.changed = append(v.texts, text), true
	return nil
}

// pathValue is a flag that names a file.
type pathValue string

func (v *pathValue) String() string { return string(*v) }

func (v *pathValue) Type() string { return "path" }

func (v *pathValue) Set(text string) error {
	*v = pathValue(text)
	return nil
}

// changedFlags returns the values of the options that were set on the command line.
func changedFlags(flags *pflag.FlagSet) map[string][]string {
	changed := make(map[string][]string)
	flags.Visit(func(f *pflag.Flag) {
		if _, ok := config.Find(f.Name); !ok {
			return
		}
		if v, ok := f.Value.(*optionValue); ok {
			changed[f.Name] = v.texts
		} else {
			changed[f.Name] = []string{f.Value.String()}
		}
	})
	return changed
}

// FlagError returns the error of a flag with a suggestion and the way to the help.
func FlagError(c *cobra.Command, err error) error {
	likely := ""
	if unknown := new(pflag.NotExistError); errors.As(err, &unknown) {
		var names []string
		c.Flags().VisitAll(func(f *pflag.Flag) { names = append(names, "--"+f.Name) })
		likely = config.DidYouMean("--"+unknown.GetSpecifiedName(), names)
	}
	return Usage(fmt.Errorf("%w%s; see %s --help", err, likely, c.CommandPath()))
}

// NewLogger returns a logger of a format, text or json, that writes to a command's standard error, and to recent.
func NewLogger(w io.Writer, level slog.Leveler, format string, recent *Recent) *slog.Logger {
	options := &slog.HandlerOptions{Level: level}
	both := io.MultiWriter(recent, w)
	if format == "json" {
		return slog.New(slog.NewJSONHandler(both, options))
	}
	if toJournal, err := journal.StderrIsJournalStream(); err == nil && toJournal && w == os.Stderr {
		return slog.New(newJournalHandler(both, options))
	}
	return slog.New(slog.NewTextHandler(both, options))
}
