// Package wire defines every message that leaves a process, and its encoding: between clients and gateways, between
// gateways and regions, between nodes, and the records in the DHT. docs/protocol.md specifies the same for other
// implementations, with examples.
//
// The package has no state, goroutine or socket; its functions are safe for concurrent use. It is floor 1: it imports
// chunk, grid and player, and every package above may import it.
//
// Every decoder checks sizes before it allocates, and refuses input with an *Error: a code for programs and a message
// for people.
//
// # The game port
//
// A connection to the game port opens with one JSON object, the handshake, which ends with its closing brace and may
// be followed by a newline (ReadHandshake). Its "type" determines what follows:
//
//	{"type":"connect","chunk":[X,Z],"player":"name"}   "ok", then packets both ways; or "no", and the end
//	{"type":"generate","chunk":[X,Z]}                  "ok" or "no", and the end
//	{"type":"dht"}                                     "ok", then queries and answers
//	{"type":"ping"}                                    "pong", and the end
//	{"type":"join", …}                                 the session's first message
//
// The answers are bare, without a newline. All but join are VoxelPopuli's own protocol (dissertation §3.2.2 and
// §3.2.4); where its text and its released client differ, the client's bytes are what is written here.
//
// # Packets
//
// One JSON object a line, {"type":id,"args":[numbers],"player":"name"} (DecodeClientPacket, AppendPacket):
//
//	1 PLAYER_REGISTER    X, Z               2 PLAYER_DEREGISTER  X, Z
//	3 PLAYER_MOVE        x, y, z, yaw       5 CHUNK_DATA         X, Z, 32·32·32 blocks at 2 + 1024·x + 32·y + z
//	6 TIME               minutes            7 BLOCK_CHANGE       x, y, z, block
//
// Whole numbers may be written as floats (3.0), as Unity does. A move from a client may omit the yaw; a move to a
// client has one. Yaw is in degrees and turns the opposite way to a Pose's (YawOfOriginal).
//
// # Queries (dht mode)
//
// Byte 0 and [X,Z] asks for a chunk's game server; the answer is {"ip":"…","port":n} and a newline. Byte 1 and
// {"name":"…"} asks for a player's last position; the answer is {"x":…,"y":…,"z":…} without a newline. Queries have
// no terminator (ReadQuery).
//
// # Session
//
// JSON objects with their name in "type", over TCP one per line, over WebSocket one per text frame (EncodeClient,
// DecodeClient, EncodeServer, DecodeServer):
//
//	client   join prove move edit chat hit gift view ping
//	server   challenge welcome chunk chunk_gone frame hit gift denied ack correction pong notice reconnect failure
//
// The server refuses unknown fields; the client ignores them. A frame is the concatenation of pieces, each encoded
// once for all sessions (EncodePiece, AppendFrame). A chunk's data is the chunk codec's bytes (package chunk),
// deflated (PackChunk), in base64.
//
// Reconnect sends a client to another gateway: a list of Gateways, each a WebSocket URL and a game address, the best
// first, and a reason. The client joins there as the same player, and sends unanswered edits again.
//
// If join chooses CBOR, everything after it is in CBOR: maps with the same names and values (EncodeClientCBOR,
// DecodeClientCBOR, EncodeServerCBOR, DecodeServerCBOR), over TCP prefixed with their length (AppendMessage,
// ReadMessage), over WebSocket one per binary frame. Two messages have forms of their own: moves (AppendMove), and
// tick frames (AppendTick, ReadTick), whose pieces are also encoded once for all sessions: the changes of a chunk
// (AppendDelta), and the motion of a cell (MotionWriter), which includes an avatar only if it has left its predicted
// path.
//
// # Between nodes
//
// Links carry frames: a 4-byte big-endian length and one CBOR value (WriteFrame, ReadFrame): Hello and then ToRegion
// in one direction, FromRegion in the other. Questions and answers are one CBOR value each. A gateway that shuts down
// sends HandoffRequest to others, and each answers with a HandoffOffer, encoded likewise. Region and PlayerRecord are signed, so
// their CBOR is canonical (RFC 8949 §4.2.1).
//
// CBOR maps have small integer keys, given by the struct tags; a Pose has its field names. Positions are arrays,
// cells byte strings of their text, player ids byte strings of 16 bytes. Indefinite lengths, tags, duplicate keys,
// NaN, infinities and broken UTF-8 are refused. While it is decoded, a hostile frame may take up to some hundred
// times its size in memory.
package wire
