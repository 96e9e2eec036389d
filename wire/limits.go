package wire

import (
	"time"

	"github.com/voxelpopuli/voxeld/chunk"
	"github.com/voxelpopuli/voxeld/player"
)

// Limits of the game port and of sessions. Exceeding one fails only the offending connection, with a clear Error.
const (
	// MaxHandshake is the longest handshake object, in bytes.
	MaxHandshake = 4 << 10
	// MaxQuery is the longest JSON value after the type byte in dht mode, in bytes.
	MaxQuery = 1 << 10
	// MaxLine is the longest line or text frame that a client may send, in bytes, without the newline.
	MaxLine = 64 << 10
	// MaxServerLine is the longest line that a server sends, in bytes: a tall, incompressible chunk.
	MaxServerLine = 4 << 20
	// MaxChunkBytes is the longest chunk in the chunk codec: version, section count and
	// 32 sections with two-byte indices.
	MaxChunkBytes = 2 + MaxSections*(1+2*32*32*32)

	// HandshakeTimeout is how long a connection may take for its handshake, and again for Prove.
	HandshakeTimeout = 5 * time.Second

	// MaxView is the largest view distance, in chunks in each direction.
	MaxView = 12
	// MaxHistoryPlayers is the most players whose changes one question about history, or one rollback, selects.
	MaxHistoryPlayers = 8
	// MaxSignLines is how many lines the text of a sign has at most, and MaxSignLine how many characters each of them.
	MaxSignLines = 4
	MaxSignLine  = 20
	// MaxSignText is the longest text of a sign, in bytes of UTF-8: with the line feeds between its lines.
	MaxSignText = MaxSignLines*(4*MaxSignLine+1) - 1
	// MaxSigns is the most signs with a text in one chunk.
	MaxSigns = 64
	// MaxChat is the longest chat line, in bytes of UTF-8.
	MaxChat = 256
	// MaxName is the longest player name, in bytes (ASCII). player.CheckName holds the rule.
	MaxName = player.MaxName
	// MaxSections is the tallest world, in sections of 32 blocks.
	MaxSections = chunk.MaxSections
)

// Limits between nodes.
const (
	// MaxFrame is the longest frame of a link, in bytes, without the length prefix.
	MaxFrame = 4 << 20
	// MaxQuestion is the longest Question, Answer or DHT record, in bytes.
	MaxQuestion = 64 << 10
	// MaxMembers is the largest region group.
	MaxMembers = 16
	// MaxPeerID is the longest peer id in base58, in bytes.
	MaxPeerID = 128
	// MaxAddress is the longest host:port, in bytes.
	MaxAddress = 261
	// MaxErrorText is the longest Answer.Error or FromRegion.Closed, in bytes.
	MaxErrorText = 1 << 10
	// MaxWatch is the most chunks in one list of a link message: a whole domain.
	MaxWatch = 64 * 64
	// MaxBodies is the most avatars, moves, edits or chat lines in one list of a link message.
	MaxBodies = 1 << 14
	// MaxStamp is the longest clock of a chat line, in bytes: enough for at least 32 players.
	MaxStamp = 1 << 10
	// MaxDone is the most events that a player can have counted: the milliseconds from 1970 to the year 10,000. A
	// counter at the end of its range would silence the player for ever.
	MaxDone = 253_402_300_800_000
	// MaxBlocks is the most blocks in one list of a link message.
	MaxBlocks = 1 << 18
)

// ColumnBlocks is the number of blocks of the tallest column.
const ColumnBlocks = MaxSections * chunk.SectionBlocks
