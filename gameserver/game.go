package gameserver

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"time"

	"github.com/voxelpopuli/voxeld/gameserver/accept"
	"github.com/voxelpopuli/voxeld/gameserver/admission"
	"github.com/voxelpopuli/voxeld/gameserver/codec"
	"github.com/voxelpopuli/voxeld/wire"
	"github.com/voxelpopuli/voxeld/wire/legacymsg"
)

// serveGame serves the game port: VoxelPopuli's own protocol, and sessions over plain TCP.
func (g *Gateway) serveGame(ctx context.Context, l net.Listener) error {
	return accept.Serve(ctx, l, g.Logger, g.metrics.panics, func(ctx context.Context, c net.Conn) {
		defer accept.HangUp(c, accept.RefusedTime)
		if err := g.serveConnection(ctx, c); err != nil && !isClosed(err) {
			g.Logger.Debug("game connection refused or ended", "remote", c.RemoteAddr().String(), "error", err)
		}
	})
}

// serveConnection reads the handshake and serves the requested mode (§3.2.2.1).
func (g *Gateway) serveConnection(ctx context.Context, c net.Conn) error {
	if err := c.SetDeadline(time.Now().Add(wire.HandshakeTimeout)); err != nil {
		return err
	}
	stop := context.AfterFunc(ctx, func() { c.Close() }) //nolint:errcheck // the reads below report it
	defer stop()
	release, err := g.limits.Admit(c.RemoteAddr(), admission.ConnectionWeight) // may wait for a proxy's header
	if err != nil {
		return errors.Join(err, answer(c, legacymsg.AnswerNo))
	}
	defer release()
	defer accept.HangUp(c, accept.AdmittedTime)
	in := bufio.NewReader(c)
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
			return errors.Join(err, answer(c, string(codec.JSON.Encode(last))+"\n"))
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
		if err := g.legacy.Resident(ctx, c.RemoteAddr(), h); err != nil {
			if _, refused := errors.AsType[*wire.Error](err); refused {
				g.metrics.noteRefusedJoin(err)
			}
			return errors.Join(err, answer(c, legacymsg.AnswerNo))
		}
		client := g.limits.Client(c.RemoteAddr())
		if !client.Hold(h.Chunk, admission.Original) {
			client.NoteRefusedLand()
			return errors.Join(errTooMuchLand, answer(c, legacymsg.AnswerNo))
		}
		defer client.Release(h.Chunk, admission.Original)
		if err := answer(c, legacymsg.AnswerOK); err != nil {
			return err
		}
		return g.legacy.Serve(ctx, c, in, h)
	case legacymsg.PurposeDHT:
		if err := answer(c, legacymsg.AnswerOK); err != nil {
			return err
		}
		return g.legacy.ServeQueries(ctx, c, in)
	case legacymsg.PurposeJoin:
		release, err := g.limits.Admit(c.RemoteAddr(), admission.PlayerWeight-admission.ConnectionWeight)
		if err != nil {
			g.metrics.noteRefusedJoin(err)
			return errors.Join(err, answer(c, string(codec.JSON.Encode(failureOf(err)))+"\n"))
		}
		defer release()
		stream := &streamConn{Conn: c, in: in, framing: prefixed{}}
		if codec.Of(h.Join.Encoding, codec.Looks{}).IsText() {
			stream.framing = lines{}
		}
		defer stream.detach()()
		g.serveSession(ctx, stream, &h.Join)
	}
	return nil
}

// errTooMuchLand refuses a connection of an original client.
var errTooMuchLand = errors.New("the clients of the address are connected with too much land")

func answer(c net.Conn, text string) error {
	if err := c.SetWriteDeadline(time.Now().Add(writeTimeout)); err != nil {
		return err
	}
	if _, err := io.WriteString(c, text); err != nil {
		return fmt.Errorf("answer handshake: %w", err)
	}
	return nil
}
