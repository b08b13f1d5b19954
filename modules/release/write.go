package release

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/starling-operator/starling/modules/chart"
	"github.com/starling-operator/starling/modules/helm"
	"github.com/starling-operator/starling/modules/release/owned"
	"github.com/starling-operator/starling/runtime/apply"
)

// lookBeside is how many objects of one kind are read, written or deleted at once.
const lookBeside = 16

// each has f see to all objects, in the order of their kinds, and to those of one kind side by side. One that fails
// holds up no other.
func (m *Manager) each(list []stored, back bool, f func(i int) error) error {
	refused, _ := m.order(back).Each(len(list), func(i int) string { return list[i].key.Kind }, f)
	return errors.Join(refused...)
}

func (m *Manager) order(back bool) apply.Order {
	o := apply.Order{Width: lookBeside, Back: back}
	if m.o.Await != nil {
		o.Width = 1 // the same requests each time
	}
	return o
}

// to is where an object is written.
func (l *life) to(s stored) dynamic.ResourceInterface {
	return l.objects.Resource(s.mapping.Resource).Namespace(s.key.Namespace)
}

// had are the objects of the revision before, by identity.
func (p revisionPlan) had() map[Key]*unstructured.Unstructured {
	had := map[Key]*unstructured.Unstructured{}
	for _, s := range p.was {
		had[s.key.AnyVersion()] = s.obj
	}
	return had
}

// placed is what is there of an object of a release.
type placed struct {
	live   *unstructured.Unstructured // nil: it is not there, or stands
	stands *Object                    // it is as the revision before has left it, and is wanted so
}

// free reads the objects of a release, by place. It refuses an object of others; with Adopt only if they still have it,
// and the release waits for it.
func (l *life) free(p revisionPlan) ([]placed, error) {
	found, had, stands := make([]placed, len(p.want)), p.had(), l.standing(p)
	waits := map[Key]bool{}
	refused, _ := l.m.order(false).Each(len(p.want), func(int) string { return "" }, func(i int) error {
		s := p.want[i]
		was := had[s.key.AnyVersion()]
		if o, is := stands[s.key]; is && was != nil && reflect.DeepEqual(was.Object, s.obj.Object) {
			found[i].stands = &o
			return nil
		}
		live, err := l.to(s).Get(l.ctx, s.key.Name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("%s: %w", s, err)
		}
		found[i].live = live
		if l.target.Adopt {
			why, err := l.m.holder(l.ctx, l.ref, s.key, live)
			if err != nil {
				return fmt.Errorf("asking whose %s is, which module(adopt = True) may take over: %w", s, err)
			}
			if why != "" {
				l.mu.Lock()
				defer l.mu.Unlock()
				waits[s.key.AnyVersion()] = true
				return fmt.Errorf("%s is not taken over, as %s: take it out there, or leave it out here", s, why)
			}
			return nil
		}
		by := l.ref.holderOf(live)
		if was == nil || p.before.Info.Status == helm.StatusFailed { // nobody knows what that one has made
			by = l.others(s.key, live)
		}
		if by == "" {
			return nil
		}
		return held(s.key, by)
	})
	if len(waits) > 0 {
		l.m.claims.Store(l.ref, claims{waits, time.Now().Add(waitsFor)})
	} else {
		l.m.claims.Delete(l.ref)
	}
	return found, errors.Join(refused...)
}

// others says whose an object is that is there, and was not in the revision before; "": it is the release's, or a hook
// of it has made it. An object that Helm, or an earlier Starling, has made for a hook is marked as one, of no release.
func (l *life) others(key Key, live metav1.Object) string {
	by := l.ref.holderOf(live)
	if by != "" || l.m.made(l.ref, live) {
		return by
	}
	ours := l.hooked[key.AnyVersion()]
	for _, e := range live.GetManagedFields() {
		if other, is := strings.CutPrefix(e.Manager, hookManagers); is {
			return "a hook of release " + other
		}
		ours = ours || e.Manager == FieldManager
	}
	if ours && live.GetAnnotations()[helm.HookAnnotation] != "" {
		return ""
	}
	return noRelease
}

// holderOf says which other release has an object, by its annotations; "": none.
func (ref Ref) holderOf(live metav1.Object) string {
	name, namespace := live.GetAnnotations()[helmName], live.GetAnnotations()[helmNamespace]
	switch {
	case name == "" || name == ref.Name && (namespace == ref.Namespace || namespace == ""):
		return ""
	case name == ref.Name:
		return "a release of the same name in namespace " + namespace
	}
	return "the helm release " + name
}

// made says whether a release, or a hook of it, has made an object.
func (m *Manager) made(ref Ref, live metav1.Object) bool {
	if of := live.GetAnnotations(); of[helmName] != "" {
		return of[helmName] == ref.Name && of[helmNamespace] == ref.Namespace
	}
	return ref.hooked(live)
}

