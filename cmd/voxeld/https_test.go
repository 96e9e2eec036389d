package main

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"io"
	"math/big"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"

	kit "github.com/voxelpopuli/voxeld/test/testkit/daemon"
	"github.com/voxelpopuli/voxeld/test/testkit/process"
)

const nodeName = "a.example.org"

// authority issues certificates for tests.
type authority struct {
	t      *testing.T
	key    *ecdsa.PrivateKey
	cert   *x509.Certificate
	pool   *x509.CertPool
	file   string // its certificate
	serial int64
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	a := &authority{t: t, pool: x509.NewCertPool(), file: filepath.Join(t.TempDir(), "ca.pem")}
	a.key = a.newKey()
	a.cert = &x509.Certificate{Subject: pkix.Name{CommonName: "test authority"}, IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign}
	der := a.sign(a.cert, a.key)
	var err error
	if a.cert, err = x509.ParseCertificate(der); err != nil {
		t.Fatal(err)
	}
	a.pool.AddCert(a.cert)
	a.write(a.file, "CERTIFICATE", der)
	return a
}

func (a *authority) newKey() *ecdsa.PrivateKey {
	a.t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		a.t.Fatal(err)
	}
	return key
}

func (a *authority) sign(c *x509.Certificate, key *ecdsa.PrivateKey) (der []byte) {
	a.t.Helper()
	a.serial++
	c.SerialNumber, c.NotBefore = big.NewInt(a.serial), time.Now().Add(-time.Hour)
	if c.NotAfter.IsZero() {
		c.NotAfter = time.Now().Add(24 * time.Hour)
	}
	der, err := x509.CreateCertificate(rand.Reader, c, a.cert, &key.PublicKey, a.key)
	if err != nil {
		a.t.Fatal(err)
	}
	return der
}

func (a *authority) write(file, kind string, data []byte) {
	a.t.Helper()
	if err := os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: data}), 0o600); err != nil {
		a.t.Fatal(err)
	}
}

// issue writes a certificate for nodeName and an address, with its key.
func (a *authority) issue(certFile, keyFile, ip string, expires time.Time) {
	a.t.Helper()
	key := a.newKey()
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		a.t.Fatal(err)
	}
	a.write(keyFile, "EC PRIVATE KEY", der)
	a.write(certFile, "CERTIFICATE", a.sign(&x509.Certificate{
		Subject: pkix.Name{CommonName: "node"}, DNSNames: []string{"*.wild.example.org", nodeName},
		IPAddresses: []net.IP{net.ParseIP(ip)}, NotAfter: expires,
	}, key))
}

// browser returns a client that trusts the authorities in the pool, and finds every name at an address.
func browser(pool *x509.CertPool, ip string) *http.Client {
	return &http.Client{
		Transport: &http.Transport{
			TLSClientConfig: &tls.Config{RootCAs: pool},
			DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
				_, port, err := net.SplitHostPort(address)
				if err != nil {
					return nil, err
				}
				return new(net.Dialer).DialContext(ctx, network, net.JoinHostPort(ip, port))
			},
			DisableKeepAlives: true,
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		Timeout:       30 * time.Second,
	}
}

// startAt starts a node at an address.
func startAt(t *testing.T, ip string, env []string, args ...string) *daemon {
	t.Helper()
	d := newDaemon(t, kit.Options{IP: ip, Args: args, Options: process.Options{Env: env}})
	d.init()
	d.start()
	return d
}

// runProgram runs another program until the test ends.
func runProgram(t *testing.T, env []string, program string, args ...string) {
	t.Helper()
	p, err := process.Start(process.Options{Log: filepath.Join(t.TempDir(), program+".log"), Env: env}, program, args...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		p.Kill()
		if t.Failed() {
			t.Logf("%s: %s", program, tail(p.Output(), 40))
		}
	})
}

// answer is the answer to a request, without its body.
type answer struct {
	status int
	header http.Header
	tls    *tls.ConnectionState
}

func open(t *testing.T, client *http.Client, url string) answer {
	t.Helper()
	response, err := client.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	if _, err := io.Copy(io.Discard, response.Body); err != nil {
		t.Fatal(err)
	}
	return answer{response.StatusCode, response.Header, response.TLS}
}

// welcome joins by WebSocket, and returns the session's connection and its first message. If the session is refused
// before it begins, it returns the status instead.
func welcome(t *testing.T, client *http.Client, url, name string, header http.Header) (first string, status int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	ws, response, err := websocket.Dial(ctx, url, &websocket.DialOptions{HTTPClient: client, HTTPHeader: header}) //nolint:bodyclose // the library closes it
	if err != nil {
		if response == nil {
			t.Fatal(err)
		}
		return "", response.StatusCode
	}
	t.Cleanup(func() { ws.CloseNow() })
	ws.SetReadLimit(1 << 20)
	if err := ws.Write(ctx, websocket.MessageText, []byte(`{"type":"join","version":1,"name":"`+name+`","view":1,"encoding":"json"}`)); err != nil {
		t.Fatal(err)
	}
	_, data, err := ws.Read(ctx)
	if err != nil {
		t.Fatal(err)
	}
	return string(data), response.StatusCode
}

