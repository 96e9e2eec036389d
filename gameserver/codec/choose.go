package codec

import "github.com/voxelpopuli/voxeld/wire/sessionmsg"

// JSON and CBOR are the codecs.
var (
	JSON Codec = jsonCodec{}
	CBOR Codec = cborCodec{}
)

// Of returns the codec of the encoding that a Join requests.
func Of(encoding string) Codec {
	if encoding == sessionmsg.EncodingCBOR {
		return CBOR
	}
	return JSON
}
