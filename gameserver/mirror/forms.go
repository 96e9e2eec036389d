package mirror

// forms keeps what codecs have made of something that many subscribers are sent, so that each codec encodes it once.
type forms []form

type form struct{ codec, encoded any }

// get returns what a codec has made, and makes it first if necessary.
func (f *forms) get(codec any, encode func() any) any {
	for _, known := range *f {
		if known.codec == codec {
			return known.encoded
		}
	}
	encoded := encode()
	*f = append(*f, form{codec, encoded})
	return encoded
}
