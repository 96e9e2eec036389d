package park

import (
	"bytes"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"
	"time"
)

// sealer is a client's connection below TLS. It keeps what is written once hold is set.
type sealer struct {
	net.Conn
	hold bool
	kept []byte
}

func (s *sealer) Write(b []byte) (int, error) {
	if s.hold {
		s.kept = append(s.kept, b...)
		return len(b), nil
	}
	return s.Conn.Write(b)
}

// securePair returns a detached socket over TLS, and the client's end of it.
func securePair(t *testing.T) (l *parkedSocket, client *tls.Conn, below *sealer) {
	t.Helper()
	certified := httptest.NewUnstartedServer(nil)
	certified.StartTLS()
	defer certified.Close()
	here, there := socketPair(t)
	below = &sealer{Conn: there}
	client = tls.Client(below, &tls.Config{InsecureSkipVerify: true})
	server := tls.Server(&Transport{Conn: here}, &tls.Config{Certificates: certified.TLS.Certificates})
	shaken := make(chan error, 1)
	go func() { shaken <- client.HandshakeContext(t.Context()) }()
	if err := server.HandshakeContext(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := <-shaken; err != nil {
		t.Fatal(err)
	}
	l = &parkedSocket{Socket: Detach(server, nil), there: there, last: make(chan struct{})}
	if l.Socket == nil {
		t.Fatal("not detached")
	}
	t.Cleanup(l.Release)
	return l, client, below
}

// Over TLS, too, what the socket does not accept is written later, in order.
func TestSecureWriter(t *testing.T) {
	l, client, _ := securePair(t)
	if err := l.SetWriteDeadline(time.Now().Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	var sent []byte
	var rest []byte
	for i := byte(0); rest == nil; i++ {
		frame := bytes.Repeat([]byte{i}, 5000)
		var err error
		if rest, err = l.TryWrite(frame); err != nil {
			t.Fatal(err)
		}
		sent = append(sent, frame[:len(frame)-len(rest)]...)
	}
	if more, err := l.TryWrite([]byte("more")); string(more) != "more" || err != nil {
		t.Errorf("a full socket leaves %q (%v)", more, err)
	}
	rest = append(rest, bytes.Repeat([]byte("much"), 1<<19)...)
	wrote := make(chan error, 1)
	go func() { // awaited below
		n, err := l.Write(rest)
		if n != len(rest) && err == nil {
			err = io.ErrShortWrite
		}
		wrote <- err
	}()
	sent = append(sent, rest...)
	got := make([]byte, len(sent))
	if _, err := io.ReadFull(client, got); err != nil || !bytes.Equal(got, sent) {
		t.Errorf("what arrived is not what was sent (%v)", err)
	}
	if err := <-wrote; err != nil {
		t.Error(err)
	}
	if rest, err := l.TryWrite([]byte("end")); rest != nil || err != nil {
		t.Errorf("an empty socket leaves %q (%v)", rest, err)
	}
	if err := l.CloseWrite(); err != nil {
		t.Error(err)
	}
	if end, err := io.ReadAll(client); string(end) != "end" || err != nil { // io.ErrUnexpectedEOF without a notice
		t.Errorf("the stream ends with %q (%v)", end, err)
	}
}

// What TLS has received with an earlier message is not waited for.
func TestSecureReadAhead(t *testing.T) {
	p := startPoller(t)
	l, client, below := securePair(t)
	below.hold = true
	for _, word := range []string{"a", "b"} {
		if _, err := client.Write(said(word)); err != nil {
			t.Fatal(err)
		}
	}
	l.write(t, below.kept) // two records
	first := make([]byte, 64)
	n, err := l.Read(first)
	if string(first[:n]) != string(said("a")) || err != nil {
		t.Fatalf("read %q (%v)", first[:n], err)
	}
	parked := make(chan bool, 1)
	go func() { parked <- p.Park(l.Socket, splitPrefixed, l.handleMessage) }() // ends with the test at the latest
	select {
	case <-parked:
	case <-time.After(10 * time.Second):
		t.Fatal("the second message is waited for")
	}
	if n, err := l.Read(first); string(first[:n]) != string(said("b")) || err != nil {
		t.Errorf("then %q (%v)", first[:n], err)
	}
}

// The poller reads messages over TLS, however they arrive, and leaves the end of the stream to the session.
func TestPollerReadsTLS(t *testing.T) {
	p := startPoller(t)
	l, client, below := securePair(t)
	l.parkAgain(t, p)
	below.hold = true
	if _, err := client.Write(said("a", "b")); err != nil {
		t.Fatal(err)
	}
	half := len(below.kept) / 2
	l.write(t, below.kept[:half])
	p.round()
	if got := l.handled(); len(got) != 0 || p.Parked() != 1 {
		t.Errorf("half a record: received %q, %d parked", got, p.Parked())
	}
	l.write(t, below.kept[half:])
	p.round()
	if got := l.handled(); len(got) != 2 || p.Parked() != 1 {
		t.Errorf("received %q, %d parked", got, p.Parked())
	}
	below.kept = nil
	if _, err := client.Write(said("c", "!d")); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(client.CloseWrite(), below.SetWriteDeadline(time.Time{})); err != nil {
		t.Fatal(err)
	}
	l.write(t, below.kept)
	p.round()
	if got := l.handled(); len(got) != 3 || p.Parked() != 0 {
		t.Errorf("received %q, %d parked", got, p.Parked())
	}
	if left, err := io.ReadAll(l.Socket); string(left) != string(said("!d")) || err != nil {
		t.Errorf("left to the session: %q (%v)", left, err)
	}
}

// A client who reads nothing, and makes TLS answer, holds up neither the poller nor the end of its own session.
func TestAnswersOfTLSWaitForNobody(t *testing.T) {
	p := startPoller(t)
	l, _, below := securePair(t)
	if err := l.SetWriteDeadline(time.Now().Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	l.parkAgain(t, p)
	var rest []byte
	for rest == nil {
		var err error
		if rest, err = l.TryWrite(make([]byte, 5000)); err != nil {
			t.Fatal(err)
		}
	}
	wrote := make(chan error, 1)
	go func() { // ends when the socket is closed
		_, err := l.Write(append(rest, make([]byte, 1<<20)...))
		wrote <- err
	}()
	if _, err := below.Conn.Write(append([]byte{0x17, 3, 3, 0, 40}, make([]byte, 40)...)); err != nil { // no record of this session
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() { // awaited below
		defer close(ended)
		for waits := 0; waits < 1000; runtime.Gosched() { // until the writer waits for the client
			l.sealed.Lock()
			if len(l.sealed.data) > 0 {
				waits++
			}
			l.sealed.Unlock()
		}
		for p.Parked() > 0 {
			p.round()
		}
		l.Close()
	}()
	select {
	case <-ended:
	case <-time.After(20 * time.Second):
		t.Fatal("the poller waits for a client")
	}
	select {
	case err := <-wrote:
		if err == nil {
			t.Error("written to nobody")
		}
	case <-time.After(20 * time.Second):
		t.Fatal("the writer outlives the session")
	}
}

// One client has a bounded part of a round, however little its records say, and nothing is lost by that.
func TestManyRecordsAreReadByTheSession(t *testing.T) {
	p := startPoller(t)
	l, client, below := securePair(t)
	l.parkAgain(t, p)
	below.hold = true
	const words = 1500
	for range words {
		if _, err := client.Write(said("a")); err != nil {
			t.Fatal(err)
		}
	}
	l.write(t, below.kept)
	p.round()
	handled := len(l.handled())
	if handled == 0 || handled > words*3/4 || p.Parked() != 0 {
		t.Errorf("%d of %d handled, %d parked", handled, words, p.Parked())
	}
	left := make([]byte, (words-handled)*len(said("a")))
	if _, err := io.ReadFull(l.Socket, left); err != nil || string(left) != strings.Repeat(string(said("a")), words-handled) {
		t.Errorf("left to the session: %d bytes (%v)", len(left), err)
	}
}
