// Package overlay decides who tells whom about movement (DESIGN §8). Each avatar has a Machine: relay is VoxelPopuli's
// way, through the leader of its region; psense and areacast are the papers' peer to peer algorithms.
//
//	pSense     Schmieg, Stieler, Jeckel, Kabus, Kemme, Buchmann: A Dynamic Localized Peer-to-Peer Overlay Network
//	           for Massively Multiplayer Online Games (2008)
//	areacast   Seeger, Kemme, Kabus, Buchmann: Area-Based Gossip Multicast (2008)
//
// A machine is a step machine: once a round its owner hands it what came in and where its avatar is, and gets back what
// is to be sent and what the game learns. It starts no goroutine, takes no lock, reads no clock, and draws from the
// random source that it was made with. It belongs to one goroutine: the gateway that runs the avatar, or a simulator
// (package overlay/sim). Nothing in a machine trusts what others sent: lists are bounded (limits.go), and messages that
// were lost, doubled, late or made up cost freshness, never a panic.
//
// docs/overlays.md lists each machine's deviations from its paper, and what was measured.
//
// The package is floor 2: gameserver, region and the simulator may import it.
package overlay
