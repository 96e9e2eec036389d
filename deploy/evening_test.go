package deploy

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/coder/websocket"

	"github.com/voxelpopuli/voxeld/test/testkit/netns"
)

var evening = flag.String("evening", "", "run TestEvening with the packages in this directory; make evening prepares it")

// machine is a fresh Debian with a network address of its own.
type machine struct {
	t     *testing.T
	root  string
	ip    string
	enter []string // the command that runs another in its network
}

// sh runs a shell command on the machine, and returns what it printed.
func (m *machine) sh(script string) string {
	m.t.Helper()
	out, err := m.start("chroot", m.root, "/bin/sh", "-euc", script).CombinedOutput()
	if err != nil {
		m.t.Fatalf("on %s: %s: %v\n%s\n%s", m.ip, script, err, out, m.log())
	}
	return strings.TrimSpace(string(out))
}

// start returns a command in the network of the machine, outside of its file system.
func (m *machine) start(words ...string) *exec.Cmd {
	words = append(m.enter[:len(m.enter):len(m.enter)], words...)
	return exec.Command(words[0], words[1:]...)
}

func (m *machine) game() string { return m.ip + ":4002" }

func (m *machine) log() string {
	b, err := os.ReadFile(filepath.Join(m.root, "var/log/voxeld.log"))
	if err != nil {
		return "" // it has not started
	}
	lines := strings.Split(string(b), "\n")
	return strings.Join(lines[max(0, len(lines)-30):], "\n")
}

// serves waits until the node serves, and its regions are healthy.
func (m *machine) serves() {
	m.t.Helper()
	eventually(m.t, m.ip+" serves", func() bool { return m.start("chroot", m.root, "voxeld", "healthcheck").Run() == nil })
	m.sh("voxeld status --wait healthy")
}

// machines makes n of them. The name, of three letters, and the network are no other test's.
func machines(t *testing.T, name, network string, n int) []*machine {
	t.Helper()
	bridge, err := netns.NewBridge(name, network, n)
	if err != nil {
		t.Fatal(err)
	}
	var all []*machine
	for i := 1; i <= n; i++ {
		dir := filepath.Join(*evening, fmt.Sprint(name, "-", i))
		m := &machine{t: t, root: filepath.Join(dir, "root"), ip: bridge.Address(i), enter: bridge.Enter(i)}
		for _, d := range []string{"root", "upper", "work"} {
			if err := os.MkdirAll(filepath.Join(dir, d), 0o755); err != nil {
				t.Fatal(err)
			}
		}
		host(t, "mount", "-t", "overlay", "overlay", "-o",
			fmt.Sprintf("lowerdir=%s/debian,upperdir=%s/upper,workdir=%[2]s/work", *evening, dir), m.root)
		t.Cleanup(func() { host(t, "umount", "-R", m.root) })
		host(t, "mount", "-t", "proc", "proc", filepath.Join(m.root, "proc"))
		host(t, "mkdir", "-p", filepath.Join(m.root, "run/systemd/system"))
		host(t, "cp", "testdata/systemctl", filepath.Join(m.root, "usr/bin"))
		host(t, "cp", *evening+"/voxeld.deb", *evening+"/next.deb", m.root)
		all = append(all, m)
	}
	t.Cleanup(func() {
		for _, m := range all {
			m.start("chroot", m.root, "systemctl", "stop", "voxeld").Run() //nolint:errcheck // it may not run
		}
	})
	return all
}

// host runs a command on this machine.
func host(t *testing.T, words ...string) {
	t.Helper()
	if out, err := exec.Command(words[0], words[1:]...).CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", strings.Join(words, " "), err, out)
	}
}

// background starts a program that the end of the test kills.
func background(t *testing.T, c *exec.Cmd) {
	t.Helper()
	log, err := os.Create(filepath.Join(t.TempDir(), "log"))
	if err != nil {
		t.Fatal(err)
	}
	c.Stdout, c.Stderr = log, log
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		c.Process.Kill() //nolint:errcheck // it may have ended
		c.Wait()         //nolint:errcheck // it was killed
		if b, err := os.ReadFile(log.Name()); err == nil && t.Failed() {
			t.Logf("%s:\n%.3000s", c.Path, b)
		}
	})
}

