package luanti

import (
	"encoding/binary"
	"errors"
	"io"
	"net"
	"net/netip"
	"os"
	"sync"
	"time"
)

// Kinds of what a datagram carries.
const (
	kindControl  = 0
	kindOriginal = 1
	kindSplit    = 2
	kindReliable = 3
)

// Kinds of control.
const (
	controlAck        = 0
	controlSetID      = 1
	controlPing       = 2
	controlDisconnect = 3
)

const (
	channels      = 3
	firstSequence = 65500
	// maxAhead is how many reliable packets of a channel may arrive before one that is missing.
	maxAhead = 128
	// maxPacket is the longest packet that a client may send, and maxInbox how many may wait to be read.
	maxPacket, maxInbox = 16 << 10, 256
	// maxBacklog is how many bytes may wait to be sent, or for an acknowledgement, before Write waits.
	maxBacklog = 2 << 20
	// A window is how many packets of a channel wait for an acknowledgement: it grows with each, and is halved when one
	// is missing.
	firstWindow, maxWindow = 16, 128
	// Packets are sent again after firstRetry, and then after twice as long, up to maxRetry.
	firstRetry, maxRetry = 250 * time.Millisecond, 2 * time.Second
	// silence is how long nothing may arrive from a peer.
	silence = 30 * time.Second
	// splitHeader is what a part of a packet has before its bytes; reliableHeader is before that.
	splitHeader, reliableHeader = 7, 3
	maxBody                     = maxDatagram - headerSize - reliableHeader
	// maxLossy is the longest packet that may be sent without acknowledgement: it is not sent in parts.
	maxLossy = maxDatagram - headerSize - 1
)

var errSilent = errors.New("the client has been silent for too long")

// peer is the net.Conn of a client. One goroutine at a time may call Read.
type peer struct {
	l  *Listener
	to netip.AddrPort
	id uint16

	arrived, room chan struct{} // each holds a token when there is something to read, or room to write

	mu       sync.Mutex
	channels [channels]channel
	inbox    [][]byte
	backlog  int // bytes
	heard    time.Time
	readBy   time.Time // deadlines
	writeBy  time.Time
	err      error // why it has ended
}

// channel is one of the streams of a peer. Sequence numbers wrap.
type channel struct {
	expected uint16
	ahead    map[uint16][]byte // that arrived early
	split    []byte            // a packet of which some parts have arrived, in order
	parts    uint16            // of those
	of       uint16

	next, nextSplit uint16
	queue           [][]byte         // not sent yet
	flying          map[uint16]*sent // not acknowledged
	window          float64
}

type sent struct {
	body  []byte
	at    time.Time
	first time.Time
	wait  time.Duration
}

func newPeer(l *Listener, to netip.AddrPort, id uint16) *peer {
	p := &peer{l: l, to: to, id: id, arrived: make(chan struct{}, 1), room: make(chan struct{}, 1), heard: time.Now()}
	for i := range p.channels {
		p.channels[i] = channel{
			expected: firstSequence, next: firstSequence, nextSplit: firstSequence, window: firstWindow,
			ahead: make(map[uint16][]byte), flying: make(map[uint16]*sent),
		}
	}
	return p
}

func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// receive handles a datagram's body.
func (p *peer) receive(channel byte, body []byte, now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.err != nil {
		return
	}
	p.heard = now
	c := &p.channels[channel]
	switch body[0] {
	case kindControl:
		p.control(channel, body, now)
	case kindOriginal:
		if len(p.inbox) < maxInbox {
			p.deliver(append([]byte(nil), body[1:]...))
		}
	case kindReliable:
		if len(body) <= reliableHeader {
			return
		}
		sequence := binary.BigEndian.Uint16(body[1:])
		switch early := sequence - c.expected; {
		case early >= 1<<15: // it was received before
		case early >= maxAhead, len(p.inbox) >= maxInbox:
			return // the client sends it again
		default:
			c.ahead[sequence] = append([]byte(nil), body[reliableHeader:]...)
		}
		p.l.send(p.to, channel, binary.BigEndian.AppendUint16([]byte{kindControl, controlAck}, sequence))
		for {
			next, here := c.ahead[c.expected]
			if !here {
				return
			}
			delete(c.ahead, c.expected)
			c.expected++
			p.inOrder(channel, next, now)
		}
	}
}

