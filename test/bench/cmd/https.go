package main

import (
	"cmp"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/test/bench/crowd"
	"github.com/voxelpopuli/voxeld/test/testkit/daemon"
	"github.com/voxelpopuli/voxeld/test/testkit/figure"
	"github.com/voxelpopuli/voxeld/test/testkit/process"
)

// https measures what HTTPS costs.
type https struct {
	*bench
	numbers []int // of players
	proxied bool
}

func newHTTPS(b *bench) *cobra.Command {
	h := &https{bench: b}
	c := b.command("https", "What HTTPS costs players",
		"The same players in one chunk, whose pages were loaded over plain http, over https from the node itself, and over\n"+
			"https from Caddy, which passes on to the node as deploy/proxy/Caddyfile does. Caddy shares the daemon's core.",
		h.run)
	c.Flags().IntSliceVar(&h.numbers, "players", []int{100, 400}, "numbers of players to measure")
	c.Flags().BoolVar(&h.proxied, "caddy", true, "measure Caddy, too (Debian's package caddy)")
	return c
}

// The address of a daemon's loopback that bench's first daemon has, and Caddy's port there.
const (
	firstAddress = "127.101.0.1"
	caddyPort    = "8443"
)

// certificate makes a certificate for the daemons, if there is none yet, and makes this program trust it.
func (b *bench) certificate() (certificate, key string, err error) {
	certificate, key = filepath.Join(b.dir, "certificate.pem"), filepath.Join(b.dir, "key.pem")
	if _, err := os.Stat(certificate); err == nil {
		return certificate, key, nil
	}
	secret, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return "", "", err
	}
	about := x509.Certificate{
		SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
		IPAddresses: []net.IP{net.ParseIP(firstAddress)}, IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, &about, &about, &secret.PublicKey, secret)
	if err != nil {
		return "", "", err
	}
	secretDER, err := x509.MarshalPKCS8PrivateKey(secret)
	if err != nil {
		return "", "", err
	}
	return certificate, key, errors.Join(
		os.WriteFile(certificate, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o600),
		os.WriteFile(key, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: secretDER}), 0o600),
		os.Setenv("SSL_CERT_FILE", certificate), // nothing was verified yet
	)
}

// startCaddy starts Caddy before a daemon.
func (b *bench) startCaddy(ctx context.Context, d *daemon.Daemon) (*process.Process, error) {
	certificate, key, err := b.certificate()
	if err != nil {
		return nil, err
	}
	address, config := net.JoinHostPort(firstAddress, caddyPort), filepath.Join(b.dir, "Caddyfile")
	text := fmt.Sprintf("{\n\tadmin off\n\tauto_https off\n}\nhttps://%s {\n\ttls %s %s\n\theader Strict-Transport-Security max-age=31536000\n\treverse_proxy %s\n}\n",
		address, certificate, key, d.HTTP)
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		return nil, err
	}
	o := b.conditions()
	o.Log = filepath.Join(b.dir, "caddy.log")
	caddy, err := process.Start(o, "caddy", "run", "--adapter", "caddyfile", "--config", config)
	if err != nil {
		return nil, err
	}
	return caddy, caddy.Await(ctx, func() error {
		c, err := net.Dial("tcp", address)
		if err != nil {
			return err
		}
		return c.Close()
	})
}

// measure measures players in one chunk, behind Caddy or not. The row has the processor time of the daemon and of
// Caddy.
func (h *https) measure(ctx context.Context, n int, proxied bool) (row crowdRow, caddyCPU float64, err error) {
	var flags []string
	if proxied {
		flags = []string{"--trusted-proxy", "127.0.0.0/8", "--advertise-http", "https://" + net.JoinHostPort(firstAddress, caddyPort)}
	}
	daemons, err := h.daemons(ctx, 1, flags...)
	if err != nil {
		return row, 0, err
	}
	d := daemons[0]
	defer d.Kill()
	address, begin := h.address(d), (func(context.Context) func() error)(nil)
	warm, length := h.times(seconds{8, 15})
	if proxied {
		caddy, err := h.startCaddy(ctx, d)
		if err != nil {
			return row, 0, err
		}
		defer caddy.Kill()
		address = "wss://" + net.JoinHostPort(firstAddress, caddyPort) + "/ws"
		begin = func(context.Context) func() error {
			first, failed := caddy.Usage()
			return func() error {
				last, err := caddy.Usage()
				caddyCPU = (last.CPU - first.CPU).Seconds() / length.Seconds()
				return cmp.Or(failed, err)
			}
		}
	}
	o := crowd.Options{Targets: []string{address}, Heights: crowd.NewHeightMap()}
	spawn, err := o.Heights.Fetch(ctx, address, 1)
	if err != nil {
		return row, 0, err
	}
	o.Homes = []grid.ChunkPos{spawn}
	row.wanted = n
	row.reading, err = h.measureCrowd(ctx, []target{d}, o, n, warm, length, begin)
	return row, percent(caddyCPU), err
}

func (h *https) run(ctx context.Context) error {
	table := figure.Table{Head: []string{
		"players", "pages over", "CPU of the daemon, % of a core", "of Caddy", "both, against plain http", "frames/s", "tick p99, ms", "seen p50 / p99, ms",
	}}
	for _, n := range h.numbers {
		plain := 0.0
		for _, way := range []struct {
			name, carrier string
			proxied       bool
		}{{"http", carrierWebSocket, false}, {"https", carrierTLS, false}, {"https by Caddy", carrierWebSocket, true}} {
			if way.proxied && !h.proxied {
				continue
			}
			h.carrier = way.carrier
			row, caddy, err := h.measure(ctx, n, way.proxied)
			if err != nil {
				return fmt.Errorf("%d players over %s: %w", n, way.name, err)
			}
			logf("%s", row.line(way.name))
			cpu := row.cpuPercent() + caddy
			plain = cmp.Or(plain, cpu)
			table.Add(fmt.Sprint(n), way.name, row.cpuPercent(), caddy, ratio(cpu, plain), row.FrameRate(), row.tickMS(), row.seen())
		}
	}
	return h.publish("https", table.Markdown())
}
