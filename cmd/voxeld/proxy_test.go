package main

import (
	"context"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// The examples in deploy/proxy work with the real programs: page, session, and the player's own address for the limits.
func TestProxies(t *testing.T) {
	for name, c := range map[string]struct {
		program, debianPackage, example string
		adapt                           func(example, dir, address, cert, key string) string
		args                            func(file, dir string) []string
	}{
		"Caddy": {
			"caddy", "caddy", "Caddyfile",
			func(example, _, address, cert, key string) string {
				return "{\n\tadmin off\n\tauto_https disable_redirects\n}\n" +
					strings.Replace(example, "a.example.org {", "https://a.example.org:8443 {\n\tbind "+address+"\n\ttls "+cert+" "+key, 1)
			},
			func(file, _ string) []string { return []string{"run", "--adapter", "caddyfile", "--config", file} },
		},
		"nginx": {
			"nginx", "nginx-light", "nginx.conf",
			func(example, dir, address, cert, key string) string {
				example = strings.NewReplacer(
					"listen 80;", "listen "+address+":8081;", "listen 443 ", "listen "+address+":8443 ",
					"/etc/letsencrypt/live/a.example.org/fullchain.pem", cert, "/etc/letsencrypt/live/a.example.org/privkey.pem", key,
				).Replace(example)
				main := "daemon off;\nmaster_process off;\npid DIR/pid;\nerror_log stderr;\nevents {}\nhttp {\naccess_log off;\n" +
					"client_body_temp_path DIR/body;\nproxy_temp_path DIR/proxy;\nfastcgi_temp_path DIR/fastcgi;\n" +
					"uwsgi_temp_path DIR/uwsgi;\nscgi_temp_path DIR/scgi;\n"
				return strings.ReplaceAll(main, "DIR", dir) + example + "}\n"
			},
			func(file, dir string) []string { return []string{"-e", "stderr", "-p", dir, "-c", file} },
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if _, err := exec.LookPath(c.program); err != nil {
				t.Skipf("%s is not installed (Debian: %s)", c.program, c.debianPackage)
			}
			example, err := os.ReadFile("../../deploy/proxy/" + c.example)
			if err != nil {
				t.Fatal(err)
			}
			ca, dir, ip := newAuthority(t), t.TempDir(), takeAddress(t)
			cert, key, file := filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem"), filepath.Join(dir, c.example)
			ca.issue(cert, key, ip, time.Now().Add(time.Hour))
			d := startAt(t, ip, nil, "--trusted-proxy", "127.0.0.1", "--advertise-http", "https://a.example.org:8443", "--sessions-per-address", "1")
			adapted := c.adapt(strings.ReplaceAll(string(example), "127.0.0.1:8080", d.HTTP), dir, ip, cert, key)
			if err := os.WriteFile(file, []byte(adapted), 0o600); err != nil {
				t.Fatal(err)
			}
			runProgram(t, []string{"HOME=" + dir, "XDG_DATA_HOME=" + dir, "XDG_CONFIG_HOME=" + dir}, c.program, c.args(file, dir)...)

			client := browser(ca.pool, ip)
			eventually(t, c.program+" serves", patience, func() bool {
				response, err := client.Get("https://a.example.org:8443/healthz")
				if err != nil {
					return false
				}
				response.Body.Close()
				return response.StatusCode == http.StatusOK
			})
			page := open(t, client, "https://a.example.org:8443/")
			for _, header := range []string{"Content-Security-Policy", "Strict-Transport-Security", "Referrer-Policy"} {
				if page.status != http.StatusOK || page.header.Get(header) == "" {
					t.Errorf("%d, and no %s", page.status, header)
				}
			}

			// Players on loopback are not limited, but their address is known. Each pretends to be somebody else.
			for i, from := range []string{"127.77.0.5", "127.77.0.6"} {
				forged := http.Header{"X-Forwarded-For": {"203.0.113.7"}}
				first, status := welcome(t, dialingFrom(client, ip, from), "wss://a.example.org:8443/ws", "ann"+string(rune('a'+i)), forged)
				if !strings.HasPrefix(first, `{"type":"welcome"`) {
					t.Fatalf("%d: %.100s", status, first)
				}
				eventually(t, "the node sees "+from, patience, func() bool { return strings.Contains(d.Output(), "remote="+from+":0") })
			}
			outward := outwardAddress()
			if outward == "127.0.0.1" {
				t.Skip("this machine has no address but loopback, which is not limited")
			}
			for i, want := range []string{`"welcome"`, `"full"`} {
				first, _ := welcome(t, dialingFrom(client, ip, outward), "wss://a.example.org:8443/ws", "bob"+string(rune('a'+i)), nil)
				if !strings.Contains(first, want) {
					t.Errorf("player %d of %s: %.100s, want %s", i+1, outward, first, want)
				}
			}
		})
	}
}

// dialingFrom returns the client with another address of its own.
func dialingFrom(client *http.Client, ip, from string) *http.Client {
	transport := client.Transport.(*http.Transport).Clone()
	transport.DialContext = func(ctx context.Context, network, address string) (net.Conn, error) {
		_, port, err := net.SplitHostPort(address)
		if err != nil {
			return nil, err
		}
		dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}}
		return dialer.DialContext(ctx, network, net.JoinHostPort(ip, port))
	}
	return &http.Client{Transport: transport, Timeout: client.Timeout}
}
