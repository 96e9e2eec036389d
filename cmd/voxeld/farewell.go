package main

import (
	"encoding/json"
	"net"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/voxelpopuli/voxeld/gameserver"
)

// stepStopped is the last thing that a node says; the process ends then.
const stepStopped = "stopped"

// farewellStep is a line of what a node says while it stops: the steps of its gateway, and the end.
type farewellStep struct {
	gameserver.DrainStep
	Error string `json:"error,omitempty"` // of stepStopped: why it did not stop in order
}

// hearTime is how long somebody who listens to the farewell may take to read a line.
const hearTime = time.Second

// farewell is the end of a node as those hear it who asked for it. It has one way to begin, whoever asks:
// the node's context ends, as it does after a signal.
type farewell struct {
	begin func() // tells the node to stop

	mu struct {
		sync.Mutex
		said      []farewellStep
		listeners []net.Conn // closed only by the end of the process, which they so hear as well
	}
}

// serve tells the node to stop, and whoever asks how far it has come: an object a line, until the process ends.
func (f *farewell) serve(w http.ResponseWriter, _ *http.Request) {
	conn, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	f.listen(conn)
	f.begin()
}

const farewellHeader = "HTTP/1.1 200 OK\r\nContent-Type: application/x-ndjson\r\nConnection: close\r\n\r\n"

func (f *farewell) listen(conn net.Conn) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !hears(conn, []byte(farewellHeader)) {
		return
	}
	for _, step := range f.mu.said {
		if !hears(conn, line(step)) {
			return
		}
	}
	f.mu.listeners = append(f.mu.listeners, conn)
}

// told passes on how far the gateway has come.
func (f *farewell) told(step gameserver.DrainStep) { f.say(farewellStep{DrainStep: step}) }

// ended says that everything has stopped.
func (f *farewell) ended(err error) {
	last := farewellStep{DrainStep: gameserver.DrainStep{Step: stepStopped}}
	if err != nil {
		last.Error = err.Error()
	}
	f.say(last)
}

func (f *farewell) say(step farewellStep) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.mu.said = append(f.mu.said, step)
	f.mu.listeners = slices.DeleteFunc(f.mu.listeners, func(conn net.Conn) bool { return !hears(conn, line(step)) })
}

func line(step farewellStep) []byte {
	text, err := json.Marshal(step)
	if err != nil {
		panic(err) // numbers and texts only
	}
	return append(text, '\n')
}

// hears writes to a listener. Who does not read is left.
func hears(conn net.Conn, text []byte) bool {
	err := conn.SetWriteDeadline(time.Now().Add(hearTime))
	if err == nil {
		_, err = conn.Write(text)
	}
	if err != nil {
		conn.Close() //nolint:errcheck // it is broken
	}
	return err == nil
}
