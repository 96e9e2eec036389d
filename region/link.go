package region

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/voxelpopuli/voxeld/wire"
)

const (
	// LinkProtocol names the streams that carry links, without the world's prefix.
	LinkProtocol = "/link/3"

	// linkBacklog is how many frames (ticks) a gateway may fall behind before its link is cut. It then
	// asks again and starts from whole chunks.
	linkBacklog = 200
	// linkCredit is how many messages of one gateway may wait for the region's next tick. Whoever sends
	// more waits; a region that is late so slows its gateways down instead of piling up what they send.
	linkCredit = 16
	// writeTime is how long a stream may take to accept one frame. One that takes longer is dead.
	writeTime = 10 * time.Second
	// aliveEvery is how often a region's node says that it lives when there is nothing else to say, and
	// silence how long it may say nothing before its link is given up: while somebody has edited lately, and until there is
	// a seat.
	aliveEvery = 250 * time.Millisecond
	silence    = 1200 * time.Millisecond
	// calmEvery and calmSilence are the same for links on which nobody edits: many are, for players see further than they
	// reach. The first edit is to be answered within silence, so calmEvery is well below that.
	calmEvery   = 750 * time.Millisecond
	calmSilence = 3 * time.Second
	// eagerFor is how long after an edit a gateway expects to hear of the region soon; the region says for twice as long
	// that it lives, for it hears of the edit later.
	eagerFor = 5 * time.Second
)

// errLinkClosed is what the ends of a closed link report; the cause is wrapped into it.
var errLinkClosed = errors.New("link closed")

// Link is a gateway's end of its link to the leader of a region. Send and Receive may be used by two
// goroutines at once, each of them by one at a time. Close makes both return.
type Link interface {
	// Send hands the region what the gateway has for it. It may block while the stream is full.
	Send(wire.ToRegion) error
	// Receive waits for the region's next frame.
	Receive(ctx context.Context) (wire.FromRegion, error)
	Close() error
}

// localLink is a link within one process. It is also the region's side of every remote link.
type localLink struct {
	loop *loop
	seat *seat
}

func (l *localLink) Send(msg wire.ToRegion) error {
	if !l.await() || !l.put(msg) {
		return fmt.Errorf("send to region %d: %w", l.loop.info.ID, errLinkClosed)
	}
	return nil
}

// put has the loop hear a message for which there is a credit.
func (l *localLink) put(msg wire.ToRegion) bool {
	return l.loop.inbox.put(func() {
		<-l.seat.credit
		l.loop.hear(l.seat, msg)
	})
}

// TrySend is Send that never blocks: it sends what take gives, or reports false and does not call it. A link that is
// closed meanwhile loses the message, as Send's does that fails.
func (l *localLink) TrySend(take func() wire.ToRegion) bool {
	select {
	case <-l.seat.out.ended:
		return false
	default:
	}
	select {
	case l.seat.credit <- struct{}{}:
		l.put(take())
		return true
	default:
		return false
	}
}

// await waits until the loop may be sent one more message. It reports false if the link is closed.
func (l *localLink) await() bool {
	select {
	case <-l.seat.out.ended:
		return false
	default:
	}
	select {
	case l.seat.credit <- struct{}{}:
		return true
	case <-l.seat.out.ended:
		return false
	}
}

func (l *localLink) Receive(ctx context.Context) (wire.FromRegion, error) {
	return l.receive(ctx, 0)
}

// receive is Receive that says, if alive is not 0, that the region lives when it says nothing for so long.
func (l *localLink) receive(ctx context.Context, alive time.Duration) (wire.FromRegion, error) {
	var silent <-chan time.Time
	if alive > 0 {
		timer := time.NewTimer(alive)
		defer timer.Stop()
		silent = timer.C
	}
	for {
		if len(l.seat.taken) > 0 {
			frame := l.seat.taken[0]
			l.seat.taken = l.seat.taken[1:]
			return frame, nil
		}
		var open bool
		if l.seat.taken, open = l.seat.out.take(); len(l.seat.taken) > 0 {
			continue
		}
		if !open {
			return wire.FromRegion{}, errLinkClosed
		}
		select {
		case <-ctx.Done():
			return wire.FromRegion{}, ctx.Err()
		case <-silent:
			return wire.FromRegion{Alive: true}, nil
		case <-l.seat.out.wake:
		}
	}
}

