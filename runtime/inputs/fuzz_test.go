package inputs

import (
	"bytes"
	"testing"
)

// Whatever is in a file: it is read or refused, and an input that is read can be written.
func FuzzFile(f *testing.F) {
	c := newCodec(f)
	data := live(f).file()
	f.Add(data)
	for r := bytes.NewReader(data); ; {
		at := len(data) - r.Len()
		if e, err := readEntry(r, c); err != nil {
			break
		} else if e.Input != nil {
			f.Add(data[at : len(data)-r.Len()])
		}
	}
	f.Add([]byte("\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"))
	f.Fuzz(func(t *testing.T, data []byte) {
		r := bytes.NewReader(data)
		for {
			e, err := readEntry(r, c)
			if err != nil {
				return
			}
			if e.Input == nil {
				continue
			}
			in, err := (&decoder{codec: c}).input(e.Input.Kind, e.Input.Data)
			if err != nil {
				continue
			}
			if _, err := raw(c, in); err != nil {
				t.Error(err)
			}
		}
	})
}
