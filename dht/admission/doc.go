// Package admission keeps strangers out of a world: a connection is of use only after both nodes have shown a valid
// certificate of it (package trust).
//
// A Gate judges the certificates of other nodes, obtains and renews that of its own node and, on an issuer, admits
// nodes that bring the secret of a token. Until a peer is admitted it is served nothing but Protocol. Nodes pass
// charters and revocations on to each other as soon as they get them.
//
// A Gate may be used from any goroutine; its state is guarded by a mutex, which is not held while a peer is asked.
// Package dht/transport uses a Gate through an interface.
package admission
