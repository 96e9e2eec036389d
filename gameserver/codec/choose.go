package codec

import "github.com/voxelpopuli/voxeld/wire/sessionmsg"

// JSON and CBOR are the codecs. SkinnedCBOR is CBOR for clients that understand skins in tick frames.
var (
	JSON        Codec = jsonCodec{}
	CBOR        Codec = cborCodec{}
	SkinnedCBOR Codec = cborCodec{skins: true}
)

// Of returns the codec of the encoding that a Join requests, for a client that understands skins or not.
func Of(encoding string, skins bool) Codec {
	switch {
	case encoding != sessionmsg.EncodingCBOR:
		return JSON
	case skins:
		return SkinnedCBOR
	}
	return CBOR
}