// An operator's first evening, as docs/install.md describes it: the package on three machines, join by token, HTTPS
// through Caddy, Prometheus, an upgrade while players build, a backup, the loss of everything, and the world founded
// again.
func TestEvening(t *testing.T) {
	if *evening == "" {
		t.Skip("make evening runs it")
	}
	step := stepper(t)
	all := machines(t, "eve", "10.99.0", 3)
	a := all[0]
	token := ""
	for i, m := range all {
		m.sh("dpkg -i /voxeld.deb")
		if i > 0 {
			m.sh("echo " + token + " | install -g voxeld -m 640 /dev/stdin /etc/voxeld/token")
			m.sh(`echo 'join = ["@/etc/voxeld/token"]' >>/etc/voxeld/voxeld.toml`)
		}
		m.sh(fmt.Sprintf(`echo 'advertise_http = "http://%s:8080"' >>/etc/voxeld/voxeld.toml`, m.ip))
		m.sh(`echo 'metrics = ":9102"' >>/etc/voxeld/voxeld.toml`)
		m.sh("voxeld config validate && systemctl enable --now voxeld")
		m.serves()
		if i == 0 {
			token = m.sh("voxeld invite --uses 2")
		}
	}
	for _, m := range all {
		m.serves()
	}
	step("three machines run the package and one world")

	a.sh(`sed -i '/^advertise_http/d' /etc/voxeld/voxeld.toml`)
	a.sh(`printf '%s\n' 'http = "127.0.0.1:8080"' 'trusted_proxy = ["127.0.0.1"]' 'advertise_http = "https://a.example.org"' >>/etc/voxeld/voxeld.toml`)
	a.sh("voxeld config validate && systemctl restart voxeld")
	a.serves()
	openThroughCaddy(t, a)
	step("the page and its WebSocket open through Caddy at https://a.example.org")

	prometheus := startPrometheus(t, all)
	eventually(t, "Prometheus scrapes three nodes", func() bool { return query(t, prometheus, `sum(up{job="voxeld"})`) == "3" })
	players := startCrowd(t, all[0].game(), all[1].game(), all[2].game())
	players.build()
	everyPanelHasData(t, prometheus)
	step("Prometheus scrapes the three, and the panels of the dashboards have data")

	for _, m := range all {
		m.sh("dpkg -i /next.deb </dev/null")
		m.serves()
		if is := m.sh("voxeld --version"); !strings.HasPrefix(is, "voxeld version next ") {
			t.Errorf("%s runs %s", m.ip, is)
		}
		players.build()
	}
	players.leave()
	players.check()
	step("all are upgraded; each of %d acknowledged edits is there", players.book.Edits())

	a.sh("voxeld backup /root/world.voxback && voxeld verify /root/world.voxback && install -m 0600 /var/lib/voxeld/root.key /root/world.key")
	for _, m := range all {
		m.sh("systemctl stop voxeld && rm -r /var/lib/voxeld/*")
	}
	step("backed up; all machines lost the world")

	a.sh("voxeld restore /root/world.voxback --root-key /root/world.key && systemctl start voxeld")
	a.serves()
	token = a.sh("voxeld invite --uses 2")
	for _, m := range all[1:] {
		m.sh("echo " + token + " >/etc/voxeld/token && systemctl start voxeld")
	}
	for _, m := range all {
		m.serves()
	}
	players.check()
	step("the world is back on three machines, with each of %d edits", players.book.Edits())
}

