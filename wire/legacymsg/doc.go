// Package legacymsg defines the messages of VoxelPopuli's own protocol, and the handshake that opens every connection
// to the game port (dissertation §3.2.2 and §3.2.4).
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
// From the client: 1, this player is in this chunk now (the arguments are ignored; a missing player is the
// handshake's); 2, the player has left it; 3, the player's feet are here; 7, set this block, sent to all of one's
// chunks, of which the one that holds it applies it. To the client: 1 and 2 to the others in the chunk, and one for
// each player there to a newcomer, each followed by a move; 3 to the others, the newest in each tick; 5 to a newcomer
// at once, and to everybody in the chunk after each change, about 65,600 bytes; 6 to registered players, every tick.
// The client knows the blocks 0 air, 1 stone, 2 grass and 3 dirt; others are shown as the nearest of these. Other
// types, fields and arguments are ignored. A line that is not one JSON object, has a key twice or no type, or is longer
// than 64 KiB ends the connection.
//
// Whole numbers may be written as floats (3.0), as Unity does. A move from a client may omit the yaw; a move to a
// client has one. Yaw is in degrees and turns the opposite way to a Pose's (YawOfOriginal).
//
// # Queries (dht mode)
//
// Byte 0 and [X,Z] asks for a chunk's game server; the answer is {"ip":"…","port":n} and a newline. Byte 1 and
// {"name":"…"} asks for a player's last position; the answer is {"x":…,"y":…,"z":…} without a newline. Queries have
// no terminator (ReadQuery).
package legacymsg
