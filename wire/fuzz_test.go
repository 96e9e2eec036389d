package wire

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"reflect"
	"testing"

	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/player"
)

// refusedOnly fails unless the error is one that untrusted input may cause.
func refusedOnly(t *testing.T, err error) {
	t.Helper()
	var refused *Error
	if !errors.As(err, &refused) || refused.Code == "" || len(refused.Message) > 1000 {
		t.Fatalf("%T: %v", err, err)
	}
}

func FuzzDecodeClient(f *testing.F) {
	for _, c := range clientMessages {
		f.Add([]byte(c.bytes))
	}
	f.Add([]byte(`{"\u0074ype":"chat","text":"\ud83c\udf0d\n"}`))
	f.Add([]byte(`{"type":"ping","nonce":1e999,"x":[{"a":[null,true,-0.5e-3]}]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		m, err := DecodeClient(data)
		if err != nil {
			refusedOnly(t, err)
			return
		}
		// encoding/json must accept everything that the scanner accepts, with the same result.
		if !json.Valid(data) {
			t.Fatalf("%q is taken as %+v, and is no JSON", data, m)
		}
		encoded, err := EncodeClient(m)
		if err != nil {
			t.Fatal(err)
		}
		again, err := DecodeClient(encoded)
		if err != nil || !reflect.DeepEqual(again, m) {
			t.Fatalf("%+v became %s and then %+v, %v", m, encoded, again, err)
		}
	})
}

// FuzzScanner compares the scanner with encoding/json.
func FuzzScanner(f *testing.F) {
	for _, seed := range []string{`{}`, `{"a":[1,-0.5e+3,{"b":null}],"c":"\u00e9\\"}`, `{"a":"\ud800"}`, `{"a":01}`, `{"a":1,}`, "{\"a\":\"\x1f\"}", `[]`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		var o Object
		if err := o.Parse(data); err != nil {
			refusedOnly(t, err)
			return
		}
		var theirs map[string]json.RawMessage
		if err := json.Unmarshal(data, &theirs); err != nil {
			t.Fatalf("%q is taken; encoding/json: %v", data, err)
		}
		if len(theirs) != o.n {
			t.Fatalf("%q has %d fields, encoding/json sees %d", data, o.n, len(theirs))
		}
		for _, field := range o.fields[:o.n] {
			if raw, ok := theirs[string(field.name)]; !ok || !bytes.Equal(raw, field.raw) {
				t.Fatalf("field %q of %q is %q, encoding/json sees %q", field.name, data, field.raw, raw)
			}
			if field.raw[0] == '"' {
				text, ok := Unquote(field.raw)
				var want string
				if err := json.Unmarshal(field.raw, &want); err != nil || ok && string(text) != want {
					t.Fatalf("%s is %q, encoding/json says %q, %v", field.raw, text, want, err)
				}
			}
		}
	})
}

func FuzzDecodeServer(f *testing.F) {
	for _, c := range serverMessages {
		f.Add([]byte(c.bytes))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		m, err := DecodeServer(data)
		if err != nil {
			refusedOnly(t, err)
			return
		}
		encoded, err := EncodeServer(m)
		if err != nil {
			t.Fatal(err)
		}
		again, err := DecodeServer(encoded)
		if err != nil || reflect.TypeOf(again) != reflect.TypeOf(m) {
			t.Fatalf("%+v became %s and then %+v, %v", m, encoded, again, err)
		}
		twice, err := EncodeServer(again)
		if err != nil || !bytes.Equal(twice, encoded) {
			t.Fatalf("%s became %s, %v", encoded, twice, err)
		}
		if frame, ok := m.(Frame); ok {
			for _, raw := range frame.Chunks {
				if _, err := DecodePiece(raw); err != nil {
					refusedOnly(t, err)
				}
			}
		}
	})
}

func FuzzReadHandshake(f *testing.F) {
	f.Add([]byte(`{"type": "connect", "chunk": [-1,12], "player":"Abrasam"}`))
	f.Add([]byte("{\"type\":\"dht\"}\r\n\x00[0,0]"))
	f.Add([]byte(`{"type":"ping","player":"}\\\""}{`))
	f.Add([]byte(clientMessages[1].bytes))
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
			refusedOnly(t, err)
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
		if client, err := DecodeClientPacket(data); err != nil && len(data) <= MaxLine {
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
			refusedOnly(t, err)
			return
		}
		if !json.Valid(data) {
			t.Fatalf("%q is taken as %+v, and is no JSON", data, p)
		}
		switch p := p.(type) {
		case PlayerMove:
			if !Finite(p.X) || !Finite(p.Y) || !Finite(p.Z) || !Finite(p.Yaw) {
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

func FuzzReadLine(f *testing.F) {
	f.Add([]byte("one\r\n\n two \nthree"), 3)
	f.Fuzz(func(t *testing.T, data []byte, most int) {
		most &= 63
		r := bufio.NewReaderSize(bytes.NewReader(data), 16)
		for {
			line, err := ReadLine(r, most)
			if err != nil {
				break
			}
			if len(line) == 0 || len(line) > most || bytes.IndexByte(line, '\n') >= 0 {
				t.Fatalf("line %q of %q", line, data)
			}
		}
	})
}

func FuzzUnpackChunk(f *testing.F) {
	for _, seed := range [][]byte{nil, {1, 1, 0, 1, 0, 0, 0}, make([]byte, 70000)} {
		packed, err := PackChunk(seed)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(packed)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		b, err := UnpackChunk(data)
		if err != nil {
			refusedOnly(t, err)
			return
		}
		if len(b) > MaxChunkBytes {
			t.Fatalf("%d bytes", len(b))
		}
	})
}

// fuzzCBOR checks a property of every message between nodes: a decoded message is valid, and survives a round trip.
func fuzzCBOR[T interface{ Valid() error }](t *testing.T, data []byte) {
	t.Helper()
	v, err := DecodeCBOR[T](data, MaxFrame)
	if err != nil {
		refusedOnly(t, err)
		return
	}
	if err := v.Valid(); err != nil {
		t.Fatalf("%+v was taken: %v", v, err)
	}
	var stream bytes.Buffer
	if err := WriteFrame(&stream, v); err != nil {
		t.Fatal(err)
	}
	frame := bytes.Clone(stream.Bytes())
	again, err := ReadFrame[T](bufio.NewReader(&stream), MaxFrame)
	if err != nil {
		t.Fatalf("%+v became %x: %v", v, frame, err)
	}
	if err := WriteFrame(&stream, again); err != nil || !bytes.Equal(stream.Bytes(), frame) {
		t.Fatalf("%x became %x, %v", frame, stream.Bytes(), err)
	}
}

func FuzzLink(f *testing.F) {
	for _, v := range []validator{Hello{Region: 7, Cell: aCell}, aToRegion(), aFromRegion(), FromRegion{}} {
		b, err := EncodeCBOR(v, MaxFrame)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		fuzzCBOR[Hello](t, data)
		fuzzCBOR[ToRegion](t, data)
		fuzzCBOR[FromRegion](t, data)
	})
}

func FuzzNode(f *testing.F) {
	region := aRegion()
	for _, v := range []validator{
		region, aRecord(),
		Answer{Region: &region},
		Answer{Member: &aMember, Error: "no"},
		Question{Describe: &Describe{}},
		Question{Introduce: &region},
		Question{Authority: &Locate{}},
		Question{Found: &Found{Cell: aCell, Members: region.Members}},
		Question{Locate: &Locate{}},
		Question{Leaving: &Leaving{}},
		HandoffRequest{Sessions: 7},
		anOffer(),
		Question{Rejoin: &RejoinRequest{Group: 3}},
		Answer{Replica: 4},
		Fetch{Digests: &LogPosition{Group: 3, Index: 9}},
		Fetch{Part: &PartAt{LogPosition: LogPosition{Group: 3, Index: 9}, Sequences: true}},
		Fetch{Base: &BaseOf{Chunk: grid.ChunkPos{X: -1, Z: 2}, Hash: [32]byte{1}}},
		Fetched{Wait: true},
		Fetched{Error: "no"},
		Fetched{Data: []byte{1, 2}},
		Fetched{Digests: []PartDigest{{Chunk: grid.ChunkPos{X: 5}, Memory: [16]byte{7}, Disk: DiskDamaged}, {Sequences: true}}},
	} {
		b, err := EncodeCBOR(v, MaxQuestion)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		fuzzCBOR[Question](t, data)
		fuzzCBOR[Answer](t, data)
		fuzzCBOR[HandoffRequest](t, data)
		fuzzCBOR[HandoffOffer](t, data)
		if o, err := DecodeHandoffOffer(data); err == nil {
			if err := (Reconnect{Gateways: []Gateway{o.Gateway()}}).Valid(); err != nil {
				t.Fatalf("%+v offers what clients refuse: %v", o, err)
			}
		}
		fuzzCBOR[Fetch](t, data)
		fuzzCBOR[Fetched](t, data)
		if r, err := DecodeRegion(data); err == nil {
			if again, err := EncodeRegion(r); err != nil || !bytes.Equal(again, data) {
				t.Fatalf("%x became %x, %v", data, again, err)
			}
		}
		if p, err := DecodePlayerRecord(data); err == nil {
			if again, err := EncodePlayerRecord(p); err != nil || !bytes.Equal(again, data) {
				t.Fatalf("%x became %x, %v", data, again, err)
			}
		}
	})
}
