package main

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// each calls check for all commands that the help shows.
func each(c *cobra.Command, check func(c *cobra.Command)) {
	for _, sub := range c.Commands() {
		if sub.IsAvailableCommand() && sub.Name() != "completion" && sub.Name() != "help" {
			check(sub)
			each(sub, check)
		}
	}
}

// Each command has a description, a group if it is at the top, an example that names it, and flags that say what they
// are.
func TestCommandsExplainThemselves(t *testing.T) {
	root := newRoot()
	each(root, func(c *cobra.Command) {
		if c.Short == "" || strings.HasSuffix(c.Short, ".") {
			t.Errorf("%s: the description %q", c.CommandPath(), c.Short)
		}
		if c.Parent() == root && c.GroupID == "" {
			t.Errorf("%s has no group", c.CommandPath())
		}
		if !strings.Contains(c.Example, c.CommandPath()) {
			t.Errorf("%s has no example", c.CommandPath())
		}
		c.LocalFlags().VisitAll(func(f *pflag.Flag) {
			if f.Usage == "" {
				t.Errorf("%s --%s is not explained", c.CommandPath(), f.Name)
			}
		})
	})
}

// The help of voxeld run groups the options and shows their types. The help of voxeld shows the commands.
func TestHelpIsGrouped(t *testing.T) {
	t.Parallel()
	out, _, code := voxeld(t, "run", "--help")
	last := 0
	for _, want := range []string{
		"Examples:", "Storage:", "--data-dir path", "Network:", "--http host:port", "--advertise-http url", "--placement walkad|hash", "Replication:",
		"--replace-after duration", "Players:", "--motion-budget size", "Monitoring and control:", "Logging:",
	} {
		i := strings.Index(out, want)
		if i < last || code != 0 {
			t.Errorf("exit %d; %q is missing or not in this place", code, want)
		}
		last = max(i, last)
	}
	out, _, _ = voxeld(t, "--help")
	for _, want := range []string{"Start a node:", "Watch and control a running node:", "completion", "man", "see voxeld run --help"} {
		if !strings.Contains(out, want) {
			t.Errorf("voxeld --help lacks %q", want)
		}
	}
	if strings.Contains(out, "--motion-budget") {
		t.Error("voxeld --help shows the options of voxeld run")
	}
}

// All wrong values are reported at once, each with the name that the user wrote and what is accepted.
func TestWrongValuesAreExplained(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "voxeld.toml")
	if err := os.WriteFile(file, []byte("replcas = 3\nguests = \"yes\"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	_, errs, code := voxeld(t, "run", "--config", file, "--replace-after", "5", "--http", "8080", "--view-distance", "99", "--log-level", "trace")
	for _, want := range []string{
		file + ": there is no option replcas (did you mean replicas?)", file + ": guests: write true or false",
		`--replace-after: "5" is not a duration: write one such as 90s`, `--http: "8080" is not host:port, such as`,
		"--view-distance: 99 is out of range: choose 1 to 12", `--log-level: "trace" is not known: choose one of debug, info, warn, error`,
	} {
		if !strings.Contains(errs, want) {
			t.Errorf("%q is missing in\n%s", want, errs)
		}
	}
	if code != exitUsage {
		t.Errorf("exit %d", code)
	}
	if _, errs, code := voxeld(t, "run", "--htpp", ":1"); code != exitUsage || !strings.Contains(errs, "unknown flag: --htpp (did you mean --http?)") {
		t.Errorf("an unknown flag: exit %d: %s", code, errs)
	}
	if _, errs, code := voxeld(t, "config", "validate", file); code != exitUsage || strings.Count(errs, "\n") != 2 {
		t.Errorf("config validate: exit %d: %s", code, errs)
	}
}

// voxeld config sample writes a file that is valid, and config show says where values come from.
func TestConfigShow(t *testing.T) {
	t.Parallel()
	sample, _, _ := voxeld(t, "config", "sample")
	file := filepath.Join(t.TempDir(), "voxeld.toml")
	if err := os.WriteFile(file, []byte(strings.Replace(sample, "#guests = true", "guests = false", 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, errs, code := voxeld(t, "config", "validate", file); code != 0 || !strings.Contains(out, "valid: 1 option is set") {
		t.Errorf("validate: exit %d: %s%s", code, out, errs)
	}
	out, _, _ := voxeld(t, "config", "show", "--config", file, "--replicas", "5")
	for _, want := range [][3]string{{"guests", "false", file}, {"replicas", "5", "--replicas"}, {"replace_after", "1m", "default"}} {
		found := false
		for line := range strings.Lines(out) {
			found = found || strings.Join(strings.Fields(line), " ") == strings.Join(want[:], " ")
		}
		if !found {
			t.Errorf("no line %v in\n%s", want, out)
		}
	}
}

// voxeld man writes a page for each command, and completion knows the words of an option.
func TestManualAndCompletion(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "man1")
	if _, errs, code := voxeld(t, "man", dir); code != 0 {
		t.Fatal(errs)
	}
	each(newRoot(), func(c *cobra.Command) {
		name := strings.ReplaceAll(c.CommandPath(), " ", "-") + ".1"
		if page, err := os.ReadFile(filepath.Join(dir, name)); err != nil || !strings.Contains(string(page), ".SH EXAMPLE") {
			t.Errorf("%s: %v", name, err)
		}
	})
	if pages, err := fs.Glob(os.DirFS(dir), "voxeld*.1"); err != nil || len(pages) < 10 {
		t.Errorf("%v, %v", pages, err)
	}
	if out, _, _ := voxeld(t, "__complete", "run", "--overlay", ""); !strings.Contains(out, "psense") {
		t.Errorf("the completions of --overlay: %s", out)
	}
	for _, shell := range []string{"bash", "zsh", "fish"} {
		if out, errs, code := voxeld(t, "completion", shell); code != 0 || !strings.Contains(out, "voxeld") {
			t.Errorf("completion %s: exit %d: %s", shell, code, errs)
		}
	}
}
