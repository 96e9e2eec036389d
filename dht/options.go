package dht

import (
	"errors"
	"fmt"
	"log/slog"
	"regexp"
	"time"

	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/trust"
)

// Options select the world whose network a node joins. The zero value of a field means its default.
type Options struct {
	World     string         // world id in hex, at least 16 digits (required)
	Placement grid.Placement // of the world's cells (required)
	Storage   Storage        // keeps the known peers and the records (required)

	// Certificate returns the certificate of a node; false if it is not known. It decides the node's place among the
	// members of groups, so that nobody can choose it. Nil: the world is open, and the node's id decides.
	Certificate func(peer.ID) (trust.Certificate, bool)

	Logger     *slog.Logger          // nil discards
	Registerer prometheus.Registerer // nil registers nowhere

	// Now returns the time of the world, Settled reports whether what is too old by it may be deleted, and Stepped
	// whether the machine's clock, by which kad-dht drops records, is another one. Nil: the time is the machine's.
	Now     func() time.Time
	Settled func() bool
	Stepped func() bool

	// BucketSize is Kademlia's k: peers per bucket, and nodes that hold a record. (Of a player's record, five nodes
	// hold the newest version: docs/adr/0016.) Default 20. It must be the same on all nodes of a world.
	BucketSize int

	// RedialEvery is how often Run looks for lost bootstrap and known peers. Default 2 s. Each peer that does not
	// answer is tried less and less often, down to once in 4 to 64 rounds, depending on how many are lost.
	RedialEvery time.Duration

	// RepublishEvery is how often Run republishes the records that this node signed, so that they reach nodes that
	// joined later and never reach the age of 48 h, at which nodes drop them. Default 1 h.
	RepublishEvery time.Duration
}

// Validate returns an error if an option is missing or out of range.
func (o Options) Validate() error {
	if !worldForm.MatchString(o.World) {
		return fmt.Errorf("dht options: world id %.80q: want at least 16 hex digits", o.World)
	}
	if _, err := grid.ParsePlacement(string(o.Placement)); err != nil {
		return fmt.Errorf("dht options: %w", err)
	}
	if o.Storage == nil {
		return errors.New("dht options: no storage given")
	}
	if o.BucketSize < 0 || o.RedialEvery < 0 || o.RepublishEvery < 0 {
		return errors.New("dht options: a negative value")
	}
	return nil
}

var worldForm = regexp.MustCompile(`^[0-9a-f]{16,128}$`)

func (o Options) withDefaults() Options {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Settled == nil {
		o.Settled = func() bool { return true }
	}
	if o.BucketSize == 0 {
		o.BucketSize = 20
	}
	if o.RedialEvery == 0 {
		o.RedialEvery = 2 * time.Second
	}
	if o.RepublishEvery == 0 {
		o.RepublishEvery = time.Hour
	}
	return o
}
