// Package admin is the protocol of a node's admin socket, over which operators' commands query and control it: HTTP on
// a Unix socket in the data directory, with answers in JSON. The permissions of the socket's file control access.
//
// Package main of cmd/voxeld serves it; internal/operate holds the commands that use it.
package admin

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/dustin/go-humanize"
	"github.com/dustin/go-humanize/english"

	"github.com/voxelpopuli/voxeld/gameserver"
	"github.com/voxelpopuli/voxeld/policy"
	"github.com/voxelpopuli/voxeld/region"
)

// Status is the state of the node.
type Status struct {
	Version  string        `json:"version"`
	World    string        `json:"world"`
	WorldID  string        `json:"world_id"`
	Peer     string        `json:"peer"`
	Game     string        `json:"game"`
	HTTP     string        `json:"http"`
	Uptime   time.Duration `json:"uptime_ns"`
	Peers    int           `json:"peers"`
	Regions  int           `json:"regions_loaded"`
	Led      int           `json:"regions_led"` // the catalog included
	Players  int           `json:"players"`
	Database int64         `json:"database_bytes"`
	Disk     Disk          `json:"disk"`
	// Unusable counts the replicas that must not be used, as far as this node knows, by the reason in
	// docs/ARCHITECTURE.md.
	Unusable map[string]int `json:"unusable_replicas,omitempty"`
	Copied   bool           `json:"copied,omitempty"` // another machine runs with a copy of this node's data, or did within the last hour
	Catalog  string         `json:"catalog"`          // peer that leads the catalog, as far as known; new land needs it
	URL      string         `json:"url"`              // where other nodes send the browsers of their players
	Draining bool           `json:"draining"`
	NotReady string         `json:"not_ready,omitempty"` // why the node does not take players now

	Access  Access  `json:"access"`
	Backups Backups `json:"backups"`

	CatalogQuorum  bool           `json:"catalog_quorum"`            // the node sees a catalog with a leader
	CatalogUnknown bool           `json:"catalog_unknown,omitempty"` // it sees none, but has just started
	NodeRegions    map[string]int `json:"node_regions"`              // by state: regions that the node holds a replica of, and the catalog
	WorldRegions   map[string]int `json:"world_regions,omitempty"`   // by state: all regions; none if the node does not hold the catalog
}

// Disk is the disk of the data directory.
type Disk struct {
	Dir   string `json:"data_dir"`
	Free  int64  `json:"free_bytes"`      // -1 if it does not say
	Size  int64  `json:"size_bytes"`      // -1 if it does not say
	Full  bool   `json:"full,omitempty"`  // nothing can be written for want of space
	Error string `json:"error,omitempty"` // why nothing can be written now
}

// Problem returns what is wrong with the disk, what that means and what to do; empty if nothing is.
func (d Disk) Problem() string {
	switch {
	case d.Full:
		return fmt.Sprintf("the disk of %s is full (%s): this node stores nothing, and refuses edits unless other nodes lead the land; "+
			"players still see it. Free space there: edits work again by themselves", d.Dir, d.free())
	case d.Error != "":
		return fmt.Sprintf("nothing can be written to %s: %s", d.Dir, d.Error)
	}
	return ""
}

// Filling reports whether less than a tenth of the disk is free: then VoxeldDiskFilling fires, too.
func (d Disk) Filling() bool { return d.Free >= 0 && d.Free < d.Size/10 }

// String returns a line for people.
func (d Disk) String() string {
	text := d.free() + " in " + d.Dir
	if d.Filling() {
		text += ", less than a tenth: once it is full, edits are refused here"
	}
	return cmp.Or(d.Problem(), text)
}

func (d Disk) free() string {
	if d.Free < 0 {
		return "free space unknown"
	}
	return fmt.Sprintf("%s of %s free", humanize.IBytes(uint64(d.Free)), humanize.IBytes(uint64(max(0, d.Size)))) //nolint:gosec // not negative
}

// Access is who may run nodes of the world, and until when this node may.
type Access struct {
	Open    bool      `json:"open"`               // anybody may; the rest is empty then
	Issuer  bool      `json:"issuer,omitempty"`   // this node gives out tokens
	Issuers int       `json:"issuers,omitempty"`  // how many nodes do that are not excluded, this one included
	RootKey bool      `json:"root_key,omitempty"` // the root key is in this node's data directory
	Expires time.Time `json:"certificate_expires,omitzero"`
	RenewAt time.Time `json:"certificate_renewal,omitzero"`
	Error   string    `json:"error,omitempty"` // what is wrong with the certificate
}

