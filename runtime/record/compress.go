package record

import (
	"bytes"
	"compress/flate"
	"errors"
	"io"
)

// maxPlain bounds one part of a record, in bytes before it is packed.
const maxPlain = 64 << 20

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
