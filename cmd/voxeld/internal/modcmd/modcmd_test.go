package modcmd

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// voxeld calls a command, and returns what it prints.
func voxeld(t *testing.T, args ...string) (string, error) {
	t.Helper()
	var out strings.Builder
	c := New(nil)
	c.SetOut(&out)
	c.SetErr(&out)
	c.SetArgs(args)
	err := c.ExecuteContext(t.Context())
	return out.String(), err
}

func TestNewMod(t *testing.T) {
	tsc, err := filepath.Abs("../../../../web/node_modules/typescript/bin/tsc")
	if err != nil {
		t.Fatal(err)
	}
	t.Chdir(t.TempDir())
	if out, err := voxeld(t, "new", "bell"); err != nil {
		t.Fatalf("new: %v: %s", err, out)
	}
	if out, err := voxeld(t, "check", "bell"); err != nil || !strings.HasPrefix(out, "bell 1.0 is in order") {
		t.Errorf("check: %v: %s", err, out)
	}
	if _, err := voxeld(t, "new", "bell"); err == nil {
		t.Error("a folder that was there is overwritten")
	}
	check := func() (string, error) {
		out, err := exec.CommandContext(t.Context(), "node", tsc, "-p", "bell/jsconfig.json").CombinedOutput()
		return string(out), err
	}
	if _, err := os.Stat(tsc); err != nil {
		t.Skip("the client's packages are not installed: npm --prefix web ci")
	}
	if out, err := check(); err != nil {
		t.Errorf("an editor finds mistakes: %v: %s", err, out)
	}
	if err := os.WriteFile("bell/main.js", []byte(`on("use", (event, land) => land.set(event.pos, "stoen"))`), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := check(); err == nil || !strings.Contains(out, "stoen") {
		t.Errorf("an editor does not find a mistake: %v: %s", err, out)
	}
}
