package wire

import "fmt"

// Codes of a Failure, for programs. docs/protocol.md says what each means to a client.
const (
	// FailBadJSON: not one JSON object, a duplicate key, or bad UTF-8.
	FailBadJSON = "bad_json"
	// FailBadCBOR: not one CBOR map, a duplicate key, or bad UTF-8.
	FailBadCBOR = "bad_cbor"
	// FailTooLong: a handshake, line or frame over its limit.
	FailTooLong = "too_long"
	// FailUnknownMessage: a "type" that does not exist, or an unknown packet id.
	FailUnknownMessage = "unknown_message"
	// FailUnknownField: a field that the message does not have.
	FailUnknownField = "unknown_field"
	// FailMissingField: a field that the message needs.
	FailMissingField = "missing_field"
	// FailBadType: a field of another JSON type than it should have.
	FailBadType = "bad_type"
	// FailBadValue: a number or text out of its range, NaN and infinities included.
	FailBadValue = "bad_value"
	// FailBadName: not 1 to 20 of letters, digits, '_' and '-'.
	FailBadName = "bad_name"
	// FailBadKey: not an Ed25519 public key.
	FailBadKey = "bad_key"
	// FailBadSignature: the signature does not prove the key.
	FailBadSignature = "bad_signature"
	// FailWrongVersion: the client speaks another version of the session protocol.
	FailWrongVersion = "wrong_version"
	// FailUnexpected: a known message at the wrong time, such as a second join.
	FailUnexpected = "unexpected"
	// FailTimeout: nothing, or not enough, was heard in time.
	FailTimeout = "timeout"
	// FailRate: too many messages a second, again and again.
	FailRate = "rate"
	// FailSlow: the client cannot keep up with block changes and chat.
	FailSlow = "slow"
	// FailFull: no session is free, on this node or for this address.
	FailFull = "full"
	// FailNoGuests: this world wants a key.
	FailNoGuests = "no_guests"
	// FailNameTaken: a guest of this name is playing already, from another address.
	FailNameTaken = "name_taken"
	// FailReplaced: the same player has joined somewhere else.
	FailReplaced = "replaced"
	// FailShuttingDown: this node is going away; another one has the world.
	FailShuttingDown = "shutting_down"
	// FailInternal: a fault of the server.
	FailInternal = "internal"
)

// Codes of a refused edit, in Ack.Error and EditResult.Refused.
const (
	// RefusedOutOfWorld: no such position.
	RefusedOutOfWorld = "out_of_world"
	// RefusedOutOfReach: too far from the player's eyes.
	RefusedOutOfReach = "out_of_reach"
	// RefusedUnknownBlock: no such block id.
	RefusedUnknownBlock = "unknown_block"
	// RefusedUnbreakable: what stands there cannot be removed.
	RefusedUnbreakable = "unbreakable"
	// RefusedNotPlaceable: players may not place this block.
	RefusedNotPlaceable = "not_placeable"
	// RefusedInsidePlayer: somebody's body is there.
	RefusedInsidePlayer = "inside_player"
	// RefusedRate: too many edits a second.
	RefusedRate = "rate"
	// RefusedStale: the sequence number was used before, by another edit or too long ago to know.
	RefusedStale = "stale"
	// RefusedNotLoaded: the chunk is not in the player's view (yet).
	RefusedNotLoaded = "not_loaded"
	// RefusedUnavailable: the region cannot commit just now. The edit may be tried again with the same Seq.
	RefusedUnavailable = "unavailable"
	// RefusedQuarantined: the region has failed again and again, and is shut away until an operator releases it.
	RefusedQuarantined = "quarantined"
)

// Error is a message that was refused: Code is one of the Fail… codes, Message is for people.
// Decoders return it for anything that the other side got wrong; a broken connection is another error.
type Error struct {
	Code    string
	Message string
}

// Error returns the code and the message.
func (e *Error) Error() string { return e.Code + ": " + e.Message }

// Failure returns the message that tells a session's client.
func (e *Error) Failure() Failure { return Failure{Code: e.Code, Message: e.Message} }

func refuse(code, format string, args ...any) *Error {
	return &Error{Code: code, Message: fmt.Sprintf(format, args...)}
}

// clip shortens what a stranger sent for use in a message.
func clip(b []byte) string {
	const most = 40
	if len(b) > most {
		return string(b[:most]) + "…"
	}
	return string(b)
}
