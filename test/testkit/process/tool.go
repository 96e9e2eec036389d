package process

import (
	"fmt"
	"os/exec"
	"strings"
)

// Run runs a system tool to its end. Its error includes the tool's output.
func Run(tool string, args ...string) error { return RunWith("", tool, args...) }

// RunWith is Run with a text as the tool's standard input.
func RunWith(input, tool string, args ...string) error {
	c := exec.Command(tool, args...)
	c.Stdin = strings.NewReader(input)
	if out, err := c.CombinedOutput(); err != nil {
		return fmt.Errorf("%s %s: %w: %s", tool, strings.Join(args, " "), err, strings.TrimSpace(string(out)))
	}
	return nil
}

// MissingTools returns why tools cannot be run here; "" if they can.
func MissingTools(tools ...string) string {
	for _, tool := range tools {
		if _, err := exec.LookPath(tool); err != nil {
			return "there is no " + tool + " on this machine"
		}
	}
	return ""
}
