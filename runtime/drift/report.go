package drift

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/starling-operator/starling/modules/release"
	"github.com/starling-operator/starling/runtime/effect"
	"github.com/starling-operator/starling/runtime/engine"
)

// learnAll looks at the releases that have objects of a kind.
func (t *Tracker) learnAll(k *kind) {
	for _, releases := range k.uses {
		for r := range releases {
			if !r.busy && !r.exact && !r.verify {
				t.learn(r)
				t.tell(r)
			}
		}
	}
}

// learn takes what the watches show of a release for what it should hold, if the digest says that
// it is as Starling has left it. Else, and where the API server does not say who has written what,
// a repair has to look at each object. A copy that somebody has made of an object, with its labels
// and annotations, has no fields of Starling's, and does not count.
func (t *Tracker) learn(r *tracked) {
	shown := true
	for _, at := range r.scopes {
		k := t.kind(at.APIVersion, at.Kind)
		if why := k.failed; apierrors.IsForbidden(why) || apierrors.IsMethodNotSupported(why) {
			r.verify = true // no watch will tell
			return
		}
		shown = shown && k.shows(at.Namespace)
	}
	if !shown {
		return
	}
	var found []release.Object
	for o := range r.objects {
		if o.have != nil && o.have.known {
			found = append(found, release.Object{Key: o.ref(), Owned: o.have.owned})
		}
	}
	if release.DigestOf(found, t.ignoredOf(r.at)) != r.digest {
		r.verify = true
		return
	}
	r.exact = true
	for o := range r.objects {
		switch {
		case o.have == nil:
			t.drop(o)
		case o.have.known:
			o.expected, o.want, o.version = true, o.have.owned, o.have.version
			t.compare(o)
		}
	}
}

// blind says which objects of a release are not watched, and why; "": all are.
func (t *Tracker) blind(r *tracked) string {
	var out []string
	for _, k := range t.kindsOf(r.scopes) {
		if k.failed == nil {
			continue
		}
		n := 0
		for o := range r.objects {
			n += one(o.expected && o.kind == k)
		}
		what := fmt.Sprintf("%d of kind %s", n, k.kind)
		if n == 0 { // nobody has counted them yet
			what = "those of kind " + k.kind
		}
		out = append(out, what+": "+k.failed.Error())
	}
	return strings.Join(out, "; ")
}

// Drift is what differs of a module's releases now.
func (t *Tracker) Drift(module string) engine.Drift {
	t.mu.Lock()
	defer t.mu.Unlock()
	out := engine.Drift{Module: module}
	for _, r := range t.releases {
		if r.module != module {
			continue
		}
		r.due, r.told = false, false
		if r.busy {
			continue
		}
		out.Verify, out.Blind = out.Verify || r.verify, cmp.Or(out.Blind, t.blind(r))
		r.told = r.off > 0 || r.verify || t.blind(r) != ""
		if r.off == 0 {
			continue
		}
		for o := range r.objects {
			switch {
			case o.differ && o.have == nil:
				out.Objects = append(out.Objects, engine.DriftObject{Ref: o.ref(), Missing: true})
			case o.differ:
				out.Objects = append(out.Objects, engine.DriftObject{Ref: o.ref(), By: o.have.managers()})
			case o.going:
				out.Going = append(out.Going, o.ref())
			}
		}
	}
	slices.SortFunc(out.Objects, func(a, b engine.DriftObject) int { return a.Compare(b.Ref) })
	slices.SortFunc(out.Going, effect.Ref.Compare)
	return out
}

func (o *object) ref() effect.Ref {
	return effect.Ref{APIVersion: o.kind.apiVersion, Kind: o.kind.kind, Namespace: o.namespace, Name: o.name}
}
