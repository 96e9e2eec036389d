// Package raftgroup is one raft group (go.etcd.io/raft/v3) on one node: the handle that its owner uses (Group), and the
// state machine behind it (Replica). It makes no commits and has no clock: package replica calls Tick, Act and Stage,
// stores what Stage returns, and calls Staged.Stored. After each call it carries out the Effects.
//
// A Replica belongs to the goroutine of replica.Host.Run. A Group's methods may be called from any goroutine. Only
// package replica imports this package, and has aliases of what region may use.
package raftgroup
