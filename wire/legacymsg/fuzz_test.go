package legacymsg

import (
	"bufio"
	"bytes"
	"encoding/json"
	"reflect"
	"testing"

	"github.com/voxelpopuli/voxeld/player"
	"github.com/voxelpopuli/voxeld/wire"
	"github.com/voxelpopuli/voxeld/wire/wiretest"
)

func FuzzReadHandshake(f *testing.F) {
	f.Add([]byte(`{"type": "connect", "chunk": [-1,12], "player":"Abrasam"}`))
	f.Add([]byte("{\"type\":\"dht\"}\r\n\x00[0,0]"))
	f.Add([]byte(`{"type":"ping","player":"}\\\""}{`))
	f.Add([]byte(`{"type":"join","version":2,"name":"ada","view":6,"encoding":"cbor"}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		r := bufio.NewReader(bytes.NewReader(data))
		h, err := ReadHandshake(r)
		if err != nil {
			return // the end of the stream, or an *Error
		}
		encoded, err := AppendHandshake(nil, h)
		if err != nil {
			if h.Purpose == PurposeConnect && player.CheckName(h.Player) != nil {
				return // a server accepts any name, but the encoder refuses invalid ones
			}
			t.Fatal(err)
		}
		if again, err := DecodeHandshake(encoded); err != nil || again != h {
			t.Fatalf("%+v became %s and then %+v, %v", h, encoded, again, err)
		}
		// Exactly one JSON value was consumed, except for white space around it.
		taken := data[:len(data)-r.Buffered()]
		if len(data) <= r.Size() && !json.Valid(taken) {
			t.Fatalf("%q was taken from %q", taken, data)
		}
	})
}

func FuzzDecodePacket(f *testing.F) {
	for _, c := range packets {
		f.Add([]byte(c.bytes))
	}
	f.Add(AppendChunkData(nil, packets[0].p.(PlayerRegister).Chunk, new(Slab)))
	f.Add([]byte(`{"type":7,"args":[-0.0,1e1,33.0,0.0],"player":""}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		p, err := DecodePacket(data)
		if err != nil {
			wiretest.RefusedOnly(t, err)
			return
		}
		if !json.Valid(data) {
			t.Fatalf("%q is taken as %+v, and is no JSON", data, p)
		}
		if m, ok := p.(PlayerMove); ok {
			m.HasYaw = true // an encoded move always has a yaw
			p = m
		}
		encoded, err := AppendPacket(nil, p)
		if err != nil {
			t.Fatal(err)
		}
		again, err := DecodePacket(encoded)
		if err != nil || !reflect.DeepEqual(again, p) {
			t.Fatalf("%+v became %s and then %+v, %v", p, encoded, again, err)
		}
		if client, err := DecodeClientPacket(data); err != nil && len(data) <= wire.MaxLine {
			t.Fatalf("%q is taken from a server as %+v, and not from a client: %v", data, p, err)
		} else if m, ok := client.(PlayerMove); ok && (m.X != p.(PlayerMove).X || m.Y != p.(PlayerMove).Y || m.Z != p.(PlayerMove).Z) {
			t.Fatalf("%q is taken from a server as %+v, and from a client as %+v", data, p, client)
		}
	})
}

func FuzzDecodeClientPacket(f *testing.F) {
	for _, c := range packets {
		f.Add([]byte(c.bytes))
	}
	f.Add([]byte(`{"type":1,"args":[1.5,[],"x"],"player":"\ud800"}`))
	f.Add([]byte(`{"type":7,"args":[-0.5,1e1,33.9,0.0,7],"player":7,"more":{}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		p, err := DecodeClientPacket(data)
		if err != nil {
			wiretest.RefusedOnly(t, err)
			return
		}
		if !json.Valid(data) {
			t.Fatalf("%q is taken as %+v, and is no JSON", data, p)
		}
		switch p := p.(type) {
		case PlayerMove:
			if !wire.Finite(p.X) || !wire.Finite(p.Y) || !wire.Finite(p.Z) || !wire.Finite(p.Yaw) {
				t.Fatalf("%q is taken as %+v", data, p)
			}
		case ChunkContents, TimeOfDay:
			t.Fatalf("%q is taken as %+v, which servers send", data, p)
		}
	})
}

func FuzzReadQuery(f *testing.F) {
	f.Add([]byte("\x00[-1,2]\x01{\"name\": \"Abrasam\"}\n\x00[0.0,1]"))
	f.Add([]byte("{\"ip\":\"127.0.0.1\",\"port\":4002}\n"))
	f.Add([]byte(`{"x":0,"y":32,"z":0}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		r := bufio.NewReader(bytes.NewReader(data))
		for {
			q, err := ReadQuery(r)
			if err != nil {
				break
			}
			encoded, err := AppendQuery(nil, q)
			if err != nil {
				if who, ok := q.(WhereIsPlayer); ok && player.CheckName(who.Name) != nil {
					continue // a server accepts any name, but the encoder refuses invalid ones
				}
				t.Fatal(err)
			}
			if again, err := ReadQuery(bufio.NewReader(bytes.NewReader(encoded))); err != nil || again != q {
				t.Fatalf("%+v became %q and then %+v, %v", q, encoded, again, err)
			}
		}
		if address, err := ReadChunkAddress(bufio.NewReader(bytes.NewReader(data))); err == nil {
			encoded := AppendChunkAddress(nil, address)
			again, err := ReadChunkAddress(bufio.NewReader(bytes.NewReader(encoded)))
			if err != nil || again.Port() != address.Port() || again.Addr() != address.Addr().Unmap() {
				t.Fatalf("%v became %q and then %v, %v", address, encoded, again, err)
			}
		}
		if x, y, z, err := ReadPlayerPlace(bufio.NewReader(bytes.NewReader(data))); err == nil {
			encoded, err := AppendPlayerPlace(nil, x, y, z)
			if err != nil {
				t.Fatal(err)
			}
			x2, y2, z2, err := ReadPlayerPlace(bufio.NewReader(bytes.NewReader(encoded)))
			if err != nil || x2 != x || y2 != y || z2 != z {
				t.Fatalf("%v %v %v became %s", x, y, z, encoded)
			}
		}
	})
}