// Backups is how the scheduled backups of a node do.
type Backups struct {
	Every  time.Duration `json:"every_ns"`         // 0: there is no schedule
	Target string        `json:"target,omitempty"` // where they are copied to
	Last   time.Time     `json:"last,omitzero"`    // when the last good one was begun; with a target, of those that are there
	Error  string        `json:"error,omitempty"`  // why the last attempt was no good one, or did not reach the target
}

// Overdue reports whether the newest good backup of a node is too old at a time, or there should have been one since
// the node started.
func (b Backups) Overdue(started, now time.Time) bool {
	since := b.Last
	if since.IsZero() {
		since = started
	}
	return b.Every > 0 && now.Sub(since) > b.Every+b.Every/2
}

// String returns a line for people.
func (b Backups) String() string {
	text := "none has succeeded yet since the node started"
	if !b.Last.IsZero() {
		text = "the last good one is of " + b.Last.UTC().Format(time.RFC3339)
	}
	switch {
	case b.Every > 0:
		text += fmt.Sprintf("; one is made every %v", b.Every)
	case b.Last.IsZero():
		text = "none is scheduled on this node (backup_every)"
	default:
		text += "; none is scheduled on this node (backup_every)"
	}
	if b.Target != "" {
		text += "; they are copied to " + b.Target
	}
	if b.Error != "" {
		text += "; failing: " + b.Error
	}
	return text
}

// Doctor is the result of an examination of the world.
type Doctor struct {
	region.Health
	Access Access   `json:"access"`
	Notes  []string `json:"notes,omitempty"` // no problems, but what may become one
}

// Problems lists what is wrong with the node, apart from the states of regions.
func (s Status) Problems() (all []string) {
	if s.NotReady != "" {
		all = append(all, s.NotReady)
	}
	if why := s.Disk.Problem(); why != "" {
		all = append(all, why)
	}
	if s.CatalogUnknown {
		all = append(all, "the catalog's leader is not known yet")
	} else if !s.CatalogQuorum {
		all = append(all, "the catalog has no leader")
	}
	for _, reason := range slices.Sorted(maps.Keys(s.Unusable)) {
		all = append(all, english.Plural(s.Unusable[reason], "replica is", "replicas are")+" "+strings.ReplaceAll(reason, "_", " "))
	}
	return all
}

// Peer is a node known to this one.
type Peer struct {
	Peer      string   `json:"peer"`
	Connected bool     `json:"connected"`
	Latency   string   `json:"latency"`
	Addrs     []string `json:"addrs"`

	// What is known of the node's certificate, if it is connected and the world is not open.
	Operator string    `json:"operator,omitempty"`
	Token    string    `json:"token,omitempty"` // id of the token with which it was admitted
	Expires  time.Time `json:"expires,omitzero"`
	Issuer   bool      `json:"issuer,omitempty"`   // it gives out tokens
	Excluded bool      `json:"excluded,omitempty"` // it, its operator, its token or its issuer was revoked
}

// What a revocation names.
const (
	RevokeNode     = "node"
	RevokeOperator = "operator"
	RevokeToken    = "token"
)

// AccessChange is the result of a change of who may run nodes.
type AccessChange struct {
	Error string `json:"error,omitempty"`
}

// Forgotten is the result of giving up a node that does not come back.
type Forgotten struct {
	Regions int      `json:"regions"`          // of which it is a voter
	Missed  []string `json:"missed,omitempty"` // nodes that were not reached
	Error   string   `json:"error,omitempty"`
}

// Revocation excludes nodes from the world.
type Revocation struct {
	Kind    string    `json:"kind"`
	Subject string    `json:"subject"` // peer, operator or id of a token
	At      time.Time `json:"at"`
	Reason  string    `json:"reason"`
	By      string    `json:"by"` // the issuer that signed it, or "root key"
}

// Invitation is a token that a node has given out and that still admits nodes. It has no secret.
type Invitation struct {
	Token    string    `json:"token"` // its id
	Operator string    `json:"operator"`
	Expires  time.Time `json:"expires"`
	Uses     int       `json:"uses"`             // nodes that it admits; 0: any number
	Used     int       `json:"used"`             // nodes that it has admitted; not counted if it admits any number
	Issuer   bool      `json:"issuer,omitempty"` // they become issuers
}

// Region is a region loaded on this node.
type Region struct {
	ID      string   `json:"id"`
	Cell    string   `json:"cell"`
	Leader  string   `json:"leader"`
	Members []string `json:"members"` // peers, including learners
	Voters  int      `json:"voters"`
	Term    uint64   `json:"term"`
	Links   int      `json:"links"`
	Bodies  int      `json:"players"`
	Edits   int      `json:"edits"`
	// Only of a region that this node leads: the largest share of a limit that its load is, of which kind that is, and
	// what is to become of the region because of it.
	Load     *float64 `json:"load,omitempty"`
	LoadKind string   `json:"load_kind,omitempty"`
	Next     string   `json:"next,omitempty"`
}

