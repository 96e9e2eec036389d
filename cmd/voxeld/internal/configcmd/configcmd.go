// Package configcmd holds the commands of voxeld config, which show, check and write configurations without starting a
// node.
package configcmd

import (
	"fmt"
	"os"
	"strings"
	"text/tabwriter"

	"github.com/dustin/go-humanize/english"
	"github.com/spf13/cobra"

	"github.com/voxelpopuli/voxeld/cmd/voxeld/internal/cli"
	"github.com/voxelpopuli/voxeld/internal/config"
)

// New returns the command voxeld config.
func New() *cobra.Command {
	c := &cobra.Command{
		Use: "config", Short: "Show, check or write a configuration",
		Example: "  voxeld config show\n  voxeld config validate /etc/voxeld/voxeld.toml\n  voxeld config sample > voxeld.toml",
		Args:    cli.NoArgs,
		RunE:    func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(newShow(), newValidate(), newSample())
	return c
}

// setting is a line of voxeld config show --json.
type setting struct {
	Option string        `json:"option"` // as the key of a file
	Value  any           `json:"value"`
	Source config.Source `json:"source"`
	Origin string        `json:"origin,omitempty"`
}

func newShow() *cobra.Command {
	var file string
	var asJSON bool
	c := &cobra.Command{
		Use: "show", Short: "Show the value of each option, and where it comes from",
		Long: "Shows the configuration that voxeld run would use with the same file, environment and flags: the value of\n" +
			"each option, and whether it is a default or comes from the file, a variable or a flag.",
		Example: "  voxeld config show\n  voxeld config show --config /etc/voxeld/voxeld.toml --json",
		Args:    cli.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			settings, err := cli.ReadConfig(c, file)
			if err != nil {
				return err
			}
			if asJSON {
				all := make([]setting, len(settings.All))
				for i, s := range settings.All {
					all[i] = setting{s.Option.Key(), s.JSON(), s.Source, s.Origin}
				}
				return cli.PrintJSON(c.OutOrStdout(), all)
			}
			w := tabwriter.NewWriter(c.OutOrStdout(), 0, 8, 2, ' ', 0)
			fmt.Fprintln(w, "OPTION\tVALUE\tFROM")
			for _, s := range settings.All {
				from := string(s.Source)
				if s.Origin != "" {
					from = s.Origin
				}
				fmt.Fprintf(w, "%s\t%s\t%s\n", s.Option.Key(), s.Text(), from)
			}
			return w.Flush()
		},
	}
	cli.AddOptions(c, &file)
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return c
}

func newValidate() *cobra.Command {
	var file string
	c := &cobra.Command{
		Use: "validate [FILE]", Short: "Check a configuration file, and report all errors at once",
		Long: "Checks the file, together with the VOXELD_… variables, as voxeld run would read it. It opens nothing else:\n" +
			"whether ports are free and directories writable shows when the node starts. Without FILE it checks the file\n" +
			"that VOXELD_CONFIG names, or else " + config.SystemFile + ". The exit code is 0 if there is no error, else 2.",
		Example: "  voxeld config validate /etc/voxeld/voxeld.toml",
		Args:    cobra.MaximumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			if len(args) == 1 {
				file = args[0]
			}
			settings, err := config.Read(config.Sources{File: file, Default: config.SystemFile, Environ: os.Environ()})
			if err != nil {
				return cli.Usage(err)
			}
			changed := 0
			for _, s := range settings.All {
				if s.Source != config.FromDefault {
					changed++
				}
			}
			checked := settings.File
			if checked == "" {
				checked = "No file was read. The configuration"
			}
			fmt.Fprintf(c.OutOrStdout(), "%s is valid: %s set, %d left at the default.\n",
				checked, english.Plural(changed, "option is", "options are"), len(settings.All)-changed)
			return nil
		},
	}
	return c
}

func newSample() *cobra.Command {
	return &cobra.Command{
		Use: "sample", Short: "Print a configuration file with all options and their defaults, commented out",
		Example: "  voxeld config sample > /etc/voxeld/voxeld.toml",
		Args:    cli.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			_, err := fmt.Fprint(c.OutOrStdout(), strings.TrimPrefix(config.Sample(), "\n"))
			return err
		},
	}
}
