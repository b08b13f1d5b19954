package cluster

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/starling-operator/starling/runtime/effect"
	"helm.sh/helm/v3/pkg/releaseutil"
)

// defaultSideBySide is how many members of a set are read, written or deleted at a time.
const defaultSideBySide = 8

// sideBySide calls fn with 0 to n-1, begun in this order, up to width at a time. After a
// failure none is begun any more. The error is that of the first in order which failed.
func sideBySide(n, width int, fn func(i int) error) error {
	var (
		mu      sync.Mutex
		next    int
		failed  = n
		err     error
		crashed any
		wg      sync.WaitGroup
	)
	begin := func() (i int, ok bool) {
		mu.Lock()
		defer mu.Unlock()
		if next == n || failed < n || crashed != nil {
			return 0, false
		}
		next++
		return next - 1, true
	}
	end := func(i int, e error, p any) {
		mu.Lock()
		defer mu.Unlock()
		if p != nil {
			crashed = p
		}
		if e != nil && i < failed {
			failed, err = i, e
		}
	}
	work := func() {
		for i, ok := begin(); ok; i, ok = begin() {
			func() {
				var e error
				defer func() { end(i, e, recover()) }()
				e = fn(i)
			}()
		}
	}
	for range min(width, n) - 1 {
		wg.Go(work)
	}
	work()
	wg.Wait()
	if crashed != nil { // somebody guards the caller's goroutine, nobody the others
		panic(fmt.Sprint(crashed))
	}
	return err
}

// refusals are the errors of items which hold up no other.
type refusals map[int]error

// note returns the error if it ends the whole: nobody answers, or this process may not write any more.
func (r refusals) note(ctx context.Context, i int, err error) error {
	if err == nil || ctx.Err() != nil || InTrouble(err) || errors.Is(err, ErrFenced) || errors.Is(err, ErrStandby) {
		return err
	}
	r[i] = err
	return nil
}

func (r refusals) err() error {
	errs := make([]error, 0, len(r))
	for _, i := range slices.Sorted(maps.Keys(r)) {
		errs = append(errs, r[i])
	}
	return Joined(errs)
}

// maxErrors is how many errors are shown of what fails side by side.
const maxErrors = 5

// Joined is the error of several, in one line; nil when there are none.
func Joined(failed []error) error {
	if len(failed) == 0 {
		return nil
	}
	err := failed[0]
	for _, next := range failed[1:min(len(failed), maxErrors)] {
		err = fmt.Errorf("%w; %w", err, next)
	}
	if more := len(failed) - maxErrors; more > 0 {
		err = fmt.Errorf("%w; and %d more", err, more)
	}
	return err
}

// kindByKind calls fn with the indexes of all refs: kinds in Helm's order, one after the
// other, the objects of one kind side by side in the order of refs. Back turns the order of
// kinds round, as for a removal.
func kindByKind(refs []effect.Ref, width int, back bool, fn func(i int) error) error {
	order := make([]int, len(refs))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int {
		c := compareKinds(refs[a].Kind, refs[b].Kind)
		if back {
			return -c
		}
		return c
	})
	for len(order) > 0 {
		n := 1
		for n < len(order) && refs[order[n]].Kind == refs[order[0]].Kind {
			n++
		}
		group := order[:n]
		if err := sideBySide(n, width, func(i int) error { return fn(group[i]) }); err != nil {
			return err
		}
		order = order[n:]
	}
	return nil
}

// compareKinds is Helm's order of installation; kinds that Helm does not know come last, by
// name.
func compareKinds(a, b string) int { return cmp.Or(cmp.Compare(rank(a), rank(b)), cmp.Compare(a, b)) }

func rank(kind string) int {
	if i := slices.Index(releaseutil.InstallOrder, kind); i >= 0 {
		return i
	}
	return len(releaseutil.InstallOrder)
}