// Area is what is in an area of the world.
type Area struct {
	Regions   []AreaRegion  `json:"regions"`
	Players   []AreaPlayer  `json:"players,omitempty"` // if they were requested
	Unfounded []string      `json:"unfounded"`         // cells without a region: nobody has been there
	Missing   []AreaMissing `json:"missing"`           // cells of which nothing is known now; none if the answer is complete
	Questions int           `json:"questions"`         // to other nodes
	Rounds    int           `json:"rounds"`            // of questions one after another
	Took      time.Duration `json:"took_ns"`
}

// AreaRegion is a region in an area.
type AreaRegion struct {
	ID      string   `json:"id"`
	Cell    string   `json:"cell"`
	Leader  string   `json:"leader"`
	Members []string `json:"members"` // peers, including learners
	State   string   `json:"state"`   // open, closed or quarantined
	Players int      `json:"players"`
	Edits   *int     `json:"edits"` // null if the region is closed
}

// AreaPlayer is a player in an area, and the block that they are in.
type AreaPlayer struct {
	ID    string `json:"id"`
	Name  string `json:"name"`
	Guest bool   `json:"guest"`
	X     int32  `json:"x"`
	Y     int32  `json:"y"`
	Z     int32  `json:"z"`
	Cell  string `json:"cell"`
}

// AreaMissing is a cell of which nothing is known.
type AreaMissing struct {
	Cell string `json:"cell"`
	Why  string `json:"why"`
}

// Invite is a join token, or an error.
type Invite struct {
	Token string `json:"token"`
	Error string `json:"error,omitempty"`
}

// Scrub is the result of the scrub of one region.
type Scrub struct {
	ID       string   `json:"id"`
	Cell     string   `json:"cell"`
	Members  int      `json:"members"`
	Reported int      `json:"heard"`
	Parts    int      `json:"parts"`
	Damaged  int      `json:"damaged"`
	Repaired int      `json:"repaired"`
	Open     []string `json:"open"`
	Error    string   `json:"error,omitempty"`
}

// Plan is how regions can be recovered here, or an error.
type Plan struct {
	Plans []region.RecoveryPlan `json:"plans"`
	Error string                `json:"error,omitempty"`
}

// Done is the result of a recovery or a release.
type Done struct {
	Released []string `json:"told,omitempty"`   // peers that have released it
	Missed   []string `json:"missed,omitempty"` // peers that could not be reached
	Error    string   `json:"error,omitempty"`
}

// Text is the answer to a command, or an error.
type Text struct {
	Text  string `json:"text"`
	Error string `json:"error,omitempty"`
}

// Mod is a mod of the world.
type Mod struct {
	Name      string `json:"name"`
	Version   string `json:"version,omitempty"`
	Title     string `json:"title,omitempty"`
	Content   string `json:"content"` // the hash
	Grant     string `json:"grant"`
	Suspended bool   `json:"suspended,omitempty"` // everywhere
	Missing   string `json:"missing,omitempty"`   // why the node has no usable content of it
}

// Roles is who may do what in the world.
type Roles struct {
	Members  []policy.Member     `json:"members"`
	Defined  []policy.Definition `json:"defined"` // by admins, beside the built-in roles
	Settings policy.Settings     `json:"settings"`
}

// AuditEntry is a command that was entered in the world's policy.
type AuditEntry struct {
	Number  uint64    `json:"number"`
	At      time.Time `json:"at"`
	By      string    `json:"by,omitempty"` // the player's name; empty for an operator
	Key     string    `json:"key"`          // that has signed it: the player's, or the node's
	Command string    `json:"command"`
}

// Reloaded is what a reload of the configuration has changed, or an error.
type Reloaded struct {
	Applied []Change `json:"applied"` // in effect
	Restart []Change `json:"restart"` // takes effect after a restart
	Error   string   `json:"error,omitempty"`
}

// Change is a new value of an option.
type Change struct {
	Option string `json:"option"` // as the key of a file
	Old    string `json:"old"`
	New    string `json:"new"`
}

// StepStopped is the last step that a node reports. The process ends after it.
const StepStopped = "stopped"

// ShutdownStep is one line of the progress of a stopping node: a step of its gateway, or the end.
type ShutdownStep struct {
	gameserver.DrainStep
	Error string `json:"error,omitempty"` // of StepStopped: why the node did not stop cleanly
}

// OldCopy is the parameter of a recovery that allows an old copy: everything that was acknowledged since it was made is
// lost.
const OldCopy = "old-copy"

// AllLost is the flag, and the name, for all regions that have lost the majority of their members.
const AllLost = "all-lost"
