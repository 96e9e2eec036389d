// Package cli is what the commands of voxeld share: usage errors, the flags of the configuration, and output.
package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"

	"github.com/spf13/cobra"
)

// UsageError is an error in the command line or the configuration.
type UsageError struct{ error }

// Usage marks an error as one in the command line or the configuration.
func Usage(err error) error { return UsageError{err} }

// Unwrap returns the error.
func (e UsageError) Unwrap() error { return e.error }

// MarkArgs makes errors of the command's own check of arguments, and of those below it, usage errors.
func MarkArgs(c *cobra.Command) {
	if check := c.Args; check != nil {
		c.Args = func(c *cobra.Command, args []string) error {
			err := check(c, args)
			if err != nil && !errors.As(err, new(UsageError)) {
				err = Usage(fmt.Errorf("%s: %w; see %s --help", c.CommandPath(), err, c.CommandPath()))
			}
			return err
		}
	}
	for _, below := range c.Commands() {
		MarkArgs(below)
	}
}

// NoArgs refuses arguments. A command with subcommands, such as the root, suggests one instead, or a flag.
func NoArgs(c *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	if !c.HasAvailableSubCommands() {
		return Usage(fmt.Errorf("%s takes no arguments, but got %q; see %s --help", c.CommandPath(), args[0], c.CommandPath()))
	}
	likely := ""
	if all := closest(c, args[0]); len(all) > 0 {
		likely = fmt.Sprintf(" (did you mean %s?)", all[0])
	} else if c.Flags().Lookup(args[0]) != nil {
		likely = fmt.Sprintf(" (did you mean --%s?)", args[0])
	}
	return Usage(fmt.Errorf("there is no command %q%s; see %s --help", c.CommandPath()+" "+args[0], likely, c.CommandPath()))
}

// closest returns the subcommands whose names differ from a word in one letter, or if there are none, in two.
func closest(c *cobra.Command, word string) (all []string) {
	for c.SuggestionsMinimumDistance = 1; len(all) == 0 && c.SuggestionsMinimumDistance <= 2; c.SuggestionsMinimumDistance++ {
		all = c.SuggestionsFor(word)
	}
	return all
}

// PrintJSON prints an answer as indented JSON.
func PrintJSON(w io.Writer, answer any) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(answer)
}

// Browsable converts a listening address to one that a browser on this machine can open.
func Browsable(address string) string {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return address
	}
	if ip := net.ParseIP(host); host == "" || ip != nil && ip.IsUnspecified() {
		host = "127.0.0.1"
	}
	return net.JoinHostPort(host, port)
}