// control handles a control message.
func (p *peer) control(channel byte, body []byte, now time.Time) {
	if len(body) < 2 {
		return
	}
	switch body[1] {
	case controlAck:
		if len(body) >= 4 {
			p.acknowledged(channel, binary.BigEndian.Uint16(body[2:]), now)
		}
	case controlDisconnect:
		p.fail(io.EOF)
	}
}

// inOrder handles what a reliable packet carries.
func (p *peer) inOrder(channel byte, body []byte, now time.Time) {
	c := &p.channels[channel]
	switch body[0] {
	case kindControl:
		p.control(channel, body, now)
	case kindOriginal:
		p.deliver(body[1:])
	case kindSplit:
		if len(body) < splitHeader {
			return
		}
		of, part := binary.BigEndian.Uint16(body[3:]), binary.BigEndian.Uint16(body[5:])
		if part == 0 {
			c.split, c.parts, c.of = nil, 0, of
		}
		if part != c.parts || of != c.of {
			return // parts arrive in order
		}
		c.parts++
		c.split = append(c.split, body[splitHeader:]...)
		switch {
		case len(c.split) > maxPacket:
			p.fail(errors.New("a packet of the client is too long"))
		case c.parts == c.of:
			p.deliver(c.split)
			c.split, c.parts, c.of = nil, 0, 0
		}
	}
}

func (p *peer) deliver(packet []byte) {
	p.inbox = append(p.inbox, packet)
	signal(p.arrived)
}

// acknowledged notes that a packet has arrived.
func (p *peer) acknowledged(channel byte, sequence uint16, now time.Time) {
	c := &p.channels[channel]
	s := c.flying[sequence]
	if s == nil {
		return
	}
	delete(c.flying, sequence)
	p.backlog -= len(s.body)
	c.window = min(maxWindow, c.window+1)
	p.pump(channel, now)
	signal(p.room)
}

// pump sends what the window has room for.
func (p *peer) pump(channel byte, now time.Time) {
	c := &p.channels[channel]
	for len(c.queue) > 0 && len(c.flying) < int(c.window) {
		s := &sent{body: c.queue[0], at: now, first: now, wait: firstRetry}
		c.queue[0] = nil
		c.queue = c.queue[1:]
		binary.BigEndian.PutUint16(s.body[1:], c.next)
		c.flying[c.next] = s
		c.next++
		p.l.send(p.to, channel, s.body)
	}
}

// resend sends again what is due, and ends a peer that is silent.
func (p *peer) resend(now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.err != nil {
		return
	}
	if now.Sub(p.heard) > silence {
		p.fail(errSilent)
		return
	}
	for i := range p.channels {
		c := &p.channels[i]
		lost := false
		for _, s := range c.flying {
			if now.Sub(s.at) < s.wait {
				continue
			}
			lost = true
			s.at, s.wait = now, min(2*s.wait, maxRetry)
			p.l.send(p.to, byte(i), s.body)
		}
		if lost {
			c.window = max(firstWindow, c.window/2)
		}
	}
}

// fail ends the peer.
func (p *peer) fail(err error) {
	if p.err != nil {
		return
	}
	p.err = err
	for i := range p.channels {
		c := &p.channels[i]
		c.queue, c.flying, c.ahead, c.split = nil, nil, nil, nil
	}
	signal(p.arrived)
	signal(p.room)
}

// Read waits for a packet. Packets that are longer than b are cut off.
func (p *peer) Read(b []byte) (int, error) {
	for {
		p.mu.Lock()
		late := !p.readBy.IsZero() && !time.Now().Before(p.readBy)
		if len(p.inbox) > 0 && !late {
			packet := p.inbox[0]
			p.inbox = p.inbox[1:]
			p.mu.Unlock()
			return copy(b, packet), nil
		}
		err, by := p.err, p.readBy
		p.mu.Unlock()
		if err != nil {
			return 0, err
		}
		if err := wait(p.arrived, by); err != nil {
			return 0, err
		}
	}
}

