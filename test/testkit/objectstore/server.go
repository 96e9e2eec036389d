// Package objectstore runs an S3-compatible object store for tests, and a network before it that refuses, hangs and
// cuts.
//
// By default that is gofakes3 in the process of the test, which takes any credentials. With TEST_S3_SERVER=PATH it is
// versitygw, a server that people run, which checks signatures (make object-store).
package objectstore

import (
	"fmt"
	"io"
	"net"
	"net/http/httptest"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/johannesboyne/gofakes3"
	"github.com/johannesboyne/gofakes3/backend/s3mem"

	"github.com/voxelpopuli/voxeld/test/testkit/process"
)

// Credentials of the server.
const (
	AccessKey = "VOXELDTESTACCESS"
	SecretKey = "the-secret-of-the-test-object-store"
)

// Bucket is the name of the bucket that there is.
const Bucket = "backups"

// Server is a running object store.
type Server struct {
	Address string // host:port of the Network before it
	Checks  bool   // it checks signatures
	*Network
}

// Env returns variables with the credentials.
func Env() []string {
	return []string{"AWS_ACCESS_KEY_ID=" + AccessKey, "AWS_SECRET_ACCESS_KEY=" + SecretKey}
}

// URL returns what backup_target needs for a prefix in the bucket.
func (s *Server) URL(prefix string) string {
	return fmt.Sprintf("s3://%s/%s?endpoint=http://%s", Bucket, prefix, s.Address)
}

// Start starts a server with an empty bucket, until the end of the test.
func Start(t testing.TB) *Server {
	t.Helper()
	s := &Server{}
	var address string
	if path := os.Getenv("TEST_S3_SERVER"); path != "" {
		s.Checks, address = true, startProcess(t, path)
	} else {
		backend := s3mem.New()
		if err := backend.CreateBucket(Bucket); err != nil {
			t.Fatal(err)
		}
		server := httptest.NewServer(gofakes3.New(backend).Server())
		t.Cleanup(server.Close)
		address = server.Listener.Addr().String()
	}
	s.Network = newNetwork(t, address)
	s.Address = s.listener.Addr().String()
	return s
}

// startProcess starts versitygw and returns its address.
func startProcess(t testing.TB, path string) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, Bucket), 0o700); err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := l.Addr().String()
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	p, err := process.Start(process.Options{Log: filepath.Join(t.TempDir(), "log"), Env: []string{"ROOT_ACCESS_KEY=" + AccessKey, "ROOT_SECRET_KEY=" + SecretKey}}, path, "--port", address, "posix", dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Kill)
	for deadline := time.Now().Add(30 * time.Second); ; {
		c, err := net.Dial("tcp", address)
		if err == nil {
			c.Close() //nolint:errcheck // nothing was sent
			return address
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s does not listen: %v", path, err)
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// Fault is what a Network does to new connections.
type Fault int

// The faults.
const (
	None    Fault = iota
	Refuse        // connections are closed at once
	Hang          // nothing is passed on, and nothing answered
	Cut           // after some bytes to the server, the connection is closed
	Corrupt       // a byte is changed on the way to the server
)

// After how many bytes a connection is cut, or a byte is changed: within a request that stores something.
const cutAfter, changeAfter = 1500, 5000

// Network passes connections on to a server.
type Network struct {
	listener net.Listener
	server   string

	mu struct {
		sync.Mutex
		fault Fault
		open  map[net.Conn]struct{}
		sent  int64
	}
}

func newNetwork(t testing.TB, server string) *Network {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	n := &Network{listener: l, server: server}
	n.mu.open = make(map[net.Conn]struct{})
	var all sync.WaitGroup
	all.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			all.Go(func() { n.serve(c) })
		}
	})
	t.Cleanup(func() {
		l.Close() //nolint:errcheck // it was only listened on
		n.Break(Refuse)
		all.Wait()
	})
	return n
}

// Break ends all connections and lets new ones fail in that way, or no more.
func (n *Network) Break(f Fault) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.mu.fault = f
	for c := range n.mu.open {
		c.Close() //nolint:errcheck // it is to fail
	}
	clear(n.mu.open)
}

// Sent returns how many bytes clients have sent.
func (n *Network) Sent() int64 {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.mu.sent
}

// Hanging reports whether a connection waits for an answer that does not come.
func (n *Network) Hanging() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.mu.fault == Hang && len(n.mu.open) > 0
}

// track adds a connection, and returns what to do with it.
func (n *Network) track(c net.Conn) Fault {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.mu.open[c] = struct{}{}
	return n.mu.fault
}

func (n *Network) serve(c net.Conn) {
	defer c.Close() //nolint:errcheck // nothing is lost with it
	var in io.Reader = counted{c, n}
	switch n.track(c) {
	case None:
	case Refuse:
		return
	case Hang:
		io.Copy(io.Discard, c) //nolint:errcheck // until Break
		return
	case Cut:
		in = io.LimitReader(in, cutAfter)
	case Corrupt:
		in = &corrupted{in: in, left: changeAfter}
	}
	server, err := net.Dial("tcp", n.server)
	if err != nil {
		return
	}
	defer server.Close() //nolint:errcheck // nothing is lost with it
	n.track(server)
	var back sync.WaitGroup
	back.Go(func() {
		io.Copy(c, server) //nolint:errcheck // either side may end it
		c.Close()          //nolint:errcheck // nothing is lost with it
	})
	io.Copy(server, in) //nolint:errcheck // either side may end it
	server.Close()      //nolint:errcheck // nothing is lost with it
	back.Wait()
}

// corrupted changes one byte.
type corrupted struct {
	in   io.Reader
	left int // bytes before that
}

func (c *corrupted) Read(p []byte) (int, error) {
	n, err := c.in.Read(p)
	if c.left >= 0 && c.left < n {
		p[c.left] ^= 1
	}
	c.left -= n
	return n, err
}

// counted counts what a client sends.
type counted struct {
	net.Conn

	n *Network
}

func (c counted) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	c.n.mu.Lock()
	defer c.n.mu.Unlock()
	c.n.mu.sent += int64(n)
	return n, err
}