func (l *localLink) Close() error {
	l.seat.out.close()
	l.loop.inbox.put(func() { l.loop.detach(l.seat) })
	return nil
}

// remoteLink is a link over a stream to another node.
type remoteLink struct {
	stream io.ReadWriteCloser
	in     *bufio.Reader
	vigil  vigil
}

func newRemoteLink(stream io.ReadWriteCloser) *remoteLink {
	l := &remoteLink{stream: stream, in: bufio.NewReader(stream)}
	l.vigil.late = l.abort
	return l
}

func (l *remoteLink) Send(msg wire.ToRegion) error {
	if len(msg.Edits) > 0 {
		l.vigil.edited(time.Now())
	}
	if err := l.write(msg); err != nil {
		return fmt.Errorf("send to region: %w", err)
	}
	return nil
}

func (l *remoteLink) Receive(ctx context.Context) (wire.FromRegion, error) {
	stop := context.AfterFunc(ctx, l.abort) // the read below reports it
	defer stop()
	l.vigil.begin(time.Now())
	defer l.vigil.end()
	for {
		frame, err := wire.ReadFrame[wire.FromRegion](l.in, wire.MaxFrame)
		if err != nil {
			return frame, fmt.Errorf("receive from region: %w", err)
		}
		if !frame.Alive {
			return frame, nil
		}
		l.vigil.begin(time.Now())
	}
}

// greeting waits for the first frame, which says only that the other side lives. The caller ends the
// waiting.
func (l *remoteLink) greeting() error {
	frame, err := wire.ReadFrame[wire.FromRegion](l.in, wire.MaxFrame)
	if err != nil {
		return fmt.Errorf("wait for region: %w", err)
	}
	if !frame.Alive {
		return errors.New("wait for region: the node speaks before it greets")
	}
	return nil
}

func (l *remoteLink) Close() error {
	l.abort()
	return nil
}

// write writes one frame. A stream that does not take it in time is ended.
func (l *remoteLink) write(v interface{ Valid() error }) error {
	late := time.AfterFunc(writeTime, l.abort)
	defer late.Stop()
	return wire.WriteFrame(l.stream, v)
}

// abort ends the stream at once, whatever is under way on it. It may be called again and again.
func (l *remoteLink) abort() {
	if s, ok := l.stream.(interface{ Reset() }); ok {
		s.Reset()
		return
	}
	l.stream.Close() //nolint:errcheck // whoever reads or writes gets an error
}

// guided is the end of a link that was found by a route. If the other side ends the link, the route is
// corrected, or in doubt.
type guided struct {
	Link
	host *Host
	info wire.Region
}

// TrySend is that of a link within this process; others cannot tell whether they would wait.
func (g guided) TrySend(take func() wire.ToRegion) bool {
	local, ok := g.Link.(*localLink)
	return ok && local.TrySend(take)
}

func (g guided) Receive(ctx context.Context) (wire.FromRegion, error) {
	frame, err := g.Link.Receive(ctx)
	switch {
	case frame.Closed != "" && frame.Leader != "":
		g.host.Directory.moved(g.info, frame.Leader)
	case frame.Closed == "" && (err == nil || ctx.Err() != nil):
	case len(g.info.Members) > 1:
		// Another member will lead; which one, they know.
		if frame.Closed == "" && g.info.Leader != g.host.Self.Peer {
			g.host.suspects.add(g.info.Leader)
		}
	default:
		g.host.Directory.doubt(g.info)
	}
	return frame, err
}
