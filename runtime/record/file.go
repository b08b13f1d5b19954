package record

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
)

// A run's file is its header, a line of JSON; how many parts it needs, and their names;
// and what is sealed. The file of a part is the same, with the format alone instead of
// the header. The names are not secret, so that parts can be counted without the key.

const (
	// maxHeader and maxRefs bound what comes before what is sealed.
	maxHeader = 64 << 10
	maxRefs   = 1 << 16
	// maxFile bounds a file, in bytes.
	maxFile = 32 << 20
)

var errBroken = errors.New("the file is broken")

// VersionError says that a record was made by a starling that writes another format.
type VersionError struct {
	ID, Version string
	Format      int
}

// Error says which starling can read it.
func (e *VersionError) Error() string {
	return fmt.Sprintf("run %s is a record of another version: starling %s wrote it in format %d, and this one reads format %d; use that starling", e.ID, e.Version, e.Format, Format)
}

// front is the part of a file that is not sealed.
func front(head []byte, refs []Name) []byte {
	out := make([]byte, 0, len(head)+4+len(refs)*len(Name{}))
	out = append(out, head...)
	out = binary.BigEndian.AppendUint32(out, uint32(len(refs)))
	for _, r := range refs {
		out = append(out, r[:]...)
	}
	return out
}

// partHead is the head of a part's file.
func partHead() []byte { return []byte{'p', Format} }

// runFile writes the file of a run.
func runFile(k *Key, pr *compressor, h Header, refs []Name, plain []byte) ([]byte, error) {
	line, err := json.Marshal(h)
	if err != nil {
		return nil, err
	}
	if len(line) >= maxHeader {
		return nil, errors.New("its names are too long")
	}
	return file(k, pr, append(line, '\n'), refs, plain)
}

func file(k *Key, pr *compressor, head []byte, refs []Name, plain []byte) ([]byte, error) {
	if len(refs) > maxRefs || len(plain) > maxPlain {
		return nil, errLarge
	}
	small, err := pr.packed(plain)
	if err != nil {
		return nil, err
	}
	before := front(head, refs)
	return append(before, k.sealed(small, before)...), nil
}

// parsed is a file, taken apart.
type parsed struct {
	header Header // of a run
	refs   []Name
	before []byte
	sealed []byte
}

// parseRun reads what is plain of a run's file. The error is a [VersionError] for one
// of another format.
func parseRun(data []byte) (*parsed, error) {
	end := bytes.IndexByte(data[:min(len(data), maxHeader)], '\n')
	if end < 0 {
		return nil, errBroken
	}
	var h Header
	if err := json.Unmarshal(data[:end], &h); err != nil || !checkID(h.ID) {
		// Of a later format no more is known than this.
		var other struct {
			Format      int
			ID, Version string
		}
		if json.Unmarshal(data[:end], &other) == nil && other.Format > Format {
			return nil, &VersionError{other.ID, other.Version, other.Format}
		}
		return nil, errBroken
	}
	if h.Format != Format {
		return &parsed{header: h}, &VersionError{h.ID, h.Version, h.Format}
	}
	h.Error = ""
	p := &parsed{header: h}
	return p, p.rest(data, end+1)
}

// parsePart reads what is plain of a part's file.
func parsePart(data []byte) (*parsed, error) {
	if !bytes.HasPrefix(data, partHead()) {
		return nil, errBroken
	}
	p := &parsed{}
	return p, p.rest(data, len(partHead()))
}

func (p *parsed) rest(data []byte, at int) error {
	if len(data) < at+4 {
		return errBroken
	}
	n := int(binary.BigEndian.Uint32(data[at:]))
	at += 4
	if n > maxRefs || len(data) < at+n*len(Name{}) {
		return errBroken
	}
	p.refs = make([]Name, n)
	for i := range p.refs {
		at += copy(p.refs[i][:], data[at:])
	}
	p.before, p.sealed = data[:at], data[at:]
	return nil
}

func (p *parsed) size() int { return len(p.before) + len(p.sealed) }

// whole is the file again: what is sealed follows in memory, too.
func (p *parsed) whole() []byte { return p.before[:p.size()] }

// open returns what is sealed.
func (p *parsed) open(k *Key) ([]byte, error) {
	small, err := k.open(p.sealed, p.before)
	if err != nil {
		return nil, err
	}
	return unpacked(small)
}
