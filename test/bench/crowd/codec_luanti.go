package crowd

import (
	"encoding/binary"
	"errors"
	"math"
	"net"
	"time"

	"github.com/voxelpopuli/voxeld/motion"
	"github.com/voxelpopuli/voxeld/test/testkit/luanticlient"
)

// luantiCodec is Luanti's protocol 39, over UDP. Each read is one datagram.
type luantiCodec struct{ unsampled }

const (
	luantiHead   = 7    // bytes before a datagram's body: the protocol, the sender and the channel
	luantiNode   = 10   // the server's units of a place
	luantiUnit   = 1000 // the client's
	luantiMiddle = .5   // of a block: there it is at a whole number
)

// enter joins with the tests' client, whose socket it uses from then on.
func (luantiCodec) enter(c net.Conn, name string, _ int, _ *HeightMap) (a arrival, early []byte, err error) {
	client, err := luanticlient.New(c.(*net.UDPConn), luanticlient.Options{Name: name, NoLand: true})
	if err != nil {
		return a, nil, err
	}
	var at luanticlient.Place
	var detached error
	for inside := false; !inside; time.Sleep(10 * time.Millisecond) {
		client.Look(func(s *luanticlient.State) { at, inside, err = s.Self, s.Puts > 0 || s.Err != nil, s.Err })
	}
	if a.head, detached = client.Detach(); err != nil || detached != nil {
		return a, nil, errors.Join(err, detached)
	}
	a.pose = motion.Pose{X: at.X + luantiMiddle, Y: at.Y + luantiMiddle, Z: -at.Z - luantiMiddle}
	a.player, a.height, a.grain = name, 128, 1./luantiUnit
	a.hear = luantiReader{a.head, float32(at.X * luantiNode)}.hear
	return a, nil, nil
}

// appendMove appends a place after the head of a datagram: with no speed, and where the player looks.
func (luantiCodec) appendMove(dst []byte, pose motion.Pose) ([]byte, error) {
	dst = append(dst, 1, 0, 35) // not to be acknowledged
	yaw := math.Mod(540-float64(pose.Yaw)*180/math.Pi, 360)
	for _, v := range [...]float64{
		(pose.X - luantiMiddle) * luantiUnit, (pose.Y - luantiMiddle) * luantiUnit, (-pose.Z - luantiMiddle) * luantiUnit, 0, 0, 0, 0, yaw * 100,
	} {
		dst = binary.BigEndian.AppendUint32(dst, uint32(int32(math.Round(v)))) //nolint:gosec // two's complement
	}
	return append(dst, make([]byte, 4+2)...), nil // keys, and how far the client sees
}

// luantiReader acknowledges what a player receives.
type luantiReader struct {
	head  []byte  // of their datagrams
	start float32 // X of where the server has put them; it does so again if their first place was lost
}

// hear is arrival.hear.
func (r luantiReader) hear(datagram []byte) (reply []byte, err error) {
	const reliable, ack, disconnect = 3, 0, 3
	body := datagram[min(luantiHead, len(datagram)):]
	switch {
	case len(body) >= 3 && body[0] == reliable:
		reply = append(reply, r.head...)
		reply[luantiHead-1] = datagram[luantiHead-1]
		reply = append(reply, 0, ack, body[1], body[2])
		if len(body) >= 10 && body[3] == 1 && body[4] == 0 && body[5] == 52 && math.Float32frombits(binary.BigEndian.Uint32(body[6:])) != r.start {
			return reply, errPutBack
		}
	case len(body) == 2 && body[0] == 0 && body[1] == disconnect:
		return nil, errors.New("disconnected by the server")
	}
	return reply, nil
}