// deploy/ssh/machines.sh installs, adds to and upgrades a world of several machines. Instead of sshd, a stand-in for
// ssh enters them.
func TestMachinesOverSSH(t *testing.T) {
	if *evening == "" {
		t.Skip("make evening runs it")
	}
	all := machines(t, "ssh", "10.98.0", 4)
	bin := t.TempDir()
	var script strings.Builder
	script.WriteString("#!/bin/bash\nset -eu\nwhile [ \"$1\" = -o ]; do shift 2; done\nhost=$1\nshift\ncase $host in\n")
	var hosts []string
	for _, m := range all {
		fmt.Fprintf(&script, "root@%s) exec %s chroot %s /bin/sh -c \"$*\" ;;\n", m.ip, strings.Join(m.enter, " "), m.root)
		hosts = append(hosts, m.ip)
	}
	if err := os.WriteFile(filepath.Join(bin, "ssh"), []byte(script.String()+"esac\n"), 0o755); err != nil { //nolint:gosec // it is run
		t.Fatal(err)
	}
	t.Setenv("PATH", bin+":"+os.Getenv("PATH"))
	t.Setenv("NAME", "Harbour")
	step := stepper(t)
	order := func(hosts []string, args ...string) (string, error) {
		c := exec.Command("ssh/machines.sh", args...)
		c.Env = append(os.Environ(), "HOSTS="+strings.Join(hosts, " "))
		out, err := c.CombinedOutput()
		return string(out), err
	}
	must := func(hosts []string, args ...string) string {
		t.Helper()
		out, err := order(hosts, args...)
		if err != nil {
			t.Fatalf("machines.sh %v: %v\n%s", args, err, out)
		}
		return out
	}
	must(hosts[:3], "install", *evening+"/voxeld.deb")
	step("three machines are one world")
	if out := must(hosts, "install", *evening+"/voxeld.deb"); strings.Count(out, "runs already") != 3 {
		t.Errorf("nodes that run were installed again:\n%s", out)
	}
	worlds := map[string]bool{}
	for _, m := range all {
		var s struct {
			World string `json:"world"`
			ID    string `json:"world_id"`
			Peers int    `json:"peers"`
		}
		if err := json.Unmarshal([]byte(m.sh("voxeld status --json")), &s); err != nil {
			t.Fatal(err)
		}
		if worlds[s.ID] = true; s.World != "Harbour" || s.Peers != 3 {
			t.Errorf("%s is in %s with %d others", m.ip, s.World, s.Peers)
		}
	}
	if len(worlds) != 1 {
		t.Errorf("the machines have the worlds %v", worlds)
	}
	step("a fourth has joined")
	must(hosts, "upgrade", *evening+"/next.deb")
	if out := must(hosts, "run", "voxeld", "--version"); strings.Count(out, "voxeld version next ") != len(hosts) {
		t.Errorf("not all are upgraded:\n%s", out)
	}
	step("all are upgraded")
	all[0].sh("systemctl stop voxeld && rm -r /var/lib/voxeld/*")
	if out, err := order(hosts, "install", *evening+"/next.deb"); err == nil || !strings.Contains(out, "has a world") {
		t.Errorf("the first machine lost its disk, and gets another world:\n%s", out)
	}
}

// openThroughCaddy runs Caddy on the machine, with deploy/proxy/Caddyfile and an authority of its own, and opens the
// page and its WebSocket from another one.
func openThroughCaddy(t *testing.T, m *machine) {
	t.Helper()
	dir := t.TempDir()
	file := filepath.Join(dir, "Caddyfile")
	if err := os.WriteFile(file, []byte("{\n\tlocal_certs\n\tskip_install_trust\n\tadmin off\n}\n"+read(t, "proxy/Caddyfile")), 0o600); err != nil {
		t.Fatal(err)
	}
	caddy := m.start("caddy", "run", "--adapter", "caddyfile", "--config", file)
	caddy.Env = append(os.Environ(), "XDG_DATA_HOME="+dir, "XDG_CONFIG_HOME="+dir, "HOME="+dir)
	background(t, caddy)
	authority := x509.NewCertPool()
	client := &http.Client{Transport: &http.Transport{
		TLSClientConfig: &tls.Config{RootCAs: authority},
		DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, network, m.ip+":443")
		},
	}}
	eventually(t, "the page opens through Caddy", func() bool {
		pem, err := os.ReadFile(filepath.Join(dir, "caddy/pki/authorities/local/root.crt"))
		if err != nil || !authority.AppendCertsFromPEM(pem) {
			return false
		}
		answer, err := client.Get("https://a.example.org/")
		if err != nil {
			return false
		}
		defer answer.Body.Close()
		page, err := io.ReadAll(answer.Body)
		return err == nil && answer.StatusCode == http.StatusOK && strings.Contains(string(page), "<html") &&
			answer.Header.Get("Content-Security-Policy") != "" && answer.Header.Get("Strict-Transport-Security") != ""
	})
	socket, _, err := websocket.Dial(t.Context(), "wss://a.example.org/ws", &websocket.DialOptions{HTTPClient: client}) //nolint:bodyclose // it is closed with the socket
	if err != nil {
		t.Fatalf("WebSocket through Caddy: %v", err)
	}
	socket.CloseNow()
}

