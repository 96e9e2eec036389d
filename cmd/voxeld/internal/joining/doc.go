// Package joining brings a node into a world: it asks other nodes for the genesis or, with the secret of a token, for a
// certificate; it keeps strangers out from then on; and on nodes that may do so it gives out tokens and revokes nodes.
//
// It has no goroutine of its own.
package joining
