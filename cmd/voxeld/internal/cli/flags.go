package cli

import (
	"io"
	"log/slog"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/voxelpopuli/voxeld/config"
)

// LoadConfig returns the configuration from the file, the environment and the command's flags.
func LoadConfig(c *cobra.Command, file string) (config.Config, error) {
	cfg, err := config.Load(config.Sources{File: file, Environ: os.Environ(), Flags: changedFlags(c.Flags())})
	if err != nil {
		return config.Config{}, Usage(err)
	}
	return cfg, nil
}

// AddOptions declares the flags of the named options, or of all options without names.
func AddOptions(flags *pflag.FlagSet, file *string, names ...string) {
	flags.StringVar(file, "config", "", "configuration file (TOML)")
	for _, o := range config.Options {
		if len(names) > 0 && !slices.Contains(names, o.Name) {
			continue
		}
		usage := o.Usage
		switch o.Kind {
		case config.List:
			var preset []string
			if o.Default != "" {
				preset = strings.Split(o.Default, ",")
			}
			flags.StringSlice(o.Name, preset, usage)
		case config.Switch:
			flags.Bool(o.Name, o.Default == "true", usage)
		case config.Number:
			flags.Var(&optionValue{o.Default, "int"}, o.Name, usage)
		case config.Duration:
			flags.Var(&optionValue{o.Default, "duration"}, o.Name, usage)
		case config.Text:
			flags.String(o.Name, o.Default, usage)
		}
	}
}

// optionValue is the text of a flag whose help shows a type. Package config parses the text.
type optionValue struct{ text, kind string }

func (v *optionValue) String() string { return v.text }

func (v *optionValue) Type() string { return v.kind }

func (v *optionValue) Set(text string) error {
	v.text = text
	return nil
}

// changedFlags returns the values of the options that were set on the command line.
func changedFlags(flags *pflag.FlagSet) map[string][]string {
	changed := make(map[string][]string)
	for _, o := range config.Options {
		f := flags.Lookup(o.Name)
		if f == nil || !f.Changed {
			continue
		}
		if list, ok := f.Value.(pflag.SliceValue); ok {
			changed[o.Name] = list.GetSlice()
		} else {
			changed[o.Name] = []string{f.Value.String()}
		}
	}
	return changed
}

// NewLogger returns a logger with the level and format of the configuration.
func NewLogger(w io.Writer, cfg config.Config) *slog.Logger {
	options := &slog.HandlerOptions{Level: cfg.Level()}
	if cfg.LogFormat == "json" {
		return slog.New(slog.NewJSONHandler(w, options))
	}
	return slog.New(slog.NewTextHandler(w, options))
}