func TestHTTPSWithFiles(t *testing.T) {
	t.Parallel()
	ca := newAuthority(t)
	cert, key := filepath.Join(t.TempDir(), "cert.pem"), filepath.Join(t.TempDir(), "key.pem")
	ip := takeAddress(t)
	ca.issue(cert, key, ip, time.Now().Add(48*time.Hour))
	d := startAt(t, ip, nil, "--tls-cert", cert, "--tls-key", key, "--http-redirect", ip+":8081")
	client := browser(ca.pool, d.ip)

	url := "https://" + nodeName + ":8080"
	if d.Status.URL != url || !strings.Contains(d.Output(), url) {
		t.Errorf("the node says that players open %s, want %s", d.Status.URL, url)
	}
	page := open(t, client, url+"/")
	if page.status != http.StatusOK || page.tls.Version != tls.VersionTLS13 || page.header.Get("Strict-Transport-Security") == "" ||
		strings.Contains(page.header.Get("Content-Security-Policy"), " ws:") {
		t.Errorf("%d, TLS %x, %v", page.status, page.tls.Version, page.header)
	}
	if first, _ := welcome(t, client, "wss://"+nodeName+":8080/ws", "ann", nil); !strings.HasPrefix(first, `{"type":"welcome"`) {
		t.Errorf("%.100s", first)
	}
	for version, want := range map[uint16]bool{tls.VersionTLS11: false, tls.VersionTLS12: true} {
		c, err := tls.Dial("tcp", d.HTTP, &tls.Config{RootCAs: ca.pool, MinVersion: tls.VersionTLS10, MaxVersion: version, ServerName: nodeName})
		if (err == nil) != want {
			t.Errorf("TLS %x: %v", version, err)
		}
		if err == nil {
			c.Close()
		}
	}

	moved := open(t, client, "http://"+nodeName+":8081/a?b=c")
	if moved.status != http.StatusPermanentRedirect || moved.header.Get("Location") != url+"/a?b=c" {
		t.Errorf("plain HTTP: %d to %s", moved.status, moved.header.Get("Location"))
	}
	if plain := open(t, client, "http://"+d.HTTP+"/"); plain.status != http.StatusBadRequest {
		t.Errorf("plain HTTP at the port of HTTPS: %d", plain.status)
	}
	path, err := daemonBinary()
	if err != nil {
		t.Fatal(err)
	}
	check := exec.CommandContext(t.Context(), path, "healthcheck")
	check.Env = append(os.Environ(), "VOXELD_HTTP="+d.HTTP, "VOXELD_TLS_CERT="+cert, "VOXELD_TLS_KEY="+key)
	if out, err := check.CombinedOutput(); err != nil {
		t.Errorf("voxeld healthcheck: %v: %s", err, out)
	}

	// A new certificate is used without a restart. While its key is missing, the old one stays.
	serial := page.tls.PeerCertificates[0].SerialNumber
	oldKey, err := os.ReadFile(key)
	if err != nil {
		t.Fatal(err)
	}
	expires := time.Now().Add(72 * time.Hour)
	ca.issue(cert, key, d.ip, expires)
	newKey, err := os.ReadFile(key)
	if err != nil {
		t.Fatal(err)
	}
	for _, step := range []struct {
		key     []byte
		renewed bool
	}{{oldKey, false}, {newKey, true}, {[]byte("damaged"), true}} {
		if err := os.WriteFile(key, step.key, 0o600); err != nil {
			t.Fatal(err)
		}
		served := open(t, client, url+"/healthz").tls.PeerCertificates[0]
		if renewed := served.SerialNumber.Cmp(serial) != 0; renewed != step.renewed {
			t.Errorf("with a key of %d bytes: renewed %t, want %t", len(step.key), renewed, step.renewed)
		}
	}
	if _, errs, code := voxeld(t, "reload", "--data-dir", d.dir); code == 0 || !strings.Contains(errs, "read certificate") {
		t.Errorf("voxeld reload with a damaged key: exit %d: %s", code, errs)
	}
	if got := d.metric("voxeld_tls_certificate_expiry_timestamp_seconds"); int64(got) != expires.Unix() {
		t.Errorf("the certificate expires at %f, want %d", got, expires.Unix())
	}
	if d.metric("voxeld_http_requests_total", "code", "200") == 0 {
		t.Error("no requests are counted")
	}
}

func TestHTTPSRefusesFilesThatCannotBeUsed(t *testing.T) {
	dir := t.TempDir()
	_, errs, code := voxeld(t, "run", "--data-dir", filepath.Join(dir, "never"), "--tls-cert", filepath.Join(dir, "a"), "--tls-key", filepath.Join(dir, "b"))
	if code != exitUsage || !strings.Contains(errs, "read certificate") {
		t.Errorf("exit %d: %s", code, errs)
	}
	if _, err := os.Stat(filepath.Join(dir, "never")); !os.IsNotExist(err) {
		t.Errorf("the data directory was created: %v", err)
	}
}

