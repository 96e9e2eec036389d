package wire

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/voxelpopuli/voxeld/wire/notice"
)

// Codes of a Failure, for programs. docs/protocol.md describes what each means to a client.
const (
	// FailBadJSON: not one JSON object, a duplicate key, or bad UTF-8.
	FailBadJSON = "bad_json"
	// FailBadCBOR: not one CBOR map, a duplicate key, or bad UTF-8.
	FailBadCBOR = "bad_cbor"
	// FailTooLong: a handshake, line or frame over its limit.
	FailTooLong = "too_long"
	// FailUnknownMessage: an unknown "type" or packet id.
	FailUnknownMessage = "unknown_message"
	// FailUnknownField: a field that the message does not define.
	FailUnknownField = "unknown_field"
	// FailMissingField: a required field is missing.
	FailMissingField = "missing_field"
	// FailBadType: a field of the wrong JSON type.
	FailBadType = "bad_type"
	// FailBadValue: a number or text out of range, including NaN and infinities.
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
	// FailTimeout: the client did not send enough in time.
	FailTimeout = "timeout"
	// FailRate: too many messages per second, repeatedly.
	FailRate = "rate"
	// FailSlow: the client cannot keep up with block changes and chat.
	FailSlow = "slow"
	// FailFull: no session is free for this address on this node.
	FailFull = "full"
	// FailNoGuests: this world does not admit guests; a key is required.
	FailNoGuests = "no_guests"
	// FailNameTaken: a guest with this name is already playing from another address, or another player has registered
	// it.
	FailNameTaken = "name_taken"
	// FailBanned: the player is banned, or was kicked.
	FailBanned = "banned"
	// FailNotAllowed: this world admits only players with a role.
	FailNotAllowed = "not_allowed"
	// FailReplaced: the same player has joined somewhere else.
	FailReplaced = "replaced"
	// FailShuttingDown: this node is shutting down; another one serves the world.
	FailShuttingDown = "shutting_down"
	// FailUnreadable: this node cannot read what is saved of the player, and no other one takes them now.
	FailUnreadable = "unreadable"
	// FailInternal: an internal error of the server.
	FailInternal = "internal"
)

var failures = []string{
	FailBadJSON, FailBadCBOR, FailTooLong, FailUnknownMessage, FailUnknownField, FailMissingField, FailBadType, FailBadValue,
	FailBadName, FailBadKey, FailBadSignature, FailWrongVersion, FailUnexpected, FailTimeout, FailRate, FailSlow, FailFull,
	FailNoGuests, FailNameTaken, FailBanned, FailNotAllowed, FailReplaced, FailShuttingDown, FailUnreadable, FailInternal,
}

// FailLabels returns all codes of a Failure, which are labels of a metric.
func FailLabels() []string { return slices.Clone(failures) }

