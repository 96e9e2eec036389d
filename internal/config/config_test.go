package config

import (
	"flag"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

var update = flag.Bool("update", false, "write the option table of docs/configuration.md")

const docs = "../../docs/configuration.md"

func TestDefaults(t *testing.T) {
	want := Config{
		Storage: Storage{DataDir: "data"},
		Network: Network{
			Listen:   []string{"/ip4/0.0.0.0/tcp/4001", "/ip4/0.0.0.0/udp/4001/quic-v1", "/ip6/::/tcp/4001", "/ip6/::/udp/4001/quic-v1"},
			Announce: []string{}, Game: ":4002", HTTP: ":8080", WebOrigin: []string{},
		},
		HTTPS: HTTPS{
			ACMEDomain: []string{}, ACMEDirectory: "https://acme-v02.api.letsencrypt.org/directory", TrustedProxy: []string{},
		},
		World:       World{Join: []string{}, Placement: "walkad", Overlay: "relay"},
		Replication: Replication{Replicas: 3, ReplaceAfter: time.Minute, ScrubEvery: time.Hour},
		Dividing:    Dividing{Split: true, SplitTick: 60, SplitPlayers: 1000, SplitEdits: 2000, SplitStored: 200_000, MergeAfter: 5 * time.Minute},
		History:     History{HistoryKeep: 720 * time.Hour, HistorySize: 8 << 20},
		Backups:     Backups{BackupKeep: 7},
		Players:     Players{ViewDistance: 12, Guests: true, Original: true, Map: true, PublicMap: true, SessionsPerAddress: 64, MotionBudget: 19_200, EditsPerSecond: 20},
		Monitoring:  Monitoring{Metrics: "127.0.0.1:9102"},
		Logging:     Logging{LogLevel: "info", LogFormat: "text"},
	}
	if got := defaults(t); !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
	if got := defaults(t).AdminSocket(); got != filepath.Join("data", "admin.sock") {
		t.Errorf("admin socket: %s", got)
	}
}

// Fields of Config and Options correspond one to one, in the same order and with the same types.
func TestOptionsAreTheFields(t *testing.T) {
	kinds := map[Kind]reflect.Type{
		Text: reflect.TypeFor[string](), List: reflect.TypeFor[[]string](), Number: reflect.TypeFor[int](),
		Switch: reflect.TypeFor[bool](), Duration: reflect.TypeFor[time.Duration](), Size: reflect.TypeFor[int64](),
		Address: reflect.TypeFor[string](), URL: reflect.TypeFor[string](), Path: reflect.TypeFor[string](), Word: reflect.TypeFor[string](),
	}
	fields := slices.DeleteFunc(reflect.VisibleFields(reflect.TypeFor[Config]()), func(f reflect.StructField) bool { return f.Anonymous })
	if len(fields) != len(Options) {
		t.Fatalf("%d fields, %d options", len(fields), len(Options))
	}
	for i, field := range fields {
		o := Options[i]
		if (o.Kind == Word) != (len(o.Words) > 0) {
			t.Errorf("%s: the words of a Word are missing, or it is none", o.Name)
		}
		if field.Tag.Get("toml") != o.Key() || kinds[o.Kind] != field.Type {
			t.Errorf("field %d is %s %s `%s`, option %s of kind %d", i, field.Name, field.Type, field.Tag, o.Key(), o.Kind)
		}
		if !regexp.MustCompile(`^[a-z]+(-[a-z]+)*$`).MatchString(o.Name) || o.Usage == "" {
			t.Errorf("option %+v", o)
		}
	}
}

func write(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "voxeld.toml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestLaterSourcesWin(t *testing.T) {
	file := write(t, `
		sessions_per_address = 5
		game = ":1"
		http = ":1"
		guests = false
		listen = ["/ip4/127.0.0.1/tcp/1"]
		metrics = ""
	`)
	c, err := Load(Sources{
		File: file,
		Environ: []string{
			"VOXELD_GAME=:2", "VOXELD_HTTP=:2", "HOME=/root", "VOXELD_VIEW_DISTANCE=4", "XVOXELD_VIEW=9",
			"VOXELD_ANNOUNCE=/ip4/192.0.2.1/tcp/2, /dns4/a.example/tcp/2,", "VOXELD_GUESTS=yes",
			"VOXELD_SERVICE_HOST=10.0.0.1", "VOXELD_PORT_4001_TCP_ADDR=10.0.0.1", "VOXELD_PORT=tcp://10.0.0.1:4001",
		},
		Flags: map[string][]string{"http": {":3", ":4"}, "announce": {"/ip4/192.0.2.3/tcp/3", "/ip4/192.0.2.4/tcp/4"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	want := defaults(t)
	want.SessionsPerAddress, want.Listen, want.Metrics = 5, []string{"/ip4/127.0.0.1/tcp/1"}, ""
	want.Game, want.ViewDistance = ":2", 4
	want.HTTP, want.Announce = ":4", []string{"/ip4/192.0.2.3/tcp/3", "/ip4/192.0.2.4/tcp/4"}
	if !reflect.DeepEqual(c, want) {
		t.Errorf("got  %+v\nwant %+v", c, want)
	}

	c, err = Load(Sources{Environ: []string{"VOXELD_CONFIG=" + file}})
	if err != nil || c.SessionsPerAddress != 5 || c.Guests {
		t.Errorf("with VOXELD_CONFIG: %+v, %v", c, err)
	}
	other := write(t, "sessions_per_address = 1")
	if c, err = Load(Sources{File: other, Environ: []string{"VOXELD_CONFIG=" + file}}); err != nil || c.SessionsPerAddress != 1 || !c.Guests {
		t.Errorf("--config beside VOXELD_CONFIG: %+v, %v", c, err)
	}
}

// The file of an installed package is for commands that name neither a file nor a data directory.
func TestDefaultFile(t *testing.T) {
	preset := write(t, "sessions_per_address = 7")
	for name, test := range map[string]struct {
		sources Sources
		read    bool
	}{
		"nothing is named":         {Sources{Default: preset}, true},
		"it does not exist":        {Sources{Default: preset + "-"}, false},
		"--config":                 {Sources{Default: preset, File: write(t, "guests = false")}, false},
		"VOXELD_CONFIG":            {Sources{Default: preset, Environ: []string{"VOXELD_CONFIG=" + write(t, "guests = false")}}, false},
		"--data-dir":               {Sources{Default: preset, Flags: map[string][]string{"data-dir": {"data"}}}, false},
		"VOXELD_DATA_DIR":          {Sources{Default: preset, Environ: []string{"VOXELD_DATA_DIR=data"}}, false},
		"a flag of another option": {Sources{Default: preset, Flags: map[string][]string{"http": {":1"}}}, true},
	} {
		c, err := Load(test.sources)
		if err != nil || (c.SessionsPerAddress == 7) != test.read {
			t.Errorf("%s: sessions_per_address = %d, %v; read: want %v", name, c.SessionsPerAddress, err, test.read)
		}
	}
}

func TestClearErrors(t *testing.T) {
	peer := "/p2p/12D3KooWDpJ7As7BWAwRMfu1VU2WCqNjvq387JEYKDBj4kx6nXTN"
	for _, c := range []struct {
		toml  string
		env   []string
		flags map[string][]string
		want  []string // parts of the error
	}{
		{toml: "view_distanc = 3", want: []string{"no option view_distanc (did you mean view_distance?)"}},
		{toml: "data-dir = 'x'", want: []string{"data-dir (did you mean data_dir?)"}},
		{toml: "xyzzy = 3", want: []string{"no option xyzzy"}},
		{toml: "[log]\nlevel = 'info'", want: []string{"no option log"}},
		{toml: "sessions_per_address = ", want: []string{".toml:1:"}},
		{toml: "guests = true\nguests = true", want: []string{".toml"}},
		{toml: "sessions_per_address = '3'", want: []string{"sessions_per_address: write a whole number without quotes"}},
		{toml: "sessions_per_address = 3.0", want: []string{"sessions_per_address: write a whole number"}},
		{toml: "guests = 1", want: []string{"guests: write true or false"}},
		{toml: "game = 4002", want: []string{"game: write a text in quotes"}},
		{toml: "join = '/ip4'", want: []string{`join: write a list of texts: ["/ip4"]`}},
		{toml: "join = [1]", want: []string{"join: write a list of texts: 1 is none"}},
		{env: []string{"VOXELD_DATADIR=x"}, want: []string{"VOXELD_DATADIR (did you mean VOXELD_DATA_DIR?)", "unset it"}},
		{env: []string{"VOXELD_SESSIONS_PER_ADDRESS=three"}, want: []string{`VOXELD_SESSIONS_PER_ADDRESS: "three" is not a whole number`}},
		{env: []string{"VOXELD_GUESTS=maybe"}, want: []string{`VOXELD_GUESTS: "maybe" is neither true nor false`}},
		{env: []string{"VOXELD_CONFIG=/nowhere/voxeld.toml"}, want: []string{"read configuration", "/nowhere/voxeld.toml"}},
		{flags: map[string][]string{"view-distance": {"18"}}, want: []string{"--view-distance: 18 is out of range: choose 1 to 12"}},
		{flags: map[string][]string{"view-distance": {"0"}}, want: []string{"--view-distance: 0 is out of range"}},
		{flags: map[string][]string{"view-distance": {"x"}}, want: []string{"--view-distance: "}},
		{flags: map[string][]string{"nonsense": {"x"}}, want: []string{"no flag --nonsense"}},
		{toml: "view_distance = 13\nsessions_per_address = 0", want: []string{"view_distance: 13", "sessions_per_address: 0"}},
		{toml: "replace_after = '5'", want: []string{".toml: replace_after: \"5\" is not a duration: write one such as 90s"}},
		{toml: "replace_after = 5", want: []string{"replace_after: write a duration in quotes"}},
		{flags: map[string][]string{"replace-after": {"10ms"}}, want: []string{"--replace-after: 10ms is too short: choose at least 1s"}},
		{env: []string{"VOXELD_SCRUB_EVERY=10ms"}, want: []string{"VOXELD_SCRUB_EVERY: 10ms is neither 0 nor a duration of at least 1s"}},
		{flags: map[string][]string{"motion-budget": {"64 florins"}}, want: []string{"--motion-budget: \"64 florins\" is not a size", "64MiB"}},
		{flags: map[string][]string{"motion-budget": {"64MiB"}}, want: []string{"--motion-budget: 67108864 bytes are out of range: choose 1.0 kB to 10 MB"}},
		{toml: "motion_budget = true", want: []string{"motion_budget: write a number of bytes, or a size in quotes"}},
		{
			toml: "guests = 1\nview_distanc = 2", env: []string{"VOXELD_REPLICAS=9"}, flags: map[string][]string{"http": {"8080"}},
			want: []string{"guests: write true", "no option view_distanc", "VOXELD_REPLICAS: 9 is out of range", "--http: \"8080\" is not host:port"},
		},
		{toml: "overlay = 'psence'", want: []string{`overlay: "psence" is not known: choose one of relay, psense, areacast (did you mean psense?)`}},
		{toml: "placement = 'walked'", want: []string{`placement: "walked" is not known: choose one of walkad, hash (did you mean walkad?)`}},
		{toml: "log_level = 'verbose'\nlog_format = 'xml'", want: []string{"log_level: ", "log_format: "}},
		{toml: "data_dir = ''", want: []string{"data_dir: is empty"}},
		{toml: "data_dir = '" + strings.Repeat("d", 100) + "'", want: []string{"admin: ", "shorter"}},
		{toml: "listen = []", want: []string{"listen: is empty"}},
		{toml: "listen = ['0.0.0.0:4001']", want: []string{"listen: ", "is not a multiaddr", "/ip4/0.0.0.0/tcp/4001"}},
		{toml: "listen = ['/ip4/0.0.0.0']", want: []string{"needs a host and a port"}},
		{toml: "listen = ['/ip5/0.0.0.0/tcp/1']", want: []string{"/ip5 is not known (did you mean ip4?)"}},
		{toml: "listen = ['/ip4/300.0.0.0/tcp/1']", want: []string{`"300.0.0.0" is no ip4 address`}},
		{toml: "listen = ['/ip4/::/tcp/1']", want: []string{`"::" is no ip4 address`}},
		{toml: "listen = ['/ip4/0.0.0.0/tcp/65536']", want: []string{`"65536" is no port`}},
		{toml: "listen = ['/ip4/0.0.0.0/udp/1']", want: []string{"add /quic-v1"}},
		{toml: "listen = ['/ip4/0.0.0.0/tpc/1']", want: []string{"/tpc is not known (did you mean tcp?)"}},
		{toml: "listen = ['/dns/a/tcp/1']", want: []string{"listens at IP addresses"}},
		{toml: "listen = ['/ip4/0.0.0.0/tcp/1" + peer + "']", want: []string{"leave /p2p/"}},
		{toml: "announce = ['/ip4/0.0.0.0/tcp/1']", want: []string{"announce: ", "nobody can dial 0.0.0.0"}},
		{toml: "announce = ['/dns//tcp/1']", want: []string{"has no name"}},
		{toml: "game = '4002'\nhttp = 'a:b'\nmetrics = 'x'", want: []string{"game: ", "http: ", "metrics: ", "is not host:port", `"b" is no port`}},
		{toml: "advertise_game = ':4002'", want: []string{"advertise_game: ", "name the host"}},
		{toml: "advertise_game = '0.0.0.0:4002'", want: []string{"advertise_game: ", "name the host"}},
		{toml: "advertise_game = 'a.example:0'", want: []string{"advertise_game: ", "port 0"}},
		{toml: "web_origin = ['http://a.example:8080', 'https://b.example/']", want: []string{"web_origin: ", "has a path"}},
		{toml: "web_origin = ['a.example']", want: []string{"web_origin: ", "is not a URL"}},
		{toml: "advertise_http = 'a.example:8080'", want: []string{"advertise_http: ", "is not a URL", "https://a.example.org"}},
		{toml: "advertise_http = 'ws://a.example/'", want: []string{"advertise_http: ", "is not a URL"}},
		{toml: "advertise_http = 'http://0.0.0.0:8080'", want: []string{"advertise_http: ", "name the host"}},
		{toml: "advertise_http = 'http://:8080'", want: []string{"advertise_http: ", "name the host"}},
		{toml: "advertise_http = 'http://ann:x@a.example'", want: []string{"advertise_http: ", "more than scheme"}},
		{toml: "advertise_http = 'http://a.example/?x'", want: []string{"advertise_http: ", "more than scheme"}},
		{toml: "advertise_http = 'http://ä.example/'", want: []string{"advertise_http: ", "character"}},
		{toml: "advertise_http = 'http://a/" + strings.Repeat("x", maxURL) + "'", want: []string{"advertise_http: ", "bytes"}},
		{toml: "classicube_list = 'https://a.example'", want: []string{"classicube_list: is set without classicube"}},
		{toml: "tls_cert = 'a.pem'", want: []string{"tls_key: is missing"}},
		{toml: "tls_key = 'a.pem'", want: []string{"tls_cert: is missing"}},
		{toml: "tls_cert = 'a'\ntls_key = 'b'\nacme_domain = ['a.example']", want: []string{"acme_domain: is set beside tls_cert"}},
		{toml: "acme_domain = ['*.example.org', 'localhost', '192.0.2.1', 'A.example.org']", want: []string{
			`"*.example.org" is not a domain`, `"localhost" is not`, `"192.0.2.1" is not`, `"A.example.org" is not`,
		}},
		{toml: "acme_email = 'ann'\nacme_directory = 'http://a.example'", want: []string{"acme_email: ", "acme_directory: "}},
		{toml: "http_redirect = ':80'", want: []string{"http_redirect: is set, but the node has no certificate"}},
		{toml: "http_redirect = '80'\nacme_domain = ['a.example']", want: []string{`http_redirect: "80" is not host:port`}},
		{toml: "trusted_proxy = ['10.0.0.0/33']", want: []string{`trusted_proxy: "10.0.0.0/33" is neither an address nor a network`}},
		{toml: "join = ['/ip4/192.0.2.1/tcp/4001/p2p/12D3']", want: []string{"join: ", "peer id", "voxeld invite"}},
		{toml: "join = ['/ip4/192.0.2.1/tcp/0" + peer + "']", want: []string{"join: ", "port 0"}},
		{toml: "join = ['192.0.2.1']", want: []string{"join: join token: "}},
		{
			flags: map[string][]string{"join": {Token{World: "aa", Addrs: sampleToken.Addrs}.String(), Token{World: "bb", Addrs: sampleToken.Addrs}.String()}},
			want:  []string{"--join: the tokens are of two worlds, aa and bb"},
		},
	} {
		s := Sources{Environ: c.env, Flags: c.flags}
		if c.toml != "" {
			s.File = write(t, c.toml)
		}
		got, err := Load(s)
		if err == nil {
			t.Errorf("%q %q %q: accepted as %+v", c.toml, c.env, c.flags, got)
			continue
		}
		for _, part := range c.want {
			if !strings.Contains(err.Error(), part) {
				t.Errorf("%q %q %q: %q; want it to say %q", c.toml, c.env, c.flags, err, part)
			}
		}
	}
}

// Each setting names the source that won.
func TestOrigins(t *testing.T) {
	file := write(t, "http = ':1'\nguests = false\nmotion_budget = '20kB'\nscrub_every = '0'")
	before, err := Read(Sources{File: file, Environ: []string{"VOXELD_HTTP=:2", "VOXELD_GAME=:2"}, Flags: map[string][]string{"game": {":3"}}})
	if err != nil {
		t.Fatal(err)
	}
	got := make(map[string]string)
	for _, s := range before.All {
		if s.Source != FromDefault {
			got[s.Option.Name] = fmt.Sprint(s.Value, " ", s.Source, " ", s.Origin)
		}
	}
	want := map[string]string{
		"http": ":2 environment VOXELD_HTTP", "game": ":3 flag --game", "guests": "false file " + file,
		"motion-budget": "20000 file " + file, "scrub-every": "0s file " + file,
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %v\nwant %v", got, want)
	}
	after, err := Read(Sources{File: file, Flags: map[string][]string{"game": {":3"}, "listen": {"/ip4/127.0.0.1/tcp/1"}}})
	if err != nil {
		t.Fatal(err)
	}
	var changed []string
	for _, i := range before.Changed(after) {
		changed = append(changed, Options[i].Name)
	}
	if want := []string{"listen", "http"}; !slices.Equal(changed, want) {
		t.Errorf("changed: %v, want %v", changed, want)
	}
}

// The sample names every option with its default, and is a valid file with and without its comment signs.
func TestSample(t *testing.T) {
	sample := Sample()
	active := regexp.MustCompile(`(?m)^#([a-z_]+ = )`).ReplaceAllString(sample, "$1")
	for _, file := range []string{sample, active} {
		if got, err := Load(Sources{File: write(t, file)}); err != nil || !reflect.DeepEqual(got, defaults(t)) {
			t.Errorf("%v: %+v\n%s", err, got, file)
		}
	}
	settings, err := Read(Sources{File: write(t, active)})
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range settings.All {
		if s.Source != FromFile {
			t.Errorf("the sample lacks %s", s.Option.Name)
		}
	}
}

func TestBootstrap(t *testing.T) {
	lone := "/ip4/192.0.2.9/tcp/4001/p2p/12D3KooWDpJ7As7BWAwRMfu1VU2WCqNjvq387JEYKDBj4kx6nXTN"
	c, err := Load(Sources{Flags: map[string][]string{"join": {lone, sampleText}}})
	if err != nil {
		t.Fatal(err)
	}
	b, err := c.Bootstrap()
	if want := append([]string{lone}, sampleToken.Addrs...); err != nil || b.World != sampleToken.World || !slices.Equal(b.Addrs, want) {
		t.Errorf("%+v, %v", b, err)
	}
}

func TestLevel(t *testing.T) {
	for word, want := range map[string]slog.Level{
		"debug": slog.LevelDebug, "info": slog.LevelInfo, "warn": slog.LevelWarn, "error": slog.LevelError,
	} {
		if got := (Config{Logging: Logging{LogLevel: word}}).Level(); got != want {
			t.Errorf("%s is %v", word, got)
		}
	}
}

func TestDidYouMean(t *testing.T) {
	for _, c := range []struct{ word, want string }{
		{"replicas", "replicas"}, {"repilcas", "replicas"}, {"replcas", "replicas"}, {"zzz", ""}, {"", ""},
	} {
		got := DidYouMean(c.word, []string{"listen", "replicas", "guests"})
		if want := " (did you mean " + c.want + "?)"; got != want && (got != "" || c.want != "") {
			t.Errorf("%s: %s", c.word, got)
		}
	}
}

// kindNames are the names of the kinds in docs/configuration.md, of those that a default does not show.
var kindNames = map[Kind]string{Text: "text", List: "list", Address: "host:port", URL: "URL", Path: "path"}

// optionTable returns the tables of docs/configuration.md.
func optionTable() string {
	var b strings.Builder
	for _, g := range Groups {
		fmt.Fprintf(&b, "\n### %s\n\n| key | default | |\n|---|---|---|\n", g.Name)
		for _, o := range g.Options {
			byDefault, reload := "*"+kindNames[o.Kind]+"*", ""
			if o.Default != "" {
				byDefault = "`" + strings.ReplaceAll(o.Default, ",", "`, `") + "`"
			}
			if o.Kind == Word {
				others := slices.DeleteFunc(slices.Clone(o.Words), func(w string) bool { return w == o.Default })
				byDefault += " (or `" + strings.Join(others, "`, `") + "`)"
			}
			if o.Reload {
				reload = " *(reload)*"
			}
			fmt.Fprintf(&b, "| `%s` | %s | %s%s |\n", o.Key(), byDefault, o.Usage, reload)
		}
	}
	return b.String() + "\n"
}

func TestDocumentation(t *testing.T) {
	page, err := os.ReadFile(docs)
	if err != nil {
		t.Fatal(err)
	}
	const begin, end = "<!-- options: written by go test ./internal/config -update -->\n", "<!-- end of options -->"
	before, rest, ok := strings.Cut(string(page), begin)
	table, after, ok2 := strings.Cut(rest, end)
	if !ok || !ok2 {
		t.Fatalf("%s lacks its markers", docs)
	}
	if *update {
		if err := os.WriteFile(docs, []byte(before+begin+optionTable()+end+after), 0o644); err != nil {
			t.Fatal(err)
		}
	} else if table != optionTable() {
		t.Errorf("%s is out of date: run go test ./internal/config -update", docs)
	}
}

// defaults returns the configuration without a file, variables or flags.
func defaults(t *testing.T) Config {
	t.Helper()
	c, err := Load(Sources{})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestProxies(t *testing.T) {
	c, err := Load(Sources{Flags: map[string][]string{"trusted-proxy": {"192.0.2.1", "10.1.2.3/8,2001:db8::1"}}})
	if err != nil {
		t.Fatal(err)
	}
	if got, err := c.Proxies(); err != nil || fmt.Sprint(got) != "[192.0.2.1/32 10.0.0.0/8 2001:db8::1/128]" {
		t.Errorf("%v, %v", got, err)
	}
}