// pebble starts Let's Encrypt's test server. It finds all names at an address, and its own certificate is from the
// authority. It returns the URL of its directory, and the roots of the certificates that it issues.
func pebble(t *testing.T, ca *authority, target string, httpPort, tlsPort int) (directory string, roots *x509.CertPool) {
	t.Helper()
	for _, program := range []string{"pebble", "pebble-challtestsrv"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skipf("%s is not installed (Debian: pebble)", program)
		}
	}
	ip, dir := takeAddress(t), t.TempDir()
	cert, key := filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	ca.issue(cert, key, ip, time.Now().Add(time.Hour))
	config, err := json.Marshal(map[string]any{"pebble": map[string]any{
		"listenAddress": ip + ":14000", "managementListenAddress": ip + ":15000", "certificate": cert, "privateKey": key,
		"httpPort": httpPort, "tlsPort": tlsPort,
	}})
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "pebble.json")
	if err := os.WriteFile(file, config, 0o600); err != nil {
		t.Fatal(err)
	}
	runProgram(t, nil, "pebble-challtestsrv", "-defaultIPv4", target, "-defaultIPv6", "", "-dns01", ip+":8053", "-management", ip+":8055",
		"-http01", "", "-https01", "", "-tlsalpn01", "")
	runProgram(t, []string{"PEBBLE_VA_NOSLEEP=1"}, "pebble", "-config", file, "-dnsserver", ip+":8053")
	client := browser(ca.pool, ip)
	var root *http.Response
	eventually(t, "pebble serves", patience, func() bool {
		root, err = client.Get("https://" + ip + ":15000/roots/0") //nolint:bodyclose // closed below
		return err == nil
	})
	defer root.Body.Close()
	data, err := io.ReadAll(root.Body)
	if err != nil {
		t.Fatal(err)
	}
	roots = x509.NewCertPool()
	if !roots.AppendCertsFromPEM(data) {
		t.Fatalf("no root in %s", data)
	}
	return "https://" + ip + ":14000/dir", roots
}

// A node obtains a certificate from a real ACME server, by either challenge, keeps it, and still has it after a
// restart.
func TestHTTPSByACME(t *testing.T) {
	for name, c := range map[string]struct {
		redirect          bool
		httpPort, tlsPort int
	}{
		"TLS-ALPN-01": {false, 1, 8080},
		"HTTP-01":     {true, 8081, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ca, ip := newAuthority(t), takeAddress(t)
			directory, roots := pebble(t, ca, ip, c.httpPort, c.tlsPort)
			args := []string{"--acme-domain", nodeName, "--acme-email", "ann@example.org", "--acme-directory", directory}
			if c.redirect {
				args = append(args, "--http-redirect", ip+":8081")
			}
			d := startAt(t, ip, []string{"SSL_CERT_FILE=" + ca.file}, args...)
			url, client := "https://"+nodeName+":8080", browser(roots, d.ip)
			if d.Status.URL != url {
				t.Errorf("players open %s, want %s", d.Status.URL, url)
			}
			serial := func() (serial *big.Int) {
				eventually(t, "a certificate", patience, func() bool {
					response, err := client.Get(url + "/healthz")
					if err != nil {
						return false
					}
					defer response.Body.Close()
					serial = response.TLS.PeerCertificates[0].SerialNumber
					return true
				})
				return serial
			}
			first := serial()
			if first, _ := welcome(t, client, "wss://"+nodeName+":8080/ws", "ann", nil); !strings.HasPrefix(first, `{"type":"welcome"`) {
				t.Errorf("%.100s", first)
			}
			if left := time.Until(time.Unix(int64(d.metric("voxeld_tls_certificate_expiry_timestamp_seconds")), 0)); left < time.Hour {
				t.Errorf("the certificate expires in %v", left)
			}
			if _, err := tls.Dial("tcp", d.HTTP, &tls.Config{RootCAs: roots, ServerName: "other.example.org"}); err == nil {
				t.Error("there is a certificate for another name")
			}
			files, err := filepath.Glob(filepath.Join(d.dir, "acme", "*"))
			if err != nil || len(files) != 2 {
				t.Errorf("files %v (%v), want an account's key and a certificate", files, err)
			}
			for _, file := range append(files, filepath.Join(d.dir, "acme")) {
				if info, err := os.Stat(file); err != nil || info.Mode().Perm()&0o077 != 0 {
					t.Errorf("%s: %v (%v)", file, info.Mode(), err)
				}
			}
			d.terminate()
			d.start()
			if again := serial(); again.Cmp(first) != 0 {
				t.Error("another certificate after a restart")
			}
		})
	}
}
