//go:build !linux

package park

import (
	"context"
	"errors"
	"log/slog"
	"net"
)

// Socket does not exist on this platform.
type Socket struct{ net.Conn }

// Detach returns nil.
func Detach(net.Conn, []byte) *Socket { return nil }

// TransportListener returns the listener.
func TransportListener(l net.Listener) net.Listener { return l }

// TryWrite fails.
func (*Socket) TryWrite(b []byte) ([]byte, error) { return b, errors.ErrUnsupported }

// Release does nothing.
func (*Socket) Release() {}

// Poller reads nothing on this platform: sessions read their sockets themselves.
type Poller struct{}

// NewPoller returns a poller.
func NewPoller(*slog.Logger, bool) *Poller { return &Poller{} }

// Run does nothing.
func (*Poller) Run(context.Context) {}

// Park reports false.
func (*Poller) Park(*Socket, Splitter, Handler) bool { return false }

// Parked returns 0.
func (*Poller) Parked() int { return 0 }

// FlushAfterRound does nothing.
func (*Poller) FlushAfterRound(Flusher) {}
