package main

import (
	"bufio"
	"cmp"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/voxelpopuli/voxeld/chunk"
	kit "github.com/voxelpopuli/voxeld/test/testkit/daemon"
	"github.com/voxelpopuli/voxeld/test/testkit/process"
	"github.com/voxelpopuli/voxeld/wire/sessionmsg"
)

var luantiClient = flag.String("luanti.client", "", "the client of Luanti in TestLuantiClientOfDebian, which is not skipped then")

// debianLuanti is where Debian's package minetest has its client, which shells of root may not find.
const debianLuanti = "/usr/games/minetest"

// Debian's client of Luanti joins, loads, is sent land, and is seen by a player in the browser's protocol.
func TestLuantiClientOfDebian(t *testing.T) {
	t.Parallel()
	luanti := cmp.Or(*luantiClient, debianLuanti)
	for _, program := range []string{luanti, "Xvfb"} {
		if _, err := exec.LookPath(program); err != nil && *luantiClient != "" {
			t.Fatal(err)
		} else if err != nil {
			t.Skipf("%s is not installed (Debian: minetest, xvfb)", program)
		}
	}
	ip := takeAddress(t)
	d := newDaemon(t, kit.Options{IP: ip, Args: []string{"--luanti", ip + luantiPort}})
	d.init()
	d.start()
	session := join(t, d.Game, "browser", 2)

	at := session.Welcome.Pose.Block()
	write := func(z int32, text string) {
		t.Helper()
		eventually(t, "a sign is acknowledged, as its land is loaded", patience, func() bool {
			seq := session.do(sessionmsg.Edit{X: at.X + 2, Y: at.Y + 2, Z: at.Z + z, Block: uint16(chunk.Sign), Text: text})
			session.until("the answer", func() bool { _, ok := session.Acks[seq]; return ok })
			return session.Acks[seq].Error == ""
		})
	}
	write(0, "to the\nharbour")
	write(1, "")

	home := t.TempDir()
	screen, _, out, err := process.StartPiped(process.Options{Log: filepath.Join(home, "screen.log")}, "Xvfb", "-displayfd", "1", "-screen", "0", "320x240x24", "-nolisten", "tcp")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(screen.Kill)
	display, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatalf("no screen: %v, %s", err, screen.Output())
	}
	settings := filepath.Join(home, "minetest.conf")
	if err := os.WriteFile(settings, []byte("enable_sound = false\nenable_shaders = false\nfps_max = 5\nviewing_range = 30\nscreen_w = 320\nscreen_h = 240\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	play := func(password string) *process.Process {
		t.Helper()
		client, err := process.Start(process.Options{
			Log: filepath.Join(home, password+".log"), Nice: 5,
			Env: []string{"HOME=" + home, "DISPLAY=:" + strings.TrimSpace(display), "LIBGL_ALWAYS_SOFTWARE=1", "ALSOFT_DRIVERS=null"},
		}, luanti, "--go", "--config", settings, "--address", ip, "--port", luantiPort[1:], "--name", "Debian", "--password", password)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(client.Kill)
		t.Cleanup(func() {
			if t.Failed() {
				t.Logf("the client with the password %s says: %s", password, client.Output())
			}
		})
		return client
	}
	client := play("secret") // it keeps the name
	eventually(t, "land is sent, which is when the client has loaded", patience, func() bool {
		if !client.Running() {
			t.Fatal("the client has ended")
		}
		return d.metric("voxeld_luanti_chunks_total") > 0
	})
	session.until("the client's player", func() bool { return len(session.Avatars) >= 2 })
	write(2, "later")
	eventually(t, "much land is sent, so that the client has read the first", patience, func() bool {
		if !client.Running() {
			t.Fatal("the client has ended: it cannot read a sign")
		}
		return d.metric("voxeld_luanti_chunks_total") > 20
	})
	client.Stop()
	eventually(t, "the client's end", patience, func() bool { return d.metric("voxeld_luanti_clients") == 0 })
	if log := client.Output(); strings.Contains(log, "WARNING") || strings.Contains(log, "ERROR") {
		t.Errorf("the client has trouble with what it was sent: %s", log)
	}

	client = play("guess")
	eventually(t, "the client is told that this is not its password", patience, func() bool {
		return strings.Contains(client.Output(), "not the password of Debian")
	})
	client.Stop()
	sent := d.metric("voxeld_luanti_chunks_total")
	client = play("secret")
	eventually(t, "the client that knows the password is sent land", patience, func() bool {
		return client.Running() && d.metric("voxeld_luanti_chunks_total") > sent
	})
	client.Stop()
}
