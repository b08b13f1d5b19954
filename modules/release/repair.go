package release

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/starling-operator/starling/modules/chart"
	"github.com/starling-operator/starling/modules/helm"
	"github.com/starling-operator/starling/modules/release/owned"
)

// repairsSideBySide is how many objects of one kind are repaired at a time.
const repairsSideBySide = 8

// RepairTarget says which objects of a release shall be as its last revision has them. Of the target it needs the name,
// and what the chart may hold, what is left to others, what no error may show, and the timeout.
type RepairTarget struct {
	Target
	// Only are the objects to repair, nil for all.
	Only []Key
	// Gone are those of Only that were seen to be gone: they are made without a look whether they are
	// there, and looked at if that fails.
	Gone []Key
	// Report writes nothing but the label by which objects are watched: Repair.Written are
	// the objects that would have been written.
	Report bool
}

// Repair is how a [Manager.Repair] went.
type Repair struct {
	// Written are the objects whose values were not as the revision has them, in Helm's
	// order. Others of which managedFields or the label alone was missing do not count.
	Written []Key
	// Edits are the fields of Written that others had changed, by object. One that was gone, or whose API
	// server does not say who has written what, has none.
	Edits map[Key][]owned.Edit
	// Left are fields that stay as other writers of the release have left them, each once for this process.
	Left map[Key][]owned.Edit
	// Failed are the objects that could not be put right, nil if the error is about more than single objects.
	Failed []Key
	// Objects has Seen for the objects that were looked at. Digest is "" when these were not all.
	Objects Objects
	// Lost: there is no deployed revision to go by, or, with an error, a kind of the release is not
	// served any more. The release must be reconciled, which applies the chart's definitions again.
	Lost bool
	// Waits says, for people, what must end before objects can be made anew; "": nothing.
	Waits string
}

// Repair gives the objects of a release the values of its newest deployed revision, and makes
// those anew that are gone. Nothing is deleted, no revision is made, and what others have added
// stays. Jobs and Pods that may have done their work are not made anew: of the objects in Only that
// goes for those that a controller deletes in the end, else for all Jobs.
//
// One request looks at each object that is not known to be gone, and one writes those that differ. Errors are for
// people and hold no values; the Repair that comes with one tells what was done before.
func (m *Manager) Repair(ctx context.Context, t RepairTarget) (_ Repair, err error) {
	ctx, leave, err := m.enter(ctx, t.Timeout)
	if err != nil {
		return Repair{}, err
	}
	defer leave(&err)
	r := &repair{m: m, ctx: ctx, t: t, gone: sets.New(t.Gone...)}
	err = r.run()
	return r.out, readable(ctx, r.t.Target, r.rendering(), err)
}

// repair is one call of Repair.
type repair struct {
	m        *Manager
	ctx      context.Context
	t        RepairTarget
	manifest string
	ran      []owned.Span // when hooks of the revision ran
	looks    map[Key]*look
	gone     sets.Set[Key]
	out      Repair
}

// rendering is what a reconcile would have, as far as errors go by it.
func (r *repair) rendering() rendering {
	return rendering{files: map[string]string{"manifest": r.manifest}}
}

