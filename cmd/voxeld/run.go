package main

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

func newRun() *cobra.Command {
	c := &cobra.Command{
		Use: "run", Short: "Run a node (what voxeld does without a command)",
		Long: "Runs a node until it is told to stop (Ctrl-C, SIGTERM). Without --join it serves the world in the data\n" +
			"directory, and makes one if there is none. Every flag is also a key of the configuration file (TOML,\n" +
			"with _ for -) and a variable VOXELD_…; a flag is stronger than a variable, and that than the file.",
		Args: noArgs,
	}
	var file string
	addOptions(c.Flags(), &file)
	c.RunE = func(c *cobra.Command, _ []string) error {
		cfg, err := loadConfig(c, file)
		if err != nil {
			return err
		}
		return runNode(c.Context(), cfg, newLogger(c.ErrOrStderr(), cfg), c.OutOrStdout())
	}
	return c
}

// loadConfig gives the node's configuration as file, environment and the command's flags say it.
func loadConfig(c *cobra.Command, file string) (config.Config, error) {
	cfg, err := config.Load(config.Sources{File: file, Environ: os.Environ(), Flags: givenFlags(c.Flags())})
	if err != nil {
		return config.Config{}, usageError{err}
	}
	return cfg, nil
}

// addOptions declares flags of a node: those named, or without names all of them.
func addOptions(flags *pflag.FlagSet, file *string, names ...string) {
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
		case config.Number, config.Text:
			flags.String(o.Name, o.Default, usage)
		}
	}
}

// givenFlags gives the values of the options that were set on the command line.
func givenFlags(flags *pflag.FlagSet) map[string][]string {
	given := make(map[string][]string)
	for _, o := range config.Options {
		f := flags.Lookup(o.Name)
		if f == nil || !f.Changed {
			continue
		}
		if list, ok := f.Value.(pflag.SliceValue); ok {
			given[o.Name] = list.GetSlice()
		} else {
			given[o.Name] = []string{f.Value.String()}
		}
	}
	return given
}

func newLogger(w io.Writer, cfg config.Config) *slog.Logger {
	options := &slog.HandlerOptions{Level: cfg.Level()}
	if cfg.LogFormat == "json" {
		return slog.New(slog.NewJSONHandler(w, options))
	}
	return slog.New(slog.NewTextHandler(w, options))
}
