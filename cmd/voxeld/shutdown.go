package main

import (
	"encoding/json"
	"net"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/voxelpopuli/voxeld/cmd/voxeld/internal/admin"
	"github.com/voxelpopuli/voxeld/gameserver"
	"github.com/voxelpopuli/voxeld/wire"
)

// sendTimeout is how long a listener may take to read a line.
const sendTimeout = time.Second

// shutdownProgress begins the shutdown of a node on request, and streams its progress to listeners. Every shutdown
// begins in the same way, on request or by a signal: the node's context ends.
type shutdownProgress struct {
	begin func() // ends the node's context

	mu struct {
		sync.Mutex
		steps     []admin.ShutdownStep
		listeners []net.Conn // closed only by the end of the process, so that listeners see that end
	}
}

// serve begins the shutdown and streams its progress, one JSON object per line, until the process ends.
func (p *shutdownProgress) serve(w http.ResponseWriter, _ *http.Request) {
	conn, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		http.Error(w, wire.ErrorText(err), http.StatusInternalServerError)
		return
	}
	p.listen(conn)
	p.begin()
}

const progressHeader = "HTTP/1.1 200 OK\r\nContent-Type: application/x-ndjson\r\nConnection: close\r\n\r\n"

func (p *shutdownProgress) listen(conn net.Conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !send(conn, []byte(progressHeader)) {
		return
	}
	for _, step := range p.mu.steps {
		if !send(conn, line(step)) {
			return
		}
	}
	p.mu.listeners = append(p.mu.listeners, conn)
}

// report publishes a step of the gateway.
func (p *shutdownProgress) report(step gameserver.DrainStep) {
	p.publish(admin.ShutdownStep{DrainStep: step})
}

// reportEnd publishes that everything has stopped.
func (p *shutdownProgress) reportEnd(err error) {
	last := admin.ShutdownStep{DrainStep: gameserver.DrainStep{Step: admin.StepStopped}}
	if err != nil {
		last.Error = wire.ErrorText(err)
	}
	p.publish(last)
}

func (p *shutdownProgress) publish(step admin.ShutdownStep) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.mu.steps = append(p.mu.steps, step)
	p.mu.listeners = slices.DeleteFunc(p.mu.listeners, func(conn net.Conn) bool { return !send(conn, line(step)) })
}

func line(step admin.ShutdownStep) []byte {
	text, err := json.Marshal(step)
	if err != nil {
		panic(err) // it holds numbers and strings only
	}
	return append(text, '\n')
}

// send writes to a listener, and closes the connection if that fails. It reports whether it succeeded.
func send(conn net.Conn, text []byte) bool {
	err := conn.SetWriteDeadline(time.Now().Add(sendTimeout))
	if err == nil {
		_, err = conn.Write(text)
	}
	if err != nil {
		conn.Close() //nolint:errcheck // it is broken
	}
	return err == nil
}
