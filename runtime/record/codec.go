package record

import (
	"bytes"
	"compress/flate"
	"errors"
	"fmt"
	"io"
	"reflect"
	"time"

	"github.com/fxamacker/cbor/v2"
	"go.starlark.net/starlark"

	"github.com/starling-operator/starling/runtime/object"
)

// Data is CBOR: unlike JSON it keeps 1 and 1.0 apart, as Starlark does, and takes any
// text.

const (
	// maxPlain bounds one part of a record, in bytes before it is packed.
	maxPlain = 64 << 20
	// maxNested is deeper than data of a run can be.
	maxNested = 2*object.MaxDepth + 20
)

// codec writes the same bytes for the same data, and reads them back as they were.
type codec struct {
	enc cbor.EncMode
	dec cbor.DecMode
}

func newCodec() (*codec, error) {
	e := cbor.CoreDetEncOptions()
	e.ShortestFloat = cbor.ShortestFloatNone
	e.NaNConvert, e.InfConvert = cbor.NaNConvertNone, cbor.InfConvertNone
	e.TextMarshaler = cbor.TextMarshalerTextString
	enc, err := e.EncMode()
	if err != nil {
		return nil, err
	}
	dec, err := cbor.DecOptions{
		DefaultMapType:   reflect.TypeFor[map[string]any](),
		IntDec:           cbor.IntDecConvertSignedOrFail,
		UTF8:             cbor.UTF8DecodeInvalid,
		TextUnmarshaler:  cbor.TextUnmarshalerTextString,
		MaxNestedLevels:  maxNested,
		MaxArrayElements: 1 << 24,
		MaxMapPairs:      1 << 24,
	}.DecMode()
	return &codec{enc, dec}, err
}

func (c *codec) write(v any) ([]byte, error) {
	out, err := c.enc.Marshal(v)
	if err != nil {
		return nil, fmt.Errorf("cannot be written down: %w", err)
	}
	return out, nil
}

func (c *codec) read(data []byte, into any) error {
	if err := c.dec.Unmarshal(data, into); err != nil {
		return errors.New("it is no record, or a broken one")
	}
	return nil
}

// compressor makes data smaller. It serves one goroutine.
type compressor struct {
	w   *flate.Writer
	out bytes.Buffer
}

// packed returns bytes that are valid until the next call.
func (p *compressor) packed(plain []byte) ([]byte, error) {
	p.out.Reset()
	if p.out.Cap() > 1<<20 {
		p.out = bytes.Buffer{} // one large part is not a reason to hold on to so much
	}
	if p.w == nil {
		var err error
		if p.w, err = flate.NewWriter(&p.out, flate.BestSpeed); err != nil {
			return nil, err
		}
	}
	p.w.Reset(&p.out)
	if _, err := p.w.Write(plain); err != nil {
		return nil, err
	}
	err := p.w.Close()
	return p.out.Bytes(), err
}

// unpacked is the reverse of packed.
func unpacked(data []byte) ([]byte, error) {
	r := flate.NewReader(bytes.NewReader(data))
	plain, err := io.ReadAll(io.LimitReader(r, maxPlain+1))
	if err != nil || len(plain) > maxPlain {
		return nil, errors.New("it is broken, or larger than a record may be")
	}
	return plain, nil
}

// value is a Starlark value of a snapshot or an event: what a watch keeps.
type value struct {
	// Lazy means an object, as the cluster has it; else what a filter has returned.
	Lazy  bool `cbor:"o,omitempty"`
	Plain any  `cbor:"v"`
}

// valueOf is nil for no value.
func valueOf(v starlark.Value) (*value, error) {
	switch v := v.(type) {
	case nil:
		return nil, nil
	case *object.Object:
		return &value{true, v.Map()}, nil
	}
	plain, err := object.ToPlain(v)
	if err != nil {
		return nil, err
	}
	return &value{false, plain}, nil
}

// plainOf is the data of a value that [valueOf] takes, nil for no value.
func plainOf(v starlark.Value) any {
	one, err := valueOf(v)
	if err != nil || one == nil {
		return nil
	}
	return one.Plain
}

// starlark is the reverse of valueOf.
func (v *value) starlark() starlark.Value {
	if v == nil {
		return nil
	}
	if m, ok := v.Plain.(map[string]any); ok && v.Lazy {
		return object.New(m)
	}
	return object.FromPlain(v.Plain)
}

// moment is a time with its zone, as a hook may show it.
type moment struct {
	At     int64  `cbor:"at"` // nanoseconds since 1970
	Zone   string `cbor:"zone,omitempty"`
	Offset int    `cbor:"offset,omitempty"` // seconds east of UTC
}

func momentOf(t time.Time) moment {
	zone, offset := t.Zone()
	return moment{t.UnixNano(), zone, offset}
}

func (m moment) time() time.Time {
	zone := time.UTC
	if m.Offset != 0 || m.Zone != "UTC" {
		zone = time.FixedZone(m.Zone, m.Offset)
	}
	return time.Unix(0, m.At).In(zone)
}
