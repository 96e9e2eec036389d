package codec

import "github.com/voxelpopuli/voxeld/wire/sessionmsg"

// JSON and CBOR are the codecs; CBOR is that of clients that understand only what the first ones did.
var (
	JSON Codec = jsonCodec{}
	CBOR Codec = cborCodec{}
)

// Looks are the parts of an avatar that a client understands in tick frames.
type Looks struct{ Skins, Stances bool }

// Of returns the codec of the encoding that a Join requests.
func Of(encoding string, looks Looks) Codec {
	if encoding == sessionmsg.EncodingCBOR {
		return cborCodec{looks}
	}
	return JSON
}
