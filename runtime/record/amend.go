package record

import (
	"slices"

	"github.com/fxamacker/cbor/v2"

	"github.com/starling-operator/starling/runtime/codec"
	"github.com/starling-operator/starling/runtime/message"
)

// maxWhy bounds the text of an amendment, in bytes.
const maxWhy = 4 << 10

// amendment says why what a run asked for could not be committed.
type amendment struct {
	run uint64
	why string
}

func newAmendment(run uint64, err error) amendment {
	return amendment{run, message.Cut(err.Error(), maxWhy)}
}

// Uncommitted makes a run that is kept one whose commit has failed. A run that is not
// kept, or has failed before, stays so.
func (s *Store) Uncommitted(run uint64, err error) error { return s.amend(newAmendment(run, err)) }

func (s *Store) amend(a amendment) error {
	id := ID(s.o.Process, a.run)
	i := slices.IndexFunc(s.runs, func(r *stored) bool { return r.id == id })
	if i < 0 || s.runs[i].failed {
		return nil
	}
	p, err := readFile(s.path(id+runSuffix), parseRun)
	if err != nil {
		return err
	}
	plain, err := p.open(s.key)
	if err != nil {
		return err
	}
	var b map[string]cbor.RawMessage // a body, all but one field as it is
	if err := codec.Read(plain, &b); err != nil {
		return err
	}
	if b["error"], err = codec.Write(a.why); err != nil {
		return err
	}
	if plain, err = codec.Write(b); err != nil {
		return err
	}
	h := p.header
	h.Result, h.AtCommit = ResultFailed, true
	// The body is sealed together with the header: the whole file is new.
	data, err := runFile(s.key, &s.compressor, h, p.refs, plain)
	if err != nil {
		return err
	}
	if err := s.write(id+runSuffix, data); err != nil {
		return err
	}
	r := s.runs[i]
	s.bytes += sizeOf(len(data)) - r.size
	r.failed, r.size = true, sizeOf(len(data))
	s.evict()
	return nil
}
