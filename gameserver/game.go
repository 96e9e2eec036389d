package gameserver

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"sync"
	"syscall"
	"time"

	"github.com/voxelpopuli/voxeld/gameserver/admission"
	"github.com/voxelpopuli/voxeld/wire"
	"github.com/voxelpopuli/voxeld/wire/legacymsg"
	"github.com/voxelpopuli/voxeld/wire/sessionmsg"
)

// serveGame serves the game port: VoxelPopuli's own protocol, and sessions over plain TCP.
func (g *Gateway) serveGame(ctx context.Context, l net.Listener) error {
	var crew sync.WaitGroup
	defer crew.Wait()
	ctx, end := context.WithCancel(ctx)
	defer end()                                          // the sessions of this listener, even when only the listener has failed
	stop := context.AfterFunc(ctx, func() { l.Close() }) //nolint:errcheck // Accept reports it
	defer stop()
	for pause := acceptPause; ; {
		c, err := l.Accept()
		switch {
		case ctx.Err() != nil:
			if err == nil {
				c.Close() //nolint:errcheck // came too late
			}
			return nil
		case outOfFiles(err):
			g.Logger.Warn("accept game connections", "error", err, "retry_in", pause)
			select {
			case <-ctx.Done():
			case <-time.After(pause):
			}
			pause = min(2*pause, time.Second)
			continue
		case err != nil:
			return fmt.Errorf("accept game connections: %w", err)
		}
		pause = acceptPause
		crew.Go(func() {
			defer hangUp(c)
			if err := g.serveConnection(ctx, c); err != nil && !isClosed(err) {
				g.metrics.refused.Inc()
				g.Logger.Debug("game connection refused or ended", "remote", c.RemoteAddr().String(), "error", err)
			}
		})
	}
}

// acceptPause is the first pause after a connection could not be accepted; each further one is twice as long.
const acceptPause = 5 * time.Millisecond

// outOfFiles reports whether an error of Accept is temporary.
func outOfFiles(err error) bool {
	return errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE) ||
		errors.Is(err, syscall.ENOBUFS) || errors.Is(err, syscall.ENOMEM) || errors.Is(err, syscall.ECONNABORTED)
}

// serveConnection reads the handshake and serves the requested mode (§3.2.2.1).
func (g *Gateway) serveConnection(ctx context.Context, c net.Conn) error {
	release, err := g.limits.Admit(c.RemoteAddr(), admission.ConnectionWeight)
	if err != nil {
		return errors.Join(err, answer(c, legacymsg.AnswerNo))
	}
	defer release()
	if err := c.SetDeadline(time.Now().Add(wire.HandshakeTimeout)); err != nil {
		return err
	}
	in := bufio.NewReader(c)
	stop := context.AfterFunc(ctx, func() { c.Close() }) //nolint:errcheck // the read below reports it
	h, err := legacymsg.ReadHandshake(in)
	stop()
	if err != nil {
		if errors.Is(err, os.ErrDeadlineExceeded) {
			err = &wire.Error{Code: wire.FailTimeout, Message: fmt.Sprintf("no handshake arrived within %v", wire.HandshakeTimeout)}
		}
		if isClosed(err) {
			return nil
		}
		if last := failureOf(err); h.Purpose == legacymsg.PurposeJoin && last != nil {
			return errors.Join(err, answer(c, string(encodedIn(false, last))+"\n"))
		}
		return errors.Join(err, answer(c, legacymsg.AnswerNo))
	}
	if err := c.SetDeadline(time.Time{}); err != nil {
		return err
	}
	switch h.Purpose {
	case legacymsg.PurposePing:
		return answer(c, legacymsg.AnswerPong)
	case legacymsg.PurposeGenerate:
		if err := g.legacy.Generate(ctx, c.RemoteAddr(), h.Chunk); err != nil {
			return errors.Join(err, answer(c, legacymsg.AnswerNo))
		}
		return answer(c, legacymsg.AnswerOK)
	case legacymsg.PurposeConnect:
		if err := g.legacy.Resident(ctx, c.RemoteAddr(), h.Chunk); err != nil {
			return errors.Join(err, answer(c, legacymsg.AnswerNo))
		}
		if err := answer(c, legacymsg.AnswerOK); err != nil {
			return err
		}
		endByReset(c)
		return g.legacy.Serve(ctx, c, in, h)
	case legacymsg.PurposeDHT:
		if err := answer(c, legacymsg.AnswerOK); err != nil {
			return err
		}
		endByReset(c)
		return g.legacy.ServeQueries(ctx, c, in)
	case legacymsg.PurposeJoin:
		release, err := g.limits.Admit(c.RemoteAddr(), admission.PlayerWeight-admission.ConnectionWeight)
		if err != nil {
			return errors.Join(err, answer(c, string(encodedIn(false, failureOf(err)))+"\n"))
		}
		defer release()
		line := &lineConn{Conn: c, in: in, ending: "\n", framed: h.Join.Encoding == sessionmsg.EncodingCBOR}
		defer line.detach()()
		g.serveSession(ctx, line, &h.Join)
	}
	return nil
}

func answer(c net.Conn, text string) error {
	if err := c.SetWriteDeadline(time.Now().Add(writeTimeout)); err != nil {
		return err
	}
	if _, err := io.WriteString(c, text); err != nil {
		return fmt.Errorf("answer handshake: %w", err)
	}
	return nil
}

// endByReset makes a connection end by a reset, whether this gateway closes it or the system does because the process has died.
// The released client treats the end of a stream as an empty read and hangs; after a reset it queries dht again.
//
// Such a connection may be silent for hours, so only TCP's keepalive detects that its client is gone: within 25 s.
func endByReset(c net.Conn) {
	if tcp, ok := c.(*net.TCPConn); ok {
		tcp.SetLinger(0)                            //nolint:errcheck // otherwise it ends like any other
		tcp.SetKeepAliveConfig(net.KeepAliveConfig{ //nolint:errcheck // otherwise the system's defaults apply
			Enable: true, Idle: 10 * time.Second, Interval: 5 * time.Second, Count: 3,
		})
	}
}