// hooked says whether a hook of a release has made an object.
func (ref Ref) hooked(live metav1.Object) bool {
	return slices.ContainsFunc(live.GetManagedFields(), func(e metav1.ManagedFieldsEntry) bool { return e.Manager == ref.hookManager() })
}

// hookManager is the field manager of what hooks of a release make, which carries no other mark of it. It has at most
// 128 characters.
func (ref Ref) hookManager() string {
	name := hookManagers + ref.Namespace + "/" + ref.Name
	if len(name) > 128 {
		return hookManagers + chart.Digest(ref.Namespace+"/"+ref.Name)
	}
	return name
}

const hookManagers = FieldManager + "-hook/"

// foreign is the refusal of an object that is there and belongs to others.
func foreign(key Key, by string) error {
	what := fmt.Sprintf("%s %q", key.Kind, key.Name)
	if key.Namespace != "" {
		what += " in namespace " + key.Namespace
	}
	return fmt.Errorf("%s is there already and belongs to %s: delete or rename one of the two", what, by)
}

// held is the refusal of an object that module(adopt = True) takes over, unless a release has it.
func held(key Key, by string) error {
	err := foreign(key, by)
	if by == noRelease {
		err = fmt.Errorf("%w, or have the release take it over with module(adopt = True)", err)
	}
	return err
}

// noRelease is whose an object is that no release has made.
const noRelease = "no helm release"

// write makes the objects of a revision that are not there, and applies the others.
func (l *life) write(p revisionPlan, found []placed) error {
	had, tried := p.had(), l.tries(p)
	seen := make([]*Object, len(p.want)) // nil: it is ignored as a whole
	err := l.m.each(p.want, false, func(i int) (err error) {
		if seen[i] = found[i].stands; seen[i] != nil {
			return nil
		}
		s, to := p.want[i], l.to(p.want[i])
		paths, all := owned.Ignored(l.target.Ignore, s.key.APIVersion, s.key.Kind, s.key.Name)
		c := change{ref: l.ref, s: s, was: had[s.key.AnyVersion()], live: found[i].live, ignore: paths, tried: tried}
		var now *unstructured.Unstructured
		switch {
		case c.live == nil:
			now, err = l.m.writer(l.warn).Create(l.ctx, to, s.obj)
		case all:
			now, err = l.name(to, s.obj, c.live)
		default:
			now, _, err = c.apply(l.ctx, l.m.writer(l.warn), to)
		}
		if err != nil {
			return fmt.Errorf("cannot apply %s %q: %w", s.key.Kind, s.key.Name, err)
		}
		if c.live == nil || !all {
			l.undid(s, c.was, c.live, now)
		}
		l.policies(s, now)
		if !all {
			o := observe(s.key, now, paths)
			seen[i] = &o
		}
		return nil
	})
	l.seen = []Object{}
	for _, o := range seen {
		if o != nil {
			l.seen = append(l.seen, *o)
		}
	}
	return err
}

