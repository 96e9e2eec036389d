// Package trust decides which nodes belong to a world.
//
// A world's genesis names its root keys. Its Charter, which a majority of these keys sign, names the issuers: nodes
// that admit others. A node is admitted with the secret of an Invitation. An issuer then signs its Certificate, which
// it shows on every connection. A Revocation ends certificates before they expire. An Authority holds what one node
// knows of all this, and judges certificates.
//
// Everything is verified from the genesis on: it does not matter who passed it on.
//
// This package is pure: times are arguments, and what is to be stored or sent is returned.
package trust