// Write sends a packet, when there is room for it.
func (p *peer) Write(b []byte) (int, error) {
	channel := channelOf(b)
	for {
		p.mu.Lock()
		if p.err != nil {
			defer p.mu.Unlock()
			return 0, p.err
		}
		if p.backlog < maxBacklog {
			p.enqueue(channel, b)
			p.pump(channel, time.Now())
			p.mu.Unlock()
			return len(b), nil
		}
		by := p.writeBy
		p.mu.Unlock()
		if err := wait(p.room, by); err != nil {
			return 0, err
		}
	}
}

// WriteLossy sends a packet that is not acknowledged, nor sent again.
func (p *peer) WriteLossy(b []byte) {
	p.l.send(p.to, channelOf(b), append([]byte{kindOriginal}, b...))
}

// enqueue appends a packet to a channel's queue, in parts if it is long.
func (p *peer) enqueue(channel byte, b []byte) {
	c := &p.channels[channel]
	put := func(head, body []byte) {
		all := make([]byte, 0, reliableHeader+len(head)+len(body))
		all = append(append(append(all, kindReliable, 0, 0), head...), body...)
		c.queue = append(c.queue, all)
		p.backlog += len(all)
	}
	if len(b)+1 <= maxBody {
		put([]byte{kindOriginal}, b)
		return
	}
	const most = maxBody - splitHeader
	count := (len(b) + most - 1) / most
	for i := range count {
		head := binary.BigEndian.AppendUint16([]byte{kindSplit}, c.nextSplit)
		head = binary.BigEndian.AppendUint16(head, uint16(count)) //nolint:gosec // a packet has less than 64k parts
		head = binary.BigEndian.AppendUint16(head, uint16(i))     //nolint:gosec // a packet has less than 64k parts
		put(head, b[i*most:min(len(b), (i+1)*most)])
	}
	c.nextSplit++
}

// wait waits for a token, until a time, if that is not zero.
func wait(token chan struct{}, by time.Time) error {
	if by.IsZero() {
		<-token
		return nil
	}
	timer := time.NewTimer(time.Until(by))
	defer timer.Stop()
	select {
	case <-token:
		return nil
	case <-timer.C:
		return os.ErrDeadlineExceeded
	}
}

// Backlog returns how many bytes were not acknowledged yet.
func (p *peer) Backlog() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.backlog
}

// CloseWrite ends what is written. What was written before is still sent.
func (p *peer) CloseWrite() error { return nil }

// Close ends the peer at once.
func (p *peer) Close() error {
	p.mu.Lock()
	if p.err == nil {
		p.l.send(p.to, 0, []byte{kindControl, controlDisconnect})
	}
	p.fail(net.ErrClosed)
	p.mu.Unlock()
	p.l.forget(p)
	return nil
}

// LocalAddr returns the address of the socket.
func (p *peer) LocalAddr() net.Addr { return p.l.Addr() }

// RemoteAddr returns the address of the client. It is a TCP address, as those of all players are to the limits.
func (p *peer) RemoteAddr() net.Addr {
	return net.TCPAddrFromAddrPort(netip.AddrPortFrom(p.to.Addr().Unmap(), p.to.Port()))
}

// SetDeadline sets both deadlines.
func (p *peer) SetDeadline(t time.Time) error {
	if err := p.SetReadDeadline(t); err != nil {
		return err
	}
	return p.SetWriteDeadline(t)
}

// SetReadDeadline bounds Read.
func (p *peer) SetReadDeadline(t time.Time) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.readBy = t
	signal(p.arrived)
	return nil
}

// SetWriteDeadline bounds Write.
func (p *peer) SetWriteDeadline(t time.Time) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.writeBy = t
	signal(p.room)
	return nil
}
