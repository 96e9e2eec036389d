// Package sessionmsg defines the messages of sessions, voxeld's own protocol, in JSON and in CBOR.
//
// JSON objects with their name in "type", over TCP one per line, over WebSocket one per text frame (EncodeClient,
// DecodeClient, EncodeServer, DecodeServer). decodeFields has all messages of clients, serverTypes all of servers.
//
// The server refuses unknown fields; the client ignores them. A frame is the concatenation of pieces, each encoded
// once for all sessions (EncodePiece, AppendFrame). A chunk's data is the chunk codec's bytes (package chunk),
// deflated (wire.PackChunk), in base64.
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
// To add a message of a client, declare its type with a clientType and add a case to decodeFields, which checks its
// fields in both encodings. To add a message of the server, declare its type with a serverType and add it to
// serverTypes. Clients may send a new message only to servers that announce it in Welcome, as Map and People: others
// refuse it.
package sessionmsg
