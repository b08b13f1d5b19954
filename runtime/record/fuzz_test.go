package record

import (
	"os"
	"testing"

	"github.com/starling-operator/starling/runtime/codec"
)

// Whatever is in a file: it is read or refused, and nothing of it is taken on trust.
func FuzzFile(f *testing.F) {
	m, s := newModule(f, "pass"), newStore(f, StoreOptions{})
	put(f, s, m.run(f, nodes("a", "b")))
	for _, name := range []string{"test-1.run"} {
		data, err := os.ReadFile(s.path(name))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Add(front(partHead(), []Name{{1}}))
	f.Add([]byte(`{"format":2,"id":"a-1"}` + "\n"))
	f.Add([]byte("{}\n\xff\xff\xff\xff"))
	f.Fuzz(func(t *testing.T, data []byte) {
		for _, parse := range []func([]byte) (*parsed, error){parseRun, parsePart} {
			if p, err := parse(data); err == nil {
				if len(p.before)+len(p.sealed) != len(data) || len(p.refs) > maxRefs {
					t.Errorf("%+v", p)
				}
				if plain, err := p.open(s.key); err == nil && len(plain) > maxPlain {
					t.Errorf("%d bytes", len(plain))
				}
			}
		}
	})
}

// A sealed body may come from an attacker who has the key.
func FuzzBody(f *testing.F) {
	m, s := newModule(f, asksAll), newStore(f, StoreOptions{})
	trace := m.run(f, nodes("a", "b"))
	tx := s.begin()
	h, b, err := s.pack.body(tx, trace)
	if err != nil {
		f.Fatal(err)
	}
	plain, err := codec.Write(b)
	if err != nil {
		f.Fatal(err)
	}
	put(f, s, trace) // its parts are there
	f.Add(plain)
	f.Add([]byte{0xa0})
	f.Add([]byte("\xa1\x67outcome\x41\xa0"))
	f.Fuzz(func(t *testing.T, data []byte) {
		file, err := runFile(s.key, &compressor{}, h, nil, data)
		if err != nil {
			return
		}
		p, err := parseRun(file)
		if err != nil {
			t.Fatal(err)
		}
		r, err := (&loader{dir: s.o.Dir, key: s.key}).run(p)
		if err != nil {
			return
		}
		mask := NewMask(r)
		_ = Diff(mask.Lines(r.Outcome, false), mask.Lines(r.Outcome, true))
		_, _ = r.Dump()
		if _, err := newWorld(r); err != nil {
			t.Error(err)
		}
	})
}
