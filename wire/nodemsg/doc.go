// Package nodemsg defines the messages between nodes, and the records that nodes store in the DHT.
//
// Links carry frames: a 4-byte big-endian length and one CBOR value (wire.WriteFrame, wire.ReadFrame): Hello and then
// ToRegion in one direction, FromRegion in the other. Questions and answers are one CBOR value each. A gateway that
// shuts down sends HandoffRequest to others, and each answers with a HandoffOffer, both as one CBOR value. Region and
// PlayerRecord are signed, so their CBOR is canonical (RFC 8949 §4.2.1).
//
// CBOR maps have small integer keys, given by the struct tags; a Pose has its field names. Positions are arrays,
// cells byte strings of their text, player ids byte strings of 16 bytes. Indefinite lengths, tags, duplicate keys,
// NaN, infinities and broken UTF-8 are refused. While it is decoded, a hostile frame may take up to some hundred
// times its size in memory.
package nodemsg
