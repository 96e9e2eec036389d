// Package policy decides who may do what in a world: roles, registered names, bans, mutes and settings. All of it
// follows from the acts in the catalog's log, in order, so that every node that has the same acts decides the same. An
// act is a command that a player typed in the chat, signed with their key, or that an operator typed on a node, signed
// with the node's.
//
// Acts that are invalid when their turn comes, or that their author may not do, change nothing.
//
// A State is not safe for concurrent use, but any number of goroutines may call its methods that change nothing.
package policy
