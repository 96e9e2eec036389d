package main

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/voxelpopuli/voxeld/cmd/voxeld/internal/admin"
	"github.com/voxelpopuli/voxeld/cmd/voxeld/internal/cli"
	"github.com/voxelpopuli/voxeld/internal/config"
	"github.com/voxelpopuli/voxeld/region"
	"github.com/voxelpopuli/voxeld/replica"
	kit "github.com/voxelpopuli/voxeld/test/testkit/daemon"
)

// The command that the first node prints starts a second node, which finds the leader of the catalog.
func TestHintStartsASecondNode(t *testing.T) {
	a := startDaemon(t)
	hint := regexp.MustCompile(`Add a machine: +(\S+) (invite --data-dir \S+) `).FindStringSubmatch(a.Output())
	if path, err := daemonBinary(); err != nil || hint == nil || hint[1] != path {
		t.Fatalf("the hint is %q, want the command %s (%v)", hint, path, err)
	}
	token, errs, code := voxeld(t, strings.Fields(hint[2])...)
	if code != 0 {
		t.Fatalf("voxeld invite: exit %d: %s", code, errs)
	}
	b := startDaemon(t, "--join", strings.TrimSpace(token))
	if a.Status.WorldID != b.Status.WorldID {
		t.Errorf("two worlds: %s and %s", a.Status.WorldID, b.Status.WorldID)
	}
	if a.Status.Catalog != a.Status.Peer {
		t.Errorf("the catalog of the first node is on %q", a.Status.Catalog)
	}
	eventually(t, "the second node knows who holds the catalog", patience, func() bool {
		b.ask("status", &b.Status)
		return b.Status.Catalog == a.Status.Peer
	})
	if a.Status.Version != "tested" {
		t.Errorf("version %q; the linker said tested", a.Status.Version)
	}
}

// The query commands find a node as run does: by variable, by file, by flag.
func TestAskingCommandsReadTheConfiguration(t *testing.T) {
	d := startDaemon(t)
	join(t, d.Game, "ann", 1)
	var players []map[string]any
	d.ask("players", &players)
	if len(players) != 1 || players[0]["name"] != "ann" || players[0]["guest"] == nil || players[0]["id"] == nil || players[0]["pose"] == nil {
		t.Errorf("players --json: %v", players)
	}

	elsewhere := t.TempDir()
	file := filepath.Join(elsewhere, "voxeld.toml")
	if err := os.WriteFile(file, []byte("data_dir = '"+d.dir+"'\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, command := range []string{"status", "peers", "regions", "players", "invite"} {
		if out, errs, code := voxeld(t, command, "--config", file); code != 0 {
			t.Errorf("%s --config: exit %d: %s%s", command, code, out, errs)
		}
	}
	t.Setenv("VOXELD_DATA_DIR", elsewhere)
	if _, errs, code := voxeld(t, "status"); code != exitFailed || !strings.Contains(errs, elsewhere) {
		t.Errorf("a variable that names another directory: exit %d: %s", code, errs)
	}
	if _, errs, code := voxeld(t, "status", "--data-dir", d.dir); code != 0 {
		t.Errorf("a flag against the variable: exit %d: %s", code, errs)
	}
	t.Setenv("VOXELD_ADMIN", filepath.Join(d.dir, "admin.sock"))
	if _, errs, code := voxeld(t, "status"); code != 0 {
		t.Errorf("VOXELD_ADMIN: exit %d: %s", code, errs)
	}
	if out, errs, code := voxeld(t, "init", "--name", "There"); code != 0 || !strings.Contains(out, elsewhere) {
		t.Errorf("init with VOXELD_DATA_DIR: exit %d: %s%s", code, out, errs)
	}
}

// A node dies between the founding of its catalog and storeGenesis. Its directory cannot be used for another world;
// the next run completes this one.
func TestInterruptedFirstRun(t *testing.T) {
	other := startDaemon(t)
	ctx, dir := t.Context(), t.TempDir()
	cfg, err := config.Load(config.Sources{})
	if err != nil {
		t.Fatal(err)
	}
	cfg.DataDir, cfg.Listen, cfg.Game, cfg.HTTP, cfg.Metrics = dir, []string{"/ip4/127.60.0.1/tcp/0"}, "127.60.0.1:0", "127.60.0.1:0", ""
	n, parts := newNode(cfg, cli.NewLogger(t.Output(), slog.LevelInfo, "text", new(cli.Recent))), newStack()
	if err := n.openSockets(ctx, parts); err != nil {
		t.Fatal(err)
	}
	if err := n.openStore(ctx, parts); err != nil {
		t.Fatal(err)
	}
	if err := n.enterWorld(ctx, parts); err != nil {
		t.Fatal(err)
	}
	replicas, err := replica.NewHost(replica.Options{Storage: n.db, Self: n.host.PeerID(), Logger: n.logger, Registerer: n.metrics})
	if err != nil {
		t.Fatal(err)
	}
	parts.start("replicas", replicas.Run)
	if err := region.FoundCatalog(ctx, replicas, n.host.PeerID()); err != nil {
		t.Fatal(err)
	}
	begun := n.world.ID()
	if err := parts.stop(); err != nil {
		t.Fatal(err)
	}

	args := []string{"run", "--data-dir", dir, "--listen", "/ip4/127.60.0.1/tcp/4001", "--game", "127.60.0.1:0", "--http", "127.60.0.1:0", "--metrics", ""}
	if _, errs, code := voxeld(t, append(args, "--join", other.invite())...); code != exitData || !strings.Contains(errs, "begun here") {
		t.Errorf("joining another world: exit %d: %s", code, errs)
	}
	d := newDaemon(t, kit.Options{Dir: dir})
	d.start()
	if d.Status.WorldID != begun {
		t.Errorf("world %s came of %s", d.Status.WorldID, begun)
	}
}

// Ctrl-C while a node waits for the world that it joins ends it at once, with exit code 0.
func TestInterruptedJoin(t *testing.T) {
	path, err := daemonBinary()
	if err != nil {
		t.Fatal(err)
	}
	var said bytes.Buffer
	c := exec.Command(path, "run", "--data-dir", t.TempDir(), "--listen", "/ip4/127.61.0.1/tcp/4001", "--game", "127.61.0.1:4002",
		"--http", "127.61.0.1:0", "--metrics", "", "--join", "/ip4/127.61.0.2/tcp/4001")
	c.Stdout, c.Stderr = &said, &said
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "it takes its port", patience, func() bool {
		conn, err := net.Dial("tcp", "127.61.0.1:4002")
		return err == nil && conn.Close() == nil
	})
	if err := c.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	start := time.Now()
	if err := c.Wait(); err != nil || time.Since(start) > 10*time.Second || strings.Contains(said.String(), "no node") {
		t.Errorf("ended with %v after %v: %s", err, time.Since(start), said.String())
	}
}

