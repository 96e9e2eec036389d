package main

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/fxamacker/cbor/v2"

	kit "github.com/voxelpopuli/voxeld/test/testkit/daemon"
)

// What clients send and are answered, recorded from a running daemon, and replayed against this one. Each line of a
// transcript is of one connection, named before the mark:
//
//	a> text     text is sent, with \n, \x00 and \x01 as in Go
//	a: {json}   the object is sent in CBOR, framed as in a session
//	a= text     these bytes are read
//	a< {json}   messages are read until this one comes; what differs from run to run is "*"
//	a* 9 chunk  messages are read until 9 of this type have come
//	a.          the connection is read to its end
//
// With -compat.record=BINARY the objects of a< are written anew; only their "type" has to stand there before.
func TestTranscripts(t *testing.T) {
	paths, err := filepath.Glob(filepath.Join(compatDir, "*.txt"))
	if err != nil || len(paths) < 3 {
		t.Fatalf("transcripts: %v, %v", paths, err)
	}
	for _, path := range paths {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".txt"), func(t *testing.T) {
			d := newDaemon(t, kit.Options{Binary: *compatRecord})
			d.init()
			d.start()
			recorded := replay(t, d, path)
			if *compatRecord != "" {
				if err := os.WriteFile(path, []byte(recorded), 0o644); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}

// replay plays a transcript, and returns it with the messages that came.
func replay(t *testing.T, d *daemon, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	open := make(map[string]*transcriptConn)
	var recorded strings.Builder
	for n, line := range strings.Split(strings.TrimSuffix(string(text), "\n"), "\n") {
		if line == "" || strings.HasPrefix(line, "#") {
			recorded.WriteString(line + "\n")
			continue
		}
		name, mark, rest := line[:1], line[1], strings.TrimPrefix(line[2:], " ")
		c := open[name]
		if c == nil {
			c = dialTranscript(t, d.Game, fmt.Sprintf("%s:%d", filepath.Base(path), n+1))
			open[name] = c
		}
		c.at = fmt.Sprintf("%s:%d", filepath.Base(path), n+1)
		switch mark {
		case '>':
			c.write([]byte(strings.NewReplacer(`\n`, "\n", `\x00`, "\x00", `\x01`, "\x01").Replace(rest)))
		case ':':
			c.binary = true
			message := cborOf(t, rest)
			c.write(append(binary.AppendUvarint(nil, uint64(len(message))), message...))
		case '=':
			c.readExactly(rest)
		case '<':
			line = name + "< " + c.await(rest)
		case '*':
			c.skip(rest)
		case '.':
			c.readToEnd()
		default:
			t.Fatalf("%s: mark %q", c.at, mark)
		}
		recorded.WriteString(line + "\n")
	}
	return recorded.String()
}

// transcriptConn is one connection of a transcript. It decodes what comes without any code of the product.
type transcriptConn struct {
	t      *testing.T
	conn   net.Conn
	in     *bufio.Reader
	at     string // file and line of the transcript
	binary bool   // messages are CBOR with their length before them
}

func dialTranscript(t *testing.T, address, at string) *transcriptConn {
	t.Helper()
	conn, err := net.DialTimeout("tcp", address, patience)
	if err != nil {
		t.Fatalf("%s: %v", at, err)
	}
	t.Cleanup(func() { conn.Close() })
	if err := conn.SetDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	return &transcriptConn{t: t, conn: conn, in: bufio.NewReader(conn), at: at}
}

func (c *transcriptConn) write(data []byte) {
	c.t.Helper()
	if strings.Contains(string(data), `"encoding":"cbor"`) {
		c.binary = true
	}
	if _, err := c.conn.Write(data); err != nil {
		c.t.Fatalf("%s: %v", c.at, err)
	}
}

func (c *transcriptConn) readExactly(want string) {
	c.t.Helper()
	got := make([]byte, len(want))
	if _, err := io.ReadFull(c.in, got); err != nil || string(got) != want {
		c.t.Fatalf("%s: got %q (%v), want %q", c.at, got, err, want)
	}
}

// skip reads messages until as many of a type have come.
func (c *transcriptConn) skip(what string) {
	c.t.Helper()
	var n int
	var kind string
	if _, err := fmt.Sscan(what, &n, &kind); err != nil {
		c.t.Fatalf("%s: %v", c.at, err)
	}
	for n > 0 {
		message, err := c.next()
		if err != nil {
			c.t.Fatalf("%s: %v, and %d more were to come", c.at, err, n)
		}
		if message != nil && message["type"] == kind {
			n--
		}
	}
}

func (c *transcriptConn) readToEnd() {
	c.t.Helper()
	if _, err := io.Copy(io.Discard, c.in); err != nil && !strings.Contains(err.Error(), "reset") {
		c.t.Fatalf("%s: the server did not end the connection: %v", c.at, err)
	}
}

// await reads messages until one is as wanted; when recording, until one has the type.
func (c *transcriptConn) await(want string) string {
	c.t.Helper()
	var wanted struct{ Type any }
	if err := json.Unmarshal([]byte(want), &wanted); err != nil {
		c.t.Fatalf("%s: %v", c.at, err)
	}
	var others []string
	for {
		message, err := c.next()
		if err != nil {
			c.t.Fatalf("%s: %v before %s; of its type came\n%s", c.at, err, want, strings.Join(others, "\n"))
		}
		if message == nil || fmt.Sprint(message["type"]) != fmt.Sprint(wanted.Type) {
			continue
		}
		got := steady(c.t, message)
		if got == want || *compatRecord != "" {
			return got
		}
		others = append(others, got)
	}
}

// next reads a message; nil is one that is neither JSON nor a CBOR map: a tick frame.
func (c *transcriptConn) next() (map[string]any, error) {
	if !c.binary {
		line, err := c.in.ReadBytes('\n')
		if err != nil {
			return nil, err
		}
		var m map[string]any
		return m, json.Unmarshal(line, &m)
	}
	n, err := binary.ReadUvarint(c.in)
	if err != nil {
		return nil, err
	}
	data := make([]byte, n)
	if _, err := io.ReadFull(c.in, data); err != nil {
		return nil, err
	}
	if n == 0 || data[0]>>5 != 5 { // no CBOR map
		return nil, nil
	}
	var m map[string]any
	return m, plainMaps.Unmarshal(data, &m)
}

// plainMaps decodes CBOR as encoding/json decodes JSON.
var plainMaps = func() cbor.DecMode {
	mode, err := cbor.DecOptions{DefaultMapType: reflect.TypeFor[map[string]any]()}.DecMode()
	if err != nil {
		panic(err)
	}
	return mode
}()

// unsteady are the fields that differ from run to run, or from version to version.
var unsteady = []string{"next_seq", "time_of_day", "gateway", "url", "server_version", "world", "ip", "port", "message"}

// steady returns a message in JSON, its fields in order, with what differs from run to run and what is long replaced.
func steady(t *testing.T, m map[string]any) string {
	for _, name := range unsteady {
		if _, has := m[name]; has {
			m[name] = "*"
		}
	}
	if m["type"] == "challenge" {
		m["nonce"] = "*"
	}
	for name, v := range m {
		if b, ok := v.([]byte); ok {
			v = string(b)
		}
		text, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		if len(text) > 400 {
			m[name] = fmt.Sprintf("%d bytes, SHA-256 %x…", len(text), sha256.Sum256(text))[:60]
		}
	}
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(m); err != nil {
		t.Fatal(err)
	}
	return strings.TrimSuffix(text.String(), "\n")
}

// cborOf returns a JSON object in CBOR; numbers with a point are floats.
func cborOf(t *testing.T, text string) []byte {
	t.Helper()
	decoder := json.NewDecoder(strings.NewReader(text))
	decoder.UseNumber()
	var m map[string]any
	if err := decoder.Decode(&m); err != nil {
		t.Fatal(err)
	}
	for name, v := range m {
		number, ok := v.(json.Number)
		if !ok {
			continue
		}
		if i, err := number.Int64(); err == nil {
			m[name] = i
		} else if m[name], err = number.Float64(); err != nil {
			t.Fatal(err)
		}
	}
	data, err := cbor.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	return data
}
