package inputs

import (
	"bytes"
	"testing"
)

// Whatever is in a file: it is read or refused, and an input that is read can be written.
func FuzzFile(f *testing.F) {
	data := live(f).file()
	f.Add(data)
	for r := bytes.NewReader(data); ; {
		at := len(data) - r.Len()
		if e, err := readEntry(r); err != nil {
			break
		} else if e.Input != nil {
			f.Add(data[at : len(data)-r.Len()])
		}
	}
	f.Add([]byte("\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"))
	f.Fuzz(func(t *testing.T, data []byte) {
		r := bytes.NewReader(data)
		for {
			e, err := readEntry(r)
			if err != nil {
				return
			}
			if e.Input == nil {
				continue
			}
			in, err := (&decoder{}).input(e.Input.Kind, e.Input.Data)
			if err != nil {
				continue
			}
			if _, err := raw(in); err != nil {
				t.Error(err)
			}
		}
	})
}
