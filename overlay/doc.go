// Package overlay decides which avatars receive whose movement (docs/overlays.md). Each avatar has a Machine: relay is
// VoxelPopuli's algorithm, through the leader of the avatar's region; psense and areacast are the papers' peer to peer
// algorithms.
//
//	pSense     Schmieg, Stieler, Jeckel, Kabus, Kemme, Buchmann: A Dynamic Localized Peer-to-Peer Overlay Network
//	           for Massively Multiplayer Online Games (2008)
//	areacast   Seeger, Kemme, Kabus, Buchmann: Area-Based Gossip Multicast (2008)
//
// A machine is a step machine: once a round its owner passes in the received messages and the avatar's position, and
// gets back the messages to send and the updates for the game. It starts no goroutine, takes no lock, reads no clock,
// and draws from the random source that it was created with. It belongs to one goroutine: the gateway that runs the
// avatar, or a simulator (package overlay/sim). Machines do not trust their input: lists are bounded (limits.go), and
// lost, duplicated, late or forged messages cost freshness, but never cause a panic.
//
// docs/overlays.md lists each machine's deviations from its paper, and the measurements.
//
// The package is floor 2: gameserver, region and the simulator may import it.
package overlay
