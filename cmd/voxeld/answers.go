package main

import (
	"time"

	"github.com/voxelpopuli/voxeld/region"
)

// The answers of the admin socket, in JSON.

// statusAnswer is the state of the node.
type statusAnswer struct {
	Version  string        `json:"version"`
	World    string        `json:"world"`
	WorldID  string        `json:"world_id"`
	Peer     string        `json:"peer"`
	Game     string        `json:"game"`
	HTTP     string        `json:"http"`
	Uptime   time.Duration `json:"uptime_ns"`
	Peers    int           `json:"peers"`
	Regions  int           `json:"regions_loaded"`
	Players  int           `json:"players"`
	Database int64         `json:"database_bytes"`
	Damaged  int           `json:"damaged_copies"` // known on this node and not repaired
	Catalog  string        `json:"catalog"`        // peer that leads the catalog, as far as known; new land needs it
	URL      string        `json:"url"`            // where other nodes send the browsers of their players
	Draining bool          `json:"draining"`
}

// peerAnswer is a node known to this one.
type peerAnswer struct {
	Peer      string   `json:"peer"`
	Connected bool     `json:"connected"`
	Latency   string   `json:"latency"`
	Addrs     []string `json:"addrs"`
}

// regionAnswer is a region loaded on this node.
type regionAnswer struct {
	ID      string   `json:"id"`
	Cell    string   `json:"cell"`
	Leader  string   `json:"leader"`
	Members []string `json:"members"` // peers, including learners
	Voters  int      `json:"voters"`
	Term    uint64   `json:"term"`
	Links   int      `json:"links"`
	Bodies  int      `json:"players"`
	Edits   int      `json:"edits"`
}

// inviteAnswer is a join token.
type inviteAnswer struct {
	Token string `json:"token"`
}

// scrubAnswer is the result of the scrub of one region.
type scrubAnswer struct {
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

// planAnswer is how regions can be recovered here, or an error.
type planAnswer struct {
	Plans []region.Recovery `json:"plans"`
	Error string            `json:"error,omitempty"`
}

// doneAnswer is the result of a recovery or a release.
type doneAnswer struct {
	Released []string `json:"told,omitempty"`   // peers that have released it
	Missed   []string `json:"missed,omitempty"` // peers that could not be reached
	Error    string   `json:"error,omitempty"`
}

// allLost is the flag, and the name, for all regions that have lost the majority of their members.
const allLost = "all-lost"
