// Package overlay holds what the machines share that decide which avatars receive whose movement:
// their interface, the messages, and the bytes of messages and packets.
//
//	overlay/psense     Schmieg, Stieler, Jeckel, Kabus, Kemme, Buchmann: A Dynamic Localized Peer-to-Peer Overlay
//	                   Network for Massively Multiplayer Online Games (2008)
//	overlay/areacast   Seeger, Kemme, Kabus, Buchmann: Area-Based Gossip Multicast (2008)
//
// research/sim simulates them, with the papers' measures, and VoxelPopuli's relay through the leader of the avatar's
// region (dissertation §3.2.2).
//
// A Machine belongs to one avatar and is a step machine: once a round its owner passes in the received messages and the
// avatar's position, and gets back the messages to send and the updates for the game. It starts no goroutine, takes no
// lock, reads no clock, and draws from the random source that it was created with. It belongs to one goroutine: the
// gateway that runs the avatar, or a simulator. Machines do not trust their input: lists are bounded (limits.go), and
// lost, duplicated, late or forged messages cost freshness, but never cause a panic.
//
// docs/adr/0022 lists each machine's deviations from its paper, research/ has the measurements.
//
// The packages are floor 2: gameserver and the simulator may import them.
package overlay
