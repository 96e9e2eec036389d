package main

import (
	"bytes"
	"errors"
	"io"
	"os/exec"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/creack/pty"
)

// voxeld top shows the players and the regions of a node: once, and in a terminal of 80×24 until q is pressed.
func TestTop(t *testing.T) {
	t.Parallel()
	d := startDaemon(t)
	ann := join(t, d.Game, "ann", 1)
	go func() {
		for range ann.Inbox { // moves and land, which nobody reads here
		}
	}()
	if _, errs, code := voxeld(t, "status", "--wait", "healthy", "--data-dir", d.dir); code != 0 {
		t.Fatal(errs)
	}
	out, errs, code := voxeld(t, "top", "--once", "--every", "200ms", "--data-dir", d.dir)
	for _, want := range []string{
		`^Commons \([0-9a-f]{12}\)   up .*voxeld tested\nserving\n`, `\nplayers +1 +peers +0 connected\n`, `\ncpu +[0-9.]+ of [0-9.]+ cores +memory +[0-9]+ MiB`,
		`\nclients in .*/s +out .*/s\n`, `\nticks +[0-9.]+/s +duration +mean .* ms, p99`, `\ncommits `, `\nregions +[0-9]+ loaded; with the catalog [0-9]+ led, [0-9]+ healthy`,
		`\nREGION +PLAYERS .*\n[-0-9,]+/[01]+ +1 .*this node`,
	} {
		if !regexp.MustCompile(want).MatchString(out) || code != 0 {
			t.Errorf("exit %d %s: no %s in\n%s", code, errs, want, out)
		}
	}
	if _, errs, code := voxeld(t, "top", "--every", "1ms", "--data-dir", d.dir); code != exitUsage || !strings.Contains(errs, "--every: 1ms is too short") {
		t.Errorf("exit %d: %s", code, errs)
	}

	path, err := daemonBinary()
	if err != nil {
		t.Fatal(err)
	}
	c := exec.CommandContext(t.Context(), path, "top", "--every", "200ms", "--data-dir", d.dir)
	c.Env = append(c.Environ(), "TERM=xterm")
	terminal, err := pty.StartWithSize(c, &pty.Winsize{Rows: 24, Cols: 80})
	if err != nil {
		t.Fatal(err)
	}
	defer terminal.Close()
	var screen bytes.Buffer
	part := make([]byte, 1<<12)
	for pressed := false; ; {
		n, err := terminal.Read(part)
		screen.Write(part[:n])
		if !pressed && bytes.Contains(screen.Bytes(), []byte("q quits")) {
			if pressed = true; !bytes.Contains(screen.Bytes(), []byte("this node")) {
				t.Errorf("no region on the screen: %q", screen.String())
			}
			if _, err := terminal.WriteString("q"); err != nil {
				t.Fatal(err)
			}
		}
		if errors.Is(err, io.EOF) || errors.Is(err, syscall.EIO) { // Linux's end of a terminal
			break
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := c.Wait(); err != nil {
		t.Errorf("top: %v", err)
	}
	if leave := "\x1b[?1049l"; !bytes.Contains(screen.Bytes(), []byte(leave)) {
		t.Error("the terminal is not restored")
	}
}
