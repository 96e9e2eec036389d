package luanti

// Commands to the client.
const (
	toHello           = 2
	toAuthAccept      = 3
	toAccessDenied    = 10
	toBlockData       = 32
	toAddNode         = 33
	toRemoveNode      = 34
	toInventory       = 39
	toTimeOfDay       = 41
	toChatMessage     = 47
	toActiveObjects   = 49 // that are gone, and that are new
	toObjectMessages  = 50
	toHP              = 51
	toMovePlayer      = 52
	toMedia           = 56
	toNodeDefinitions = 58
	toAnnounceMedia   = 60
	toItemDefinitions = 61
	toPrivileges      = 65
	toInventoryForm   = 66
	toMovement        = 69
	toHUDAdd          = 73
	toHUDChange       = 75
	toHUDFlags        = 76
	toSkyLight        = 80 // in place of that of the time of day
	toNodeMetadata    = 89
	toSRPBytesB       = 96
)

// Commands from the client.
const (
	fromNothing         = 0
	fromInit            = 2
	fromInit2           = 17
	fromPlayerPos       = 35
	fromDeletedBlocks   = 37
	fromInventoryAction = 49
	fromChatMessage     = 50
	fromPlayerItem      = 55
	fromInteract        = 57
	fromRequestMedia    = 64
	fromClientReady     = 67
	fromFirstSRP        = 80
	fromSRPBytesA       = 81
	fromSRPBytesM       = 82
)

const (
	protocolVersion = 39
	// serialization is the version of map blocks: the last with zlib.
	serialization = 28
	// denied is the reason of an access denial with a text.
	denied = 10
)

// prefix is that of the names of files.
const prefix = "voxeld_"

// channelOf returns the channel of a packet: land and textures are sent beside the rest, so that they do not delay it.
func channelOf(p []byte) byte {
	if len(p) < 2 {
		return 0
	}
	switch command := uint16(p[0])<<8 | uint16(p[1]); command {
	case toBlockData, toMedia:
		return 2
	case toHUDFlags:
		return 1
	}
	return 0
}

// deny refuses a client, or ends its game, with a reason.
func deny(why string) packet { return begin(toAccessDenied).u8(denied).text(why).u8(0) }
