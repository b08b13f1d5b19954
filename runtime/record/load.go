package record

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"go.starlark.net/starlark"

	"github.com/starling-operator/starling/runtime/codec"
	"github.com/starling-operator/starling/runtime/hook"
)

// List returns the headers of the runs in a folder, the newest first, and how many
// there are of other versions. A folder that is not there has none. With a key, which
// may be nil, headers say why runs have failed. Files that are broken, or go away
// meanwhile, are left out.
func List(dir string, key *Key) (runs []Header, others int, err error) {
	files, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, 0, fmt.Errorf("cannot read the folder of records: %w", err)
	}
	for _, f := range files {
		if !strings.HasSuffix(f.Name(), runSuffix) {
			continue
		}
		p, err := readFile(filepath.Join(dir, f.Name()), parseRun)
		if errors.As(err, new(*VersionError)) {
			others++
		}
		if err != nil {
			continue
		}
		if key != nil && p.header.Failed() && p.header.SealedWith == key.ID() {
			var b struct {
				Error string `cbor:"error"`
			}
			if plain, err := p.open(key); err == nil && codec.Read(plain, &b) == nil {
				p.header.Error = b.Error
			}
		}
		runs = append(runs, p.header)
	}
	slices.SortStableFunc(runs, func(a, b Header) int {
		return cmp.Or(b.Started.Compare(a.Started), strings.Compare(b.ID, a.ID))
	})
	return runs, others, nil
}

// NotFoundError says that a run is not among the records.
type NotFoundError struct{ ID, Dir string }

// Error says where it is not.
func (e *NotFoundError) Error() string {
	return fmt.Sprintf("no run %s is kept in %s; see: starling get runs", e.ID, e.Dir)
}

// Record is one run, opened: what [Replay] needs. Slices and maps in it are only read.
type Record struct {
	Header
	// Sources are the module's files, and what they load, by path.
	Sources map[string][]byte
	// Outcome is what came of the run.
	Outcome Outcome

	given
	outcome []byte // as the codec writes it
	values  map[int]view
}

// view are values that the run saw.
type view struct {
	m   map[string]any
	err string
}

// Load reads one run. Errors: a [NotFoundError]; a [VersionError]; the key is not that
// of the record; the record, or a part of it, is broken.
func Load(dir, id string, key *Key) (*Record, error) {
	p, err := find(dir, id)
	if err != nil {
		return nil, err
	}
	r, err := (&loader{dir: dir, key: key}).run(p)
	if err != nil {
		return nil, fmt.Errorf("run %s: %w", id, err)
	}
	return r, nil
}

const goneMeanwhile = "a part of its record is not there; it may have made room for another run meanwhile"

// find reads what is plain of a run.
func find(dir, id string) (*parsed, error) {
	if !checkID(id) {
		return nil, fmt.Errorf("%q is no id of a run; they look like k3f9-12, see: starling get runs", id)
	}
	p, err := readFile(filepath.Join(dir, id+runSuffix), parseRun)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, &NotFoundError{id, dir}
	case errors.As(err, new(*VersionError)):
		return nil, err
	case err != nil:
		return nil, fmt.Errorf("run %s: its record cannot be read: %w", id, err)
	}
	return p, nil
}

// loader reads the parts of one run.
type loader struct {
	dir  string
	key  *Key
	read int // bytes, so far
}

func (l *loader) run(p *parsed) (*Record, error) {
	if p.header.SealedWith != l.key.ID() {
		return nil, fmt.Errorf("it is sealed with key %s, and this is key %s", p.header.SealedWith, l.key.ID())
	}
	plain, err := p.open(l.key)
	if err != nil {
		return nil, err
	}
	var b body
	if err := codec.Read(plain, &b); err != nil {
		return nil, err
	}
	r := &Record{Header: p.header, given: given{in: b.Inputs, request: b.Inputs.request()}, outcome: b.Outcome, values: map[int]view{}}
	r.Error = b.Error
	if err := codec.Read(b.Outcome, &r.Outcome); err != nil {
		return nil, err
	}
	if err := l.part(part{File: &b.Source}, &r.Sources); err != nil {
		return nil, err
	}
	if err := l.inputs(r, &b.Inputs); err != nil {
		return nil, err
	}
	for _, one := range b.Reads {
		a := reading{question: one.question, err: one.err()}
		if one.Verb == "rows" {
			a.answer, err = l.rows(one)
		} else {
			err = l.part(one.Answer, &a.answer)
		}
		if err != nil {
			return nil, err
		}
		r.reads = append(r.reads, a)
	}
	return r, nil
}

