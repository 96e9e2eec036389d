// Package nodemsg defines the messages between nodes, and the records that nodes store in the DHT.
//
// Links carry frames: a 4-byte big-endian length and one CBOR value (wire.WriteFrame, wire.ReadFrame): Hello and then
// ToRegion in one direction, FromRegion in the other. Questions and answers are one CBOR value each. A gateway that
// shuts down sends HandoffRequest to others, and each answers with a HandoffOffer, both as one CBOR value. Region and
// PlayerRecord are signed, so their CBOR is canonical (RFC 8949 §4.2.1).
//
// The names of streams are prefixed with /voxeld/ and the first 16 digits of the world's id:
//
//	/link/3                  Hello, then ToRegion; back FromRegion, at most one a tick, at least one every 750 ms
//	/ask/1, /raft/1, /snapshot/1, /piece/1, /export/1    as package region/transport says
//	/gateway/1, /players/1   HandoffRequest and HandoffOffer; PlayersRequest (lines to the whole world, too) and PlayersAnswer
//	/incarnation/1           two Lineages, one each way (docs/adr/0024)
//	/overlay/2               movement, one way: overlay.AppendPacket, at most 1 MiB. A round is the milliseconds since
//	                         1970 divided by 50, modulo 2^32
//
// /voxeld/admission/1, without the world's id, carries all that a peer is served until both have shown a certificate
// (dht/admission/message.go); in an open world /voxeld/genesis/1 has the genesis for new nodes. The DHT has signed
// Regions (under /chunk/<dx>,<dz>/<label>/<nonce>) and PlayerRecords (under /player/<id>), of which
// PlayerRecord.Compare says which counts. Frames must arrive completely within 10 s. Unknown keys are ignored, except
// in signed records. A feature is used only once Answer.Version of every node includes it (Version).
//
// CBOR maps have small integer keys, given by the struct tags; a Pose has its field names. Positions are arrays,
// cells byte strings of their text, player ids byte strings of 16 bytes. Indefinite lengths, tags, duplicate keys,
// NaN, infinities and broken UTF-8 are refused. While it is decoded, a hostile frame may take up to some hundred
// times its size in memory.
package nodemsg
