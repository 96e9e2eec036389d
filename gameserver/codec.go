package gameserver

import "github.com/voxelpopuli/voxeld/wire"

// encodedIn returns a message in CBOR or JSON. It panics on what neither can hold, which no checked message has.
func encodedIn(binary bool, m wire.FromServer) []byte {
	encode := wire.EncodeServer
	if binary {
		encode = wire.EncodeServerCBOR
	}
	data, err := encode(m)
	if err != nil {
		panic(err)
	}
	return data
}
