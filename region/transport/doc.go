// Package transport moves the messages of regions between nodes: questions and answers, raft messages, snapshots,
// pieces, and the links between gateways and the leaders of regions. It knows nothing of regions but their messages.
//
// A Carrier and a link may be used from any goroutine, as their comments say. Functions that serve a stream run in the
// goroutine of its handler.
package transport

import (
	"context"
	"io"
	"strings"

	"github.com/voxelpopuli/voxeld/wire"
)

// The protocols, without the world's prefix.
const (
	// AskProtocol names the streams that carry questions between nodes: one nodemsg.Question, one nodemsg.Answer.
	AskProtocol = "/ask/1"
	// LinkProtocol names the streams that carry links.
	LinkProtocol = "/link/3"
	// RaftProtocol names the streams that carry raft messages.
	RaftProtocol = "/raft/1"
	// SnapshotProtocol names the streams that carry one snapshot each: the group, 8 bytes big-endian, then the snapshot
	// as package replica writes it; one byte comes back, 0 if it was installed.
	SnapshotProtocol = "/snapshot/1"
	// PieceProtocol names the streams on which nodes fetch digests, parts of land and bases from one another: one
	// nodemsg.Fetch, one nodemsg.Fetched.
	PieceProtocol = "/piece/1"
	// ExportProtocol names the streams on which a node fetches copies of groups for a backup: one nodemsg.Export, one
	// nodemsg.Fetched, then records of package backup.
	ExportProtocol = "/export/1"
)

// Peers opens streams to other nodes; implemented by the Host of dht/transport within the world's protocols.
type Peers interface {
	Ask(ctx context.Context, peer, protocol string, question []byte) ([]byte, error)
	Open(ctx context.Context, peer, protocol string) (io.ReadWriteCloser, error)
	// Connected lists the nodes to which a connection is open.
	Connected() []string
}

// Clip makes an error's text valid for the wire.
func Clip(err error) string {
	text := err.Error()
	return strings.ToValidUTF8(text[:min(len(text), wire.MaxErrorText)], "")
}