// Every command that the documents, the options and the messages mention exists.
func TestDocumentsNameCommandsThatExist(t *testing.T) {
	known, root := []string{"help"}, newRoot()
	root.InitDefaultCompletionCmd()
	for _, c := range root.Commands() {
		known = append(known, c.Name())
	}
	files, err := filepath.Glob("../../docs/*.md")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	files = append(files, "../../README.md", "../../internal/config/options.go", "../../store/tables_open.go")
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, found := range regexp.MustCompile("(?m)(?:(?:`|\\(|bin/)voxeld ([a-z]+)|^voxeld ([a-z]+) --)").FindAllStringSubmatch(string(text), -1) {
			if !slices.Contains(known, found[1]+found[2]) && found[0] != "`voxeld session" { // the text of a proof
				t.Errorf("%s: there is no command %q", file, found[0])
			}
		}
	}
}

// Both nodes list the regions and the players of an area, whoever leads them and wherever they are connected; land
// where nobody was is named as such.
func TestAreaIsListed(t *testing.T) {
	a := startDaemon(t)
	b := startDaemon(t, "--join", a.invite())
	join(t, a.Game, "ann", 1)
	join(t, b.Game, "ben", 1)
	for _, d := range []*daemon{a, b} {
		var players admin.Area
		eventually(t, "both players are listed", patience, func() bool {
			out, errs, code := voxeld(t, "players", "--area", "-600,-600:600,600", "--data-dir", d.dir, "--json")
			if code != 0 {
				t.Fatal(errs)
			}
			players = admin.Area{}
			if err := json.Unmarshal([]byte(out), &players); err != nil {
				t.Fatal(err)
			}
			return len(players.Players) == 2
		})
		if len(players.Missing) != 0 || len(players.Regions) == 0 || len(players.Regions)+len(players.Unfounded) != 16 {
			t.Errorf("%+v", players)
		}
		out, errs, code := voxeld(t, "regions", "--area", "-600,-600:600,600", "--data-dir", d.dir)
		if code != 0 || !strings.Contains(out, "open") || !strings.Contains(out, "nobody has been there") || !strings.Contains(out, players.Regions[0].ID) {
			t.Errorf("regions --area: exit %d: %s%s", code, out, errs)
		}
		t.Log(out)
	}
	for _, area := range []string{"0,0", "-9999,-9999:9999,9999"} {
		if _, errs, code := voxeld(t, "regions", "--area="+area, "--data-dir", a.dir); code != exitUsage {
			t.Errorf("regions --area %s: exit %d: %s", area, code, errs)
		}
	}
}