// Codes of a refused edit, in Ack.Error and EditResult.Refused.
const (
	// RefusedOutOfWorld: the position does not exist.
	RefusedOutOfWorld = "out_of_world"
	// RefusedOutOfReach: too far from the player's eyes.
	RefusedOutOfReach = "out_of_reach"
	// RefusedUnknownBlock: the block id does not exist.
	RefusedUnknownBlock = "unknown_block"
	// RefusedUnbreakable: the block at this position cannot be removed.
	RefusedUnbreakable = "unbreakable"
	// RefusedNotPlaceable: players may not place this block.
	RefusedNotPlaceable = "not_placeable"
	// RefusedInsidePlayer: a player's body is there.
	RefusedInsidePlayer = "inside_player"
	// RefusedRate: too many edits per second.
	RefusedRate = "rate"
	// RefusedStale: the sequence number was used by another edit, or is too old to check.
	RefusedStale = "stale"
	// RefusedNotLoaded: the chunk is not in the player's view (yet).
	RefusedNotLoaded = "not_loaded"
	// RefusedUnavailable: the region cannot commit at the moment. The client may try the edit again with the same Seq.
	RefusedUnavailable = "unavailable"
	// RefusedMuted: the player is muted, and must not write on signs.
	RefusedMuted = "muted"
	// RefusedText: the block cannot have this text: see CheckSign.
	RefusedText = "bad_text"
	// RefusedSigns: the chunk has MaxSigns signs with a text.
	RefusedSigns = "too_many_signs"
	// RefusedFull: the chunk has as many edited blocks as it can, and this place is not one of them.
	RefusedFull = "chunk_full"
	// RefusedNotAllowed: the player's role does not allow it, or they are banned.
	RefusedNotAllowed = "not_allowed"
	// RefusedOutsideBorder: the block is outside the border that admins have set.
	RefusedOutsideBorder = "outside_border"
	// RefusedUnsigned: the edit is not signed with the player's key, or the proof of who made it is wrong.
	RefusedUnsigned = "unsigned"
	// RefusedClaimed: the block is in a claim of another player.
	RefusedClaimed = "claimed"
	// RefusedQuarantined: the region failed repeatedly, and stays closed until an operator releases it.
	RefusedQuarantined = "quarantined"
	// RefusedChanged: a block of a bulk edit is not what the player has seen there. Nothing was changed.
	RefusedChanged = "changed"
)

var refusals = []string{
	RefusedOutOfWorld, RefusedOutOfReach, RefusedUnknownBlock, RefusedUnbreakable, RefusedNotPlaceable,
	RefusedInsidePlayer, RefusedRate, RefusedStale, RefusedNotLoaded, RefusedUnavailable, RefusedMuted,
	RefusedText, RefusedSigns, RefusedFull, RefusedNotAllowed, RefusedOutsideBorder, RefusedUnsigned,
	RefusedClaimed, RefusedQuarantined, RefusedChanged,
}

// otherRefusal is the label of codes that are not known here.
const otherRefusal = "other"

// RefusalLabels returns all labels that RefusalLabel returns.
func RefusalLabels() []string { return append(slices.Clone(refusals), otherRefusal) }

// RefusalLabel returns the code of a refused edit for a metric: "other" for those that another node has invented, or
// that a later version has.
func RefusalLabel(code string) string {
	if slices.Contains(refusals, code) {
		return code
	}
	return otherRefusal
}

// Error is a refused message: Code is one of the Fail… codes, and Message is for people. Decoders return it for every
// mistake of the other side. A broken connection is a different error.
type Error struct {
	Code    string
	Message string
	Why     notice.Notice // the message, if it says more than the code; zero: it does not
}

// Error returns the code and the message.
func (e *Error) Error() string { return e.Code + ": " + e.Message }

// Refuse returns an Error.
func Refuse(code, format string, args ...any) *Error {
	return &Error{Code: code, Message: fmt.Sprintf(format, args...)}
}

// Stop returns an Error that says more to players than its code does.
func Stop(code string, why notice.Notice) *Error {
	return &Error{Code: code, Message: why.Text, Why: why}
}

// noAnswer replaces the texts of context.DeadlineExceeded, os.ErrDeadlineExceeded and context.Canceled.
var noAnswer = strings.NewReplacer(
	"context deadline exceeded", "there was no answer in time",
	"i/o timeout", "there was no answer in time",
	"context canceled", "it was interrupted",
)

// ErrorText returns the text of an error for people: in answers to operators, on pages, and in notices in the game.
// Other nodes send such texts, too.
func ErrorText(err error) string { return noAnswer.Replace(err.Error()) }

// NoticeOf returns an error as players are shown it: as a notice if it is one, else as ErrorText returns it.
func NoticeOf(err error) notice.Notice {
	if n, is := errors.AsType[notice.Notice](err); is {
		return n
	}
	return notice.New("failed", "{why}", ErrorText(err))
}

// Clip shortens untrusted input for use in a message.
func Clip(b []byte) string {
	const most = 40
	if len(b) > most {
		return string(b[:most]) + "…"
	}
	return string(b)
}