func (r *repair) run() error {
	if err := validateName(r.t.Ref()); err != nil {
		return err
	}
	r.lookAhead()
	rel, uid, waits, err := r.m.deployed(r.ctx, r.t.Ref())
	if r.out.Waits = waits; err != nil || waits != "" {
		return err
	}
	if rel == nil {
		r.out.Lost = true
		if r.m.terminating(r.ctx, r.t.Namespace) {
			r.out.Waits = deletedNamespace(r.t.Namespace)
		}
		return nil
	}
	r.manifest, r.ran, r.out.Objects.Of = rel.Manifest, HooksRan(rel), uid
	holds(r.ctx, len(rel.Manifest))
	all, unserved, err := r.m.storedObjects(r.t.Ref(), rel.Manifest)
	if err != nil {
		return err
	}
	if err := r.m.limitList(r.t.Target, all); err != nil {
		return err
	}
	list := r.chosen(all)
	found := r.each(list)
	if slices.ContainsFunc(found, func(o outcomeOf) bool { return o.unserved }) { // it may be served in another version
		r.m.ResetDiscovery()
		if all, unserved, err = r.m.storedObjects(r.t.Ref(), rel.Manifest); err != nil {
			return err
		}
		for _, s := range r.chosen(all) {
			i := slices.IndexFunc(list, func(was stored) bool { return was.key.AnyVersion() == s.key.AnyVersion() })
			if i >= 0 && found[i].unserved && s.moved {
				list[i], found[i] = s, r.one(s, false)
			}
		}
	}
	r.note(all, found)
	err = r.failure(found)
	if r.out.Lost = r.out.Lost || len(unserved) > 0; r.out.Lost {
		if err == nil {
			err = errUnserved(unserved[0])
		}
		r.m.ResetDiscovery()
		r.m.kindless.Store(r.t.Ref(), nil)
	}
	if r.out.Lost || r.ctx.Err() != nil {
		r.out.Failed = nil
	}
	if err != nil || r.out.Objects.Digest == "" || r.t.Report && len(r.out.Written) > 0 {
		return err
	}
	return r.m.NoteObjects(r.ctx, r.t.Ref(), r.out.Objects)
}

// errUnserved says that an object is of a kind that is not there, mostly because somebody has
// deleted its CustomResourceDefinition.
func errUnserved(o chart.Object) error {
	return fmt.Errorf("%s: the cluster does not serve kind %s of %s any more; apply its CustomResourceDefinition if it is not in crds/ of the module or its chart", o, o.Kind, o.APIVersion)
}

// chosen are the objects to repair.
func (r *repair) chosen(all []stored) []stored {
	wanted := sets.New[Key]()
	for _, key := range r.t.Only {
		wanted.Insert(key.AnyVersion())
	}
	return slices.DeleteFunc(slices.Clone(all), func(s stored) bool {
		_, ignored := owned.Ignored(r.t.Ignore, s.key.APIVersion, s.key.Kind, s.key.Name)
		return ignored || s.key.Name == "" || r.t.Only != nil && !wanted.Has(s.key.AnyVersion())
	})
}

// each repairs objects, those of one kind side by side, in Helm's order of kinds. Each is tried,
// whatever comes of the others.
func (r *repair) each(list []stored) []outcomeOf {
	out := make([]outcomeOf, len(list))
	order := r.m.order(false)
	order.Width = min(order.Width, repairsSideBySide)
	_, _ = order.Each(len(list), func(i int) string { return list[i].key.Kind }, func(i int) error {
		out[i] = r.one(list[i], r.gone.Has(list[i].key))
		return nil
	})
	return out
}

// note says what was found and done. Objects that are ignored as a whole are watched by nobody.
func (r *repair) note(all []stored, found []outcomeOf) {
	out := &r.out
	out.Edits, out.Left = map[Key][]owned.Edit{}, map[Key][]owned.Edit{}
	var names []Object
	for _, s := range all {
		if _, ignored := owned.Ignored(r.t.Ignore, s.key.APIVersion, s.key.Kind, s.key.Name); !ignored {
			names = append(names, Object{Key: s.key})
		}
	}
	out.Objects.Kinds = kindsOf(names)
	complete := r.t.Only == nil
	for _, o := range found {
		complete = complete && o.err == nil && o.waits == ""
		out.Lost, out.Waits = out.Lost || o.unserved, cmp.Or(out.Waits, o.waits)
		if o.err != nil && !o.unserved {
			out.Failed = append(out.Failed, o.key)
		}
		if o.seen != nil {
			out.Objects.Seen = append(out.Objects.Seen, *o.seen)
		}
		if len(o.left) > 0 {
			out.Left[o.key] = o.left
		}
		if o.written {
			out.Written = append(out.Written, o.key)
		}
		if o.written && len(o.edits) > 0 {
			out.Edits[o.key] = o.edits
		}
	}
	if complete {
		out.Objects.Digest = DigestOf(out.Objects.Seen, r.t.Ignore)
	}
}

