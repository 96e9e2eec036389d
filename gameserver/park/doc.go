// Package park reads the sockets of clients that only send moves in rounds, from one goroutine, instead of waking a
// goroutine for each move (docs/adr/0018).
//
// A Socket is a TCP connection outside of Go's netpoller, with TLS over it or not. Its session's reader parks it with
// Poller.Park, and reads it again when something arrives that the Handler leaves. Socket.mu may be held when a Handler
// is called; Poller.mu is a leaf. On systems other than Linux Detach returns nil, and sessions read their connections
// as usual.
package park

// Splitter returns the first message of what a socket has received, and its size with its frame; 0 if the socket's own
// reader must read it. It changes nothing of what was received.
type Splitter func(received []byte) (message []byte, size int)

// Handler handles a message of a parked socket. It reports whether it has taken the message (or else leaves it to the
// socket's own reader), and whether the socket may stay parked. The poller's goroutine calls it for all sockets, so it
// must not block or take long.
type Handler func(data []byte) (taken, stay bool)

// Flusher is something that moves of a round are passed on to. Values are compared.
type Flusher interface{ Flush() }
