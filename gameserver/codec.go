package gameserver

import "github.com/voxelpopuli/voxeld/wire/sessionmsg"

// encodedIn returns a message in CBOR or JSON. It panics on what neither can hold, which no checked message has.
func encodedIn(binary bool, m sessionmsg.FromServer) []byte {
	encode := sessionmsg.EncodeServer
	if binary {
		encode = sessionmsg.EncodeServerCBOR
	}
	data, err := encode(m)
	if err != nil {
		panic(err)
	}
	return data
}