// failure is the error of a repair: the first one, and how many more.
func (r *repair) failure(found []outcomeOf) error {
	if r.ctx.Err() != nil {
		return context.Cause(r.ctx)
	}
	failed := slices.DeleteFunc(slices.Clone(found), func(o outcomeOf) bool { return o.err == nil })
	if len(failed) == 0 {
		return nil
	}
	err := failed[0].err
	if !failed[0].unserved { // masked before it is cut: a part of a secret is not known
		text := chart.Tidy(newMask(r.t.Target, r.rendering()).Text(err.Error()))
		err = fmt.Errorf("%s: %w", chart.Object{Ref: failed[0].key}, &worded{text, err})
	}
	if len(failed) > 1 {
		err = fmt.Errorf("%w, and %d more", err, len(failed)-1)
	}
	return err
}

// deployed reads the newest revision of a release; nil: there is none, or it is not deployed. Waits
// says, for people, that somebody works on the release with helm. The revision that this process has
// seen last is read without a list, with a look whether there is a newer one.
func (m *Manager) deployed(ctx context.Context, ref Ref) (rel *helm.Release, uid, waits string, err error) {
	get := func(number int) (*helm.Release, string, error) {
		rel, uid, err := m.read(ctx, ref, number)
		if apierrors.IsNotFound(err) || err == nil && rel.Info.Status != helm.StatusDeployed {
			return nil, "", nil
		}
		return rel, uid, err
	}
	known, is := m.current.Load(ref)
	seen, _ := known.(deployed)
	if is {
		next := make(chan error, 1)
		look := func() { // Helm makes it before it writes an object, and leaves this one as it is until the end
			in := m.meta.Resource(secretsResource()).Namespace(ref.Namespace)
			_, err := in.Get(ctx, helm.Key(ref.Name, seen.number+1), metav1.GetOptions{})
			next <- err
		}
		if m.o.Await != nil {
			look() // the same requests each time
		} else {
			go look()
		}
		rel, uid, err := get(seen.number)
		newer := <-next
		if apierrors.IsNotFound(newer) && (err != nil || rel != nil && uid == seen.uid) {
			return rel, uid, "", err
		}
		if newer != nil && !apierrors.IsNotFound(newer) {
			return nil, "", "", fmt.Errorf("looking for revision %d: %w", seen.number+1, newer)
		}
	}
	last, err := m.latest(ctx, ref)
	if err != nil || last.Number == 0 {
		return nil, "", "", err
	}
	if last.Status.IsPending() && time.Since(last.Made) < mostHelm {
		return nil, "", fmt.Sprintf("revision %d of release %s is %s: somebody works on it with helm", last.Number, ref, last.Status), nil
	}
	if last.Status != helm.StatusDeployed {
		return nil, "", "", nil
	}
	if owner(last.Labels, m.o.Instance, ref.Module) != "" ||
		is && last.UID != seen.uid && last.Labels[LabelInputs] != seen.inputs {
		m.o.Log.Warn().Str("module", ref.Module).Str("release", ref.Name).Int("revision", last.Number).
			Msg("somebody has made a revision of other inputs with helm, as helm rollback does: the release is made anew as the module has it")
		return nil, "", "", nil
	}
	rel, uid, err = get(last.Number)
	if rel != nil {
		m.current.Store(ref, deployed{last.Number, uid, last.Labels[LabelInputs]})
	}
	return rel, uid, "", err
}

// mostHelm is how long somebody's helm may work on a revision until it counts as cut off.
const mostHelm = time.Hour