// request is what is plain data of what a run was given.
func (in *inputs) request() hook.Request {
	return hook.Request{
		Namespace: in.Namespace, Instance: in.Instance, Attempt: in.Attempt, Failed: in.Failed, Past: in.Past, Now: in.Now.time(),
		Synced: in.Synced, Unsynced: in.Unsynced, Unserved: in.Unserved, Lacking: in.Lacking, Key: in.Key, Cleanup: in.Cleanup,
		Gone: in.Gone, Switches: in.Switches, Request: in.Request.Request(), Snapshots: map[string][]starlark.Value{},
	}
}

func (l *loader) inputs(r *Record, in *inputs) error {
	var events []event[*codec.Value]
	var object *codec.Value
	if err := errors.Join(
		l.part(in.Events, &events), l.part(in.Object, &object), l.part(in.Config, &r.request.Config), l.part(in.State, &r.request.State), l.part(in.Observed, &r.request.Observed),
		l.part(in.Known, &r.known), l.part(in.Hidden, &r.hidden),
	); err != nil {
		return err
	}
	for _, e := range events {
		r.request.Events = append(r.request.Events, e.event((*codec.Value).Starlark))
	}
	r.request.Object = object.Starlark()
	for binding, name := range in.Snapshots {
		var err error
		if r.request.Snapshots[binding], err = l.snapshot(name); err != nil {
			return err
		}
	}
	for _, one := range append(in.Composed, in.Values) {
		v := view{err: one.Err}
		if err := l.part(one.View, &v.m); err != nil {
			return err
		}
		r.values[one.After] = v
	}
	return nil
}

// snapshot reads a list of parts.
func (l *loader) snapshot(name Name) ([]starlark.Value, error) {
	_, refs, err := l.file(name)
	if err != nil {
		return nil, err
	}
	var all []*codec.Value
	for _, ref := range refs {
		var some []*codec.Value
		if err := l.part(part{File: &ref}, &some); err != nil {
			return nil, err
		}
		all = append(all, some...)
	}
	return frozen(all), nil
}

// rows reads those that a controller has found.
func (l *loader) rows(r read) ([]starlark.Value, error) {
	if r.List != nil {
		return l.snapshot(*r.List)
	}
	var some []*codec.Value
	err := l.part(r.Answer, &some)
	return frozen(some), err
}

// maxRead bounds what one record may become in memory.
const maxRead = 512 << 20

// part reads a part of a record; into is left alone when there is none.
func (l *loader) part(p part, into any) error {
	data := p.Data
	if p.File != nil {
		var err error
		if data, _, err = l.file(*p.File); err != nil {
			return err
		}
	}
	if data == nil {
		return nil
	}
	return codec.Read(data, into)
}

func (l *loader) file(name Name) ([]byte, []Name, error) {
	p, err := readFile(filepath.Join(l.dir, name.String()+partSuffix), parsePart)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil, errors.New(goneMeanwhile)
	}
	var plain []byte
	if err == nil {
		plain, err = p.open(l.key)
	}
	switch {
	case err != nil:
		return nil, nil, fmt.Errorf("a part of its record: %w", err)
	case l.key.nameOf(plain, p.refs) != name:
		return nil, nil, errors.New("a part of its record stands under the name of another")
	}
	if l.read += len(plain); l.read > maxRead {
		return nil, nil, fmt.Errorf("its record takes more than %d MiB of memory", maxRead>>20)
	}
	return plain, p.refs, nil
}

// Check says whether a run can be read, as far as that is known without the key. Errors
// are those of [Load].
func Check(dir, id string) error {
	_, err := find(dir, id)
	return err
}