// startPrometheus runs Prometheus with the files of deploy/prometheus, and returns its URL.
func startPrometheus(t *testing.T, all []*machine) string {
	t.Helper()
	dir := t.TempDir()
	config := read(t, "prometheus/prometheus.yml")
	for i, m := range all {
		config = strings.Replace(config, fmt.Sprintf("node-%c:9102", 'a'+i), m.ip+":9102", 1)
	}
	if err := os.WriteFile(filepath.Join(dir, "prometheus.yml"), []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	host(t, "cp", "prometheus/alerts.yml", dir)
	background(t, exec.Command("prometheus", "--config.file="+dir+"/prometheus.yml", "--storage.tsdb.path="+dir+"/data", "--web.listen-address=127.0.0.1:9090"))
	return "http://127.0.0.1:9090"
}

// eventful matches queries that have no data before an event which an evening may not bring, such as a player who moves
// too fast. The tests in deploy/monitoring make all of these events.
var eventful = regexp.MustCompile(`voxeld_(sessions_moved|move_corrections|interaction_refusals|region_member_changes|scrubs|chat_lines)_total|` +
	`voxeld_dht_lookup_|voxeld_backup_interval_seconds|voxeld_tls_certificate_expiry`)

// everyPanelHasData waits until Prometheus answers each query of the dashboards in grafana/dashboards.
func everyPanelHasData(t *testing.T, prometheus string) {
	t.Helper()
	// Grafana's variables, with values that a reader would choose.
	variables := strings.NewReplacer("$__rate_interval", "15s", "$__interval", "15s", "$__range", "1m", "${job}", "voxeld", "$job", "voxeld",
		"${instance}", ".+", "$instance", ".+")
	files, err := filepath.Glob("grafana/dashboards/*.json")
	if err != nil || len(files) == 0 {
		t.Fatalf("no dashboards: %v", err)
	}
	missing := make(map[string]string) // query -> dashboard
	for _, f := range files {
		for _, found := range regexp.MustCompile(`"expr": ("(?:[^"\\]|\\.)*")`).FindAllStringSubmatch(read(t, f), -1) {
			expression, err := strconv.Unquote(found[1])
			if err != nil {
				t.Fatalf("%s: %s: %v", f, found[1], err)
			}
			if !eventful.MatchString(expression) {
				missing[variables.Replace(expression)] = f
			}
		}
	}
	total := len(missing)
	defer func() {
		for expression, f := range missing {
			t.Logf("%s: no data for %s", f, expression)
		}
	}()
	eventually(t, "every panel has data", func() bool {
		for expression := range missing {
			if v := query(t, prometheus, expression); v != "" && v != "NaN" {
				delete(missing, expression)
			}
		}
		return len(missing) == 0
	})
	t.Logf("%d queries have data", total)
}

// query returns the value of a PromQL expression; "" while there is none.
func query(t *testing.T, prometheus, expression string) string {
	t.Helper()
	response, err := http.Get(prometheus + "/api/v1/query?query=" + url.QueryEscape(expression))
	if err != nil {
		return ""
	}
	defer response.Body.Close()
	var answer struct {
		Data struct{ Result []struct{ Value [2]any } }
	}
	if err := json.NewDecoder(response.Body).Decode(&answer); err != nil || len(answer.Data.Result) == 0 {
		return ""
	}
	return fmt.Sprint(answer.Data.Result[0].Value[1])
}