// undid notes what others had changed of an object since the revision before, and the write has taken back. A Job that
// is gone may have done its work.
func (l *life) undid(s stored, was, live, now *unstructured.Unstructured) {
	if was == nil || live == nil && (runsOnce(s.obj) || s.obj.GroupVersionKind().GroupKind() == jobKind) {
		return
	}
	var edits []owned.Edit
	if live != nil {
		before := l.m.writer(nil).Before
		edits = owned.Undone(was, live, now, FieldManager, func(by string) bool { return slices.Contains(before, by) })
		if len(edits) == 0 {
			return
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.undone[s.key] = edits
}

// ignored says whether a field is left to others.
func (s stored) ignored(list []owned.Ignore, field owned.Path) bool {
	return slices.ContainsFunc(list, func(i owned.Ignore) bool { return i.Names(s.key.APIVersion, s.key.Kind, s.key.Name, field) })
}

// changedByPolicy is how we tell of a field that is not as it was written.
const changedByPolicy = " is not as the chart has it: a policy or webhook of the cluster changes what is written"

// policies warns of fields of an object that something in the cluster changes as they are written.
func (l *life) policies(s stored, now *unstructured.Unstructured) {
	for _, path := range owned.Refused(s.obj.Object, now, FieldManager) {
		if !s.ignored(l.target.Ignore, path) {
			line := s.key.Kind + "/" + s.key.Name + " " + path.String()
			l.warn(fmt.Sprintf("%s: %s%s; to leave it so: module(ignore = [%q])", s, path, changedByPolicy, line))
		}
	}
}

// standing are the objects that are as the revision before has left them. Where fields of that one were dropped, or
// applied in another way, all are written: the API server says so again.
func (l *life) standing(p revisionPlan) map[Key]Object {
	if l.target.Standing == nil || p.before == nil || p.unknown {
		return nil
	}
	now := l.target.Standing()
	if now.Of == "" || now.Of != p.uid {
		return nil
	}
	stands := make(map[Key]Object, len(now.Seen))
	for _, o := range now.Seen {
		stands[o.Key] = o
	}
	return stands
}

// change is what is wanted of an object that is there.
type change struct {
	ref Ref
	s   stored
	// live is the object as it was seen last.
	live *unstructured.Unstructured
	// was is what was wanted of it before, nil for nothing. It is the object of s itself where that shall be again.
	was *unstructured.Unstructured
	// ignore is left to others, and so is what somebody wrote while hooks of the release ran.
	ignore []owned.Path
	ran    []owned.Span
	// tried reads the revisions that have failed; nil: there are none.
	tried func() (tries, error)
}

// mostMeetings is how often a change is decided anew because others have written the object meanwhile. A controller
// may write the status all the time: lastMeetings more tries apply whatever it has come to.
const mostMeetings, lastMeetings = 3, 5

// apply writes the object, leaves to others what is theirs, and says which fields are left to other writers of the
// release. A change that others make between the look and the write counts, too.
func (c *change) apply(ctx context.Context, w apply.Writer, to dynamic.ResourceInterface) (now *unstructured.Unstructured, left []owned.Edit, err error) {
	for met := 0; ; met++ {
		w.AsSeen = met < mostMeetings
		now, left, err = c.write(ctx, w, to)
		if met == mostMeetings+lastMeetings || !apierrors.IsConflict(err) {
			return now, left, err
		}
		live, lost := to.Get(ctx, c.s.key.Name, metav1.GetOptions{})
		if lost != nil || live.GetUID() != c.live.GetUID() {
			return nil, nil, err
		}
		if by := c.ref.holderOf(live); by != "" && by != c.ref.holderOf(c.live) {
			return nil, nil, foreign(c.s.key, by)
		}
		c.live = live
	}
}

// write is one try of apply.
func (c *change) write(ctx context.Context, w apply.Writer, to dynamic.ResourceInterface) (now *unstructured.Unstructured, left []owned.Edit, err error) {
	live, was := c.live, &unstructured.Unstructured{Object: map[string]any{}}
	if c.was != nil {
		was = c.was
	}
	fields := live.GetManagedFields()
	handed := owned.HandedOver(fields)
	if _, ours := owned.Of(fields, w.Manager, nil); !ours && was != c.s.obj && was.GetAPIVersion() == c.s.obj.GetAPIVersion() { // nothing tells what goes
		if live, err = w.Apply(ctx, to, yielding(was, was, live, slices.Concat(c.ignore, handed))); err != nil {
			return nil, nil, err
		}
		fields = live.GetManagedFields()
	}
	said := []map[string]any{was.Object}
	if len(handed) > 0 && c.tried != nil {
		failed, err := c.tried()
		if err != nil {
			return nil, nil, err
		}
		said = append(said, failed.of(c.s, owned.LastWrite(c.live.GetManagedFields(), w.Manager))...)
	}
	left = owned.ByRelease(live.Object, c.s.obj.Object, fields, w.Manager, c.ran)
	paths := slices.Concat(c.ignore, owned.Unchanged(fields, c.s.obj.Object, said...), owned.Paths(left))
	now, err = w.Apply(ctx, to, yielding(was, c.s.obj, live, paths))
	return now, left, err
}

// yielding is what is wanted of a live object beside what is left to others at the paths; was is what was wanted
// before.
func yielding(was, want, live *unstructured.Unstructured, paths []owned.Path) apply.Object {
	o := apply.Object{Want: want.DeepCopy(), Whole: want.DeepCopy(), Live: live, Was: was.DeepCopy()}
	owned.Yield(o.Was.Object, o.Want.Object, live.DeepCopy().Object, live.GetManagedFields(), FieldManager, paths)
	owned.Keep(o.Whole.Object, live.Object, paths)
	if was == want {
		o.Was = o.Want
	}
	return o
}

// name writes on an object whose it is, and leaves the rest of it.
func (l *life) name(to dynamic.ResourceInterface, obj, live *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	want := onlyNames(obj)
	if apply.Holds(want.Object, live.Object, FieldManager) {
		return live, nil
	}
	body, err := want.MarshalJSON()
	if err != nil {
		return nil, err
	}
	return to.Patch(l.ctx, live.GetName(), types.MergePatchType, body, metav1.PatchOptions{FieldManager: FieldManager})
}

// hookNames are the objects that hooks of a revision make, by identity.
func (l *life) hookNames(rel *helm.Release) map[Key]bool {
	names := map[Key]bool{}
	for _, h := range rel.Hooks {
		list, _, _ := l.m.storedObjects(l.ref, h.Manifest) // one that cannot be read has made nothing
		for _, s := range list {
			names[s.key.AnyVersion()] = true
		}
	}
	return names
}
