package luanti

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"net"
	"net/netip"
	"sync"
	"time"

	"github.com/voxelpopuli/voxeld/gameserver/admission"
)

const (
	protocolID = 0x4f457403
	headerSize = 7 // of a datagram: protocol, sender, channel
	serverID   = 1 // the server as a peer
	// maxDatagram is the longest datagram that is sent or read, without what IP and UDP add. Clients send 512 bytes at
	// most.
	maxDatagram = 1200
	// maxPeers bounds the peers of a socket, maxOfAddress those of one address, which may have been refused a moment
	// ago, and maxWaiting those that are not accepted yet.
	maxPeers, maxOfAddress, maxWaiting = 4096, 256, 64
	// resendEvery is how often peers are looked at for what was not acknowledged.
	resendEvery = 50 * time.Millisecond
)

// Listener is the net.Listener of a UDP socket. Its connections carry packets.
type Listener struct {
	socket *net.UDPConn
	secret [32]byte
	fresh  chan *peer
	done   chan struct{}
	end    sync.Once
	wg     sync.WaitGroup

	mu    sync.Mutex
	peers map[netip.AddrPort]*peer
	sites map[netip.Prefix]int // how many peers an address has; no zeros
}

// Listen listens at a host:port.
func Listen(address string) (*Listener, error) {
	at, err := net.ResolveUDPAddr("udp", address)
	if err != nil {
		return nil, err
	}
	socket, err := net.ListenUDP("udp", at)
	if err != nil {
		return nil, err
	}
	l := &Listener{
		socket: socket, fresh: make(chan *peer, maxWaiting), done: make(chan struct{}),
		peers: make(map[netip.AddrPort]*peer), sites: make(map[netip.Prefix]int),
	}
	rand.Read(l.secret[:])
	l.wg.Go(l.read)
	l.wg.Go(l.resend)
	return l, nil
}

// Accept waits for the next peer.
func (l *Listener) Accept() (net.Conn, error) {
	select {
	case p := <-l.fresh:
		return p, nil
	case <-l.done:
		return nil, net.ErrClosed
	}
}

// Close stops new peers. The socket is closed when the last one is gone.
func (l *Listener) Close() error {
	l.mu.Lock()
	l.end.Do(func() { close(l.done) })
	l.mu.Unlock()
	for { // peers that nobody has accepted
		select {
		case p := <-l.fresh:
			p.Close() //nolint:errcheck // never fails
		default:
			l.closeIfIdle()
			return nil
		}
	}
}

// Addr returns the address of the socket.
func (l *Listener) Addr() net.Addr { return l.socket.LocalAddr() }

func (l *Listener) closeIfIdle() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed() && len(l.peers) == 0 {
		l.socket.Close() //nolint:errcheck // nothing is left to send
	}
}

func (l *Listener) closed() bool {
	select {
	case <-l.done:
		return true
	default:
		return false
	}
}

// read reads datagrams until the socket is closed.
func (l *Listener) read() {
	buffer := make([]byte, maxDatagram+1)
	for {
		n, from, err := l.socket.ReadFromUDPAddrPort(buffer)
		if err != nil {
			if l.closed() {
				return
			}
			continue // of an earlier write, as an unreachable port
		}
		if n <= maxDatagram {
			l.receive(buffer[:n], from)
		}
	}
}

// receive passes a datagram to its peer.
func (l *Listener) receive(datagram []byte, from netip.AddrPort) {
	if len(datagram) < headerSize+1 || binary.BigEndian.Uint32(datagram) != protocolID || datagram[6] >= channels {
		return
	}
	sender, id := binary.BigEndian.Uint16(datagram[4:]), l.number(from)
	l.mu.Lock()
	p := l.peers[from]
	if p == nil && sender == id {
		p = l.add(from, id)
	}
	l.mu.Unlock()
	switch {
	case p != nil && (sender == id || isGreeting(datagram)):
		p.receive(datagram[6], datagram[headerSize:], time.Now())
	case p == nil && sender == 0 && len(datagram) >= headerSize+4 && !l.closed():
		l.greet(from, id)
	}
}

// add adds a peer, and returns nil if there is no room for it. The caller holds the lock.
func (l *Listener) add(from netip.AddrPort, id uint16) *peer {
	site, counted := admission.Site(from.Addr())
	if len(l.peers) >= maxPeers || counted && l.sites[site] >= maxOfAddress || l.closed() {
		return nil
	}
	p := newPeer(l, from, id)
	select {
	case l.fresh <- p:
		l.peers[from] = p
		l.sites[site]++
		return p
	default:
		return nil
	}
}

// number returns what an address has to send back before it has a peer.
func (l *Listener) number(from netip.AddrPort) uint16 {
	text, _ := from.MarshalBinary() // never fails
	mac := hmac.New(sha256.New, l.secret[:])
	mac.Write(text)
	return max(binary.BigEndian.Uint16(mac.Sum(nil)), serverID+1)
}

// isGreeting reports whether a datagram is the first of a client, sent before it had its number.
func isGreeting(d []byte) bool {
	return len(d) <= headerSize+6 && d[4] == 0 && d[5] == 0 && d[6] == 0 && len(d) > headerSize+3 && d[headerSize] == kindReliable &&
		binary.BigEndian.Uint16(d[headerSize+1:]) == firstSequence
}

// greet sends an address its number. It is not longer than what was received.
func (l *Listener) greet(to netip.AddrPort, id uint16) {
	l.send(to, 0, binary.BigEndian.AppendUint16([]byte{kindControl, controlSetID}, id))
}

// send sends a datagram. One that is lost is sent again, if it is reliable.
func (l *Listener) send(to netip.AddrPort, channel byte, body []byte) {
	d := datagrams.Get().(*[maxDatagram]byte)
	defer datagrams.Put(d)
	b := binary.BigEndian.AppendUint32(d[:0], protocolID)
	b = append(binary.BigEndian.AppendUint16(b, serverID), channel)
	l.socket.WriteToUDPAddrPort(append(b, body...), to) //nolint:errcheck // as good as lost
}

// datagrams are buffers.
var datagrams = sync.Pool{New: func() any { return new([maxDatagram]byte) }}

// resend sends again what was not acknowledged, and gives up on peers that are silent, until the last peer of a closed
// Listener is gone.
func (l *Listener) resend() {
	ticker := time.NewTicker(resendEvery)
	defer ticker.Stop()
	var all []*peer
	for now := range ticker.C {
		all = all[:0]
		l.mu.Lock()
		for _, p := range l.peers {
			all = append(all, p)
		}
		l.mu.Unlock()
		for _, p := range all {
			p.resend(now)
		}
		if len(all) == 0 && l.closed() {
			l.closeIfIdle()
			return
		}
	}
}

// forget removes a peer, unless another one has its address by now.
func (l *Listener) forget(p *peer) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.peers[p.to] != p {
		return
	}
	delete(l.peers, p.to)
	site, _ := admission.Site(p.to.Addr())
	if l.sites[site]--; l.sites[site] == 0 {
		delete(l.sites, site)
	}
}
