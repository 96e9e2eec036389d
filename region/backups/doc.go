// Package backups collects a backup of the world from its nodes while the world runs, and founds a world from one
// (Restore). The files of a backup are those of package internal/backup (docs/adr/0025). Each node serves its copies of
// groups (Exporter.Serve); the one that an operator has asked finds for each group a copy that has everything that was
// acknowledged (plan.go), fetches it and writes it (Exporter.Backup).
//
// Any goroutine may use an Exporter.
package backups

import (
	"context"

	"github.com/voxelpopuli/voxeld/internal/backup"
	"github.com/voxelpopuli/voxeld/region/integrity"
	"github.com/voxelpopuli/voxeld/trust"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
)

// Attester signs for this node, and checks what others have signed.
type Attester interface {
	// Attest signs, with the world's id. It returns this node's key and certificate, too.
	Attest(trust.Attestation) (node trust.Key, signature, certificate []byte, err error)
	// Check returns an error unless the peer has signed, and the certificate admits it.
	Check(peer string, t trust.Attestation, signature, certificate []byte) error
	// Charters returns the sealed charters since the genesis, in order.
	Charters() [][]byte
}

// ExporterOptions are what an Exporter needs. All fields are required, except those whose comment says otherwise.
type ExporterOptions struct {
	integrity.Node

	AskStatuses integrity.AskStatuses
	// Known lists the nodes of the world that this one knows.
	Known func() []string
	// Players visits the records of players in this node's part of the DHT. It may be nil.
	Players func(visit func(nodemsg.PlayerRecord) error) error

	// Attester signs backups; nil in an open world, whose backups nobody signs.
	Attester Attester
	// Contradicted is called with a member that most of the others contradict, and what is wrong, for people.
	Contradicted func(peer, what string)
	// Vouch signs who the catalog's members are, if this node is an issuer, and Vouched reports whether an issuer has.
	Vouch   func(*nodemsg.RegionStatus)
	Vouched func(nodemsg.RegionStatus) bool
	// UpdatePolicy brings this node's copy of the policy up to date.
	UpdatePolicy func(ctx context.Context) error
}

// Exporter serves and collects copies of groups.
type Exporter struct {
	ExporterOptions

	reading  chan struct{} // holds a token for each group that is being read here
	requests *requests     // of other nodes
}

// Known is a group as an earlier backup has it.
type Known struct {
	Position backup.Position
	Sum      backup.ID // of its rows
}

// ExportOptions are what a backup is to have.
type ExportOptions struct {
	Header backup.Header    // whose Area limits the backup
	Base   map[uint64]Known // groups of the backup that Header.Base names
}

// MaxNodes bounds the nodes that are asked for players.
const MaxNodes = 1024

// maxTableBytes bounds what the records of a node's tables may take in memory.
const maxTableBytes = 256 << 20

// maxReading bounds how many groups are read on a node at the same time; the others wait.
const maxReading = 2

// NewExporter returns an exporter.
func NewExporter(o ExporterOptions) *Exporter {
	return &Exporter{ExporterOptions: o, reading: make(chan struct{}, maxReading), requests: newRequests()}
}
