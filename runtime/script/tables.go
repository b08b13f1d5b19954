package script

import (
	"fmt"

	"go.starlark.net/starlark"
	"go.starlark.net/starlarkstruct"
	"go.starlark.net/syntax"
)

// Sets and dicts hash all that is put into them, or looked for in them, and compare what
// has the same hash. A builtin that goes over many elements in one step looks at the limits of the
// run in between.

const (
	// maxKeyValues is how many values a tuple or struct may hold that is a key or an element
	// of a set, 64 bytes of text counting as one: it is hashed again whenever its dict or
	// set grows.
	maxKeyValues = 1000
	// hashedBetween is how many elements lie between two looks.
	hashedBetween = 64
)

// keyFits says why a value is too large to be hashed often.
func keyFits(v starlark.Value) error {
	switch v.(type) {
	case starlark.Tuple, *starlarkstruct.Struct:
		if c := (&comparison{left: 4 * maxKeyValues, more: tooLargeKey}); c.key(v) != nil {
			_, err := tooLargeKey()
			return err
		}
	}
	return nil
}

func tooLargeKey() (int, error) {
	return 0, fmt.Errorf("a key, or an element of a set, holds more than %d values", maxKeyValues)
}

// watched goes over what is put into a table, or looked for in one, until something is in
// the way: then it ends, and says why.
type watched struct {
	starlark.Iterable
	pairs bool // of keys and values
	run   *run
	n     int
	err   error
}

// Iterate begins a loop.
func (w *watched) Iterate() starlark.Iterator { return watchedIterator{w.Iterable.Iterate(), w} }

type watchedIterator struct {
	starlark.Iterator
	*watched
}

// Next has one more turn.
func (i watchedIterator) Next(p *starlark.Value) bool {
	if i.err != nil || !i.Iterator.Next(p) {
		return false
	}
	if i.n++; i.n%hashedBetween == 0 {
		i.err = i.run.look()
	}
	if i.err == nil {
		key := *p
		if pair, ok := key.(starlark.Tuple); i.pairs && ok && len(pair) > 0 {
			key = pair[0]
		}
		i.err = keyFits(key)
	}
	return i.err == nil
}

// Done ends the loop.
func (i watchedIterator) Done() { i.Iterator.Done() }

// watchedCall calls what goes over its arguments to put them into a table.
func watchedCall(t *starlark.Thread, f *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple, pairs bool) (starlark.Value, error) {
	all := make(starlark.Tuple, len(args))
	var over []*watched
	for i, arg := range args {
		all[i] = arg
		of, ok := arg.(starlark.Iterable)
		if _, table := arg.(starlark.IterableMapping); ok && !(pairs && table) {
			w := &watched{Iterable: of, pairs: pairs, run: runOf(t)}
			over, all[i] = append(over, w), w
		}
	}
	v, err := f.CallInternal(t, all, kwargs)
	for _, w := range over {
		if w.err != nil {
			return nil, w.err
		}
	}
	return v, err
}

func boundedDict(t *starlark.Thread, b *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	n, err := firstSize(b.Name(), args, 2*maxKeys, keyCost)
	if err == nil {
		err = room(t, n)
	}
	if err != nil {
		return nil, err
	}
	if len(args) == 1 && len(kwargs) == 0 {
		if from, ok := args[0].(*starlark.Dict); ok {
			d := starlark.NewDict(from.Len())
			return d, copyInto(t, d, from)
		}
	}
	return watchedCall(t, starlark.Universe["dict"].(*starlark.Builtin), args, kwargs, true)
}

// copyInto puts all of a dict into another one.
func copyInto(t *starlark.Thread, d, from *starlark.Dict) error {
	r := runOf(t)
	for i, item := range from.Items() {
		if i%hashedBetween == hashedBetween-1 {
			if err := r.look(); err != nil {
				return err
			}
		}
		if err := d.SetKey(item[0], item[1]); err != nil {
			return err
		}
	}
	return nil
}

func dictUpdate(t *starlark.Thread, d *starlark.Dict, own *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	if len(args) == 1 && len(kwargs) == 0 {
		if from, ok := args[0].(*starlark.Dict); ok {
			if err := copyInto(t, d, from); err != nil {
				return nil, fmt.Errorf("%s: %w", own.Name(), err)
			}
			return starlark.None, nil
		}
	}
	return watchedCall(t, own, args, kwargs, true)
}

// tables is x op y of two sets, or two dicts; nil where they are not.
func tables(t *starlark.Thread, op syntax.Token, x, y starlark.Value) (starlark.Value, error) {
	switch x := x.(type) {
	case *starlark.Set:
		method := map[syntax.Token]string{syntax.PIPE: "union", syntax.MINUS: "difference", syntax.AMP: "intersection", syntax.CIRCUMFLEX: "symmetric_difference"}[op]
		if y, ok := y.(*starlark.Set); ok && method != "" {
			return setMethod(t, x, method, starlark.Tuple{y}, nil)
		}
	case *starlark.Dict:
		if y, ok := y.(*starlark.Dict); ok && op == syntax.PIPE {
			z := starlark.NewDict(x.Len())
			err := copyInto(t, z, x)
			if err == nil {
				err = copyInto(t, z, y)
			}
			return z, err
		}
	}
	return nil, nil
}

// setMethod is x.name(args). Where the language copies x first, that is done here.
func setMethod(t *starlark.Thread, x *starlark.Set, name string, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	var over starlark.Iterable
	if len(args) == 1 && len(kwargs) == 0 {
		over, _ = args[0].(starlark.Iterable)
	}
	copies := name == "union" || name == "difference" || name == "symmetric_difference"
	if !copies || x.Len() < noticedHeld || over == nil {
		m, err := x.Attr(name)
		if err != nil {
			return nil, err
		}
		return watchedCall(t, m.(*starlark.Builtin), args, kwargs, false)
	}
	z := starlark.NewSet(x.Len())
	from := &watched{Iterable: x, run: runOf(t)}
	it := from.Iterate()
	err := z.InsertAll(it)
	it.Done()
	other := &watched{Iterable: over, run: from.run, err: from.err}
	it = other.Iterate()
	defer it.Done()
	for e := starlark.Value(nil); err == nil && it.Next(&e); {
		found := false
		if name != "union" {
			found, err = z.Delete(e)
		}
		if err == nil && name != "difference" && !found {
			err = z.Insert(e)
		}
	}
	if other.err != nil {
		return nil, other.err
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return z, nil
}
