package legacymsg

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"net/netip"
	"strconv"

	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/player"
	"github.com/voxelpopuli/voxeld/wire"
)

// First bytes of the queries of dht mode.
const (
	queryChunk  = 0
	queryPlayer = 1
)

// Query is a request on a connection in dht mode (§3.2.4.1).
type Query interface{ query() }

// WhereIsChunk asks for the game server of a chunk, which is generated first if necessary.
type WhereIsChunk struct{ Chunk grid.ChunkPos }

// WhereIsPlayer asks for a player's last position. The name is as the client wrote it.
type WhereIsPlayer struct{ Name string }

func (WhereIsChunk) query()  {}
func (WhereIsPlayer) query() {}

// ReadQuery reads the next query. Queries have no terminator; line ends between them are ignored. io.EOF means that the
// client has disconnected. After an *Error the stream is still in step unless its code is bad_json, too_long or
// unknown_message.
func ReadQuery(r *bufio.Reader) (Query, error) {
	kind, err := r.ReadByte()
	for err == nil && (kind == '\r' || kind == '\n') {
		kind, err = r.ReadByte()
	}
	if err != nil {
		return nil, err
	}
	switch kind {
	case queryChunk:
		data, err := readValue(r, '[', wire.MaxQuery)
		if err != nil {
			return nil, midQuery(err)
		}
		return decodeWhereIsChunk(data)
	case queryPlayer:
		data, err := readValue(r, '{', wire.MaxQuery)
		if err != nil {
			return nil, midQuery(err)
		}
		return decodeWhereIsPlayer(data)
	default:
		return nil, wire.Refuse(wire.FailUnknownMessage, "a query begins with byte 0 or 1, not %d", kind)
	}
}

func midQuery(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

func decodeWhereIsChunk(data []byte) (Query, error) {
	at, err := wire.ParseChunkPos(data, "the chunk")
	if err != nil {
		return nil, err
	}
	return WhereIsChunk{Chunk: at}, nil
}

func decodeWhereIsPlayer(data []byte) (Query, error) {
	var o wire.Object
	if refused := o.ParseJSON(data); refused != nil {
		return nil, refused
	}
	q := WhereIsPlayer{Name: o.Text("name", wire.MaxQuery)}
	if o.Err != nil {
		return nil, o.Err
	}
	return q, nil
}

// AppendQuery appends a query as a client sends it.
func AppendQuery(dst []byte, q Query) ([]byte, error) {
	switch q := q.(type) {
	case WhereIsChunk:
		return appendChunkPos(append(dst, queryChunk), q.Chunk), nil
	case WhereIsPlayer:
		if err := player.CheckName(q.Name); err != nil {
			return dst, fmt.Errorf("encode query: %w", err)
		}
		dst = append(dst, queryPlayer)
		dst = append(dst, `{"name":"`...)
		dst = append(dst, q.Name...)
		return append(dst, `"}`...), nil
	default:
		return dst, fmt.Errorf("encode query: %T is not a query", q)
	}
}

// AppendChunkAddress appends the answer to WhereIsChunk, with its newline. The released client connects only to IP
// addresses; the caller resolves host names.
func AppendChunkAddress(dst []byte, address netip.AddrPort) []byte {
	dst = append(dst, `{"ip":"`...)
	dst = address.Addr().Unmap().WithZone("").AppendTo(dst)
	dst = append(dst, `","port":`...)
	dst = strconv.AppendUint(dst, uint64(address.Port()), 10)
	return append(dst, "}\n"...)
}

// ReadChunkAddress reads the answer to WhereIsChunk.
func ReadChunkAddress(r *bufio.Reader) (netip.AddrPort, error) {
	line, err := wire.ReadLine(r, wire.MaxQuery)
	if err != nil {
		return netip.AddrPort{}, err
	}
	var o wire.Object
	if refused := o.ParseJSON(line); refused != nil {
		return netip.AddrPort{}, refused
	}
	ip, port := o.Text("ip", net.IPv6len*4), o.Integer("port", 1, math.MaxUint16)
	if err := o.Done(); err != nil {
		return netip.AddrPort{}, err
	}
	addr, err := netip.ParseAddr(ip)
	if err != nil || addr.Zone() != "" {
		return netip.AddrPort{}, wire.Refuse(wire.FailBadValue, "%q is not an IP address", ip)
	}
	return netip.AddrPortFrom(addr, uint16(port)), nil
}

// DefaultX, DefaultY and DefaultZ are where VoxelPopuli puts an unknown player, in blocks.
const (
	DefaultX = 0
	DefaultY = 32
	DefaultZ = 0
)

// AppendPlayerPlace appends the answer to WhereIsPlayer, in world blocks, without a newline. The numbers must be
// finite.
func AppendPlayerPlace(dst []byte, x, y, z float64) ([]byte, error) {
	if !wire.Finite(x) || !wire.Finite(y) || !wire.Finite(z) {
		return dst, fmt.Errorf("encode player's place: (%g, %g, %g) cannot be represented in JSON", x, y, z)
	}
	dst = append(dst, `{"x":`...)
	dst = strconv.AppendFloat(dst, x, 'f', -1, 64)
	dst = append(dst, `,"y":`...)
	dst = strconv.AppendFloat(dst, y, 'f', -1, 64)
	dst = append(dst, `,"z":`...)
	dst = strconv.AppendFloat(dst, z, 'f', -1, 64)
	return append(dst, '}'), nil
}

// ReadPlayerPlace reads the answer to WhereIsPlayer.
func ReadPlayerPlace(r *bufio.Reader) (x, y, z float64, err error) {
	data, err := readValue(r, '{', wire.MaxQuery)
	if err != nil {
		return 0, 0, 0, err
	}
	var o wire.Object
	if refused := o.ParseJSON(data); refused != nil {
		return 0, 0, 0, refused
	}
	x, y, z = o.Float("x"), o.Float("y"), o.Float("z")
	return x, y, z, o.Done()
}
