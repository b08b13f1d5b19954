package release

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/starling-operator/starling/modules/chart"
	"github.com/starling-operator/starling/modules/release/owned"
	"github.com/starling-operator/starling/runtime/apply"
	"github.com/starling-operator/starling/runtime/effect"
)

// Key names an object of a release, by the API version of the manifest. Namespace is empty for
// kinds that have none, and for no others.
type Key = effect.Ref

// Object is one object of a release as it was after the last write of Starling.
type Object struct {
	Key
	// Version is the resourceVersion.
	Version string
	// Owned is what [FieldManager] owns of it, without what Target.Ignore names. It is zero where
	// the API server does not say that.
	Owned owned.Digest
	// Missing says that it is not there, and that [RepairTarget.Report] has left it so; Owned is what
	// Starling would own.
	Missing bool
}

// Scope is where objects of one kind are watched; Namespace is empty for kinds that have none.
type Scope struct{ APIVersion, Kind, Namespace string }

// Compare orders scopes by API version, kind and namespace.
func (s Scope) Compare(o Scope) int {
	kinds := cmp.Or(cmp.Compare(s.APIVersion, o.APIVersion), cmp.Compare(s.Kind, o.Kind))
	return cmp.Or(kinds, cmp.Compare(s.Namespace, o.Namespace))
}

// MarshalText writes it in short, as the records hold one for each kind of each release: "apps/v1 Deployment apps".
func (s Scope) MarshalText() ([]byte, error) {
	return []byte(strings.TrimSpace(s.APIVersion + " " + s.Kind + " " + s.Namespace)), nil
}

// UnmarshalText reads what MarshalText has written.
func (s *Scope) UnmarshalText(text []byte) error {
	parts := strings.Fields(string(text))
	if len(parts) != 2 && len(parts) != 3 {
		return fmt.Errorf("%q is no kind with its namespace", text)
	}
	*s = Scope{APIVersion: parts[0], Kind: parts[1]}
	if len(parts) == 3 {
		s.Namespace = parts[2]
	}
	return nil
}

// Objects is what a release holds, as far as it is watched for drift: Helm's hooks, and objects
// that are ignored as a whole, are not in it.
type Objects struct {
	// Of is the uid of the Secret of the revision.
	Of string `json:"of"`
	// Kinds is where to watch, sorted; nil when Digest is "".
	Kinds []Scope `json:"kinds,omitempty"`
	// Digest is that of all objects, see [DigestOf]; "" when it is not known: an earlier version
	// of Starling, Helm or a process that ended early has made the revision, or others own fields
	// that it gives a value. A [Manager.Repair] of all objects tells, and takes them over.
	Digest string `json:"digest,omitempty"`
	// Seen are objects as Starling's write has left them; nil when nothing was written or read.
	Seen []Object `json:"-"`
}

// DigestOf returns one digest of all objects of a release, whatever their order: their names and
// what is owned of them. An autoscaler that comes to own spec.replicas does not change it. The list
// of ignored parts counts: a field that others have taken while it was ignored is owned neither then
// nor after that, so another list has to have all objects compared anew.
func DigestOf(objects []Object, ignore []owned.Ignore) string {
	lines := make([]string, 0, len(objects)+len(ignore))
	for _, i := range ignore {
		lines = append(lines, fmt.Sprintf("ignore %s\n", i))
	}
	for _, o := range objects {
		lines = append(lines, fmt.Sprintf("%s %s %s %s %x\n", o.APIVersion, o.Kind, o.Namespace, o.Name, o.Owned.Stable()))
	}
	slices.Sort(lines)
	lines = slices.Compact(lines)
	sum := sha256.Sum256([]byte(strings.Join(lines, "")))
	return hex.EncodeToString(sum[:16])
}

// FieldManager is the manager in metadata.managedFields of what releases write.
const FieldManager = "starling"

// writer writes the objects of releases. Writes of Helm's command, of Flux and of others that have Helm in their
// process count as Starling's, which works on the release.
func (m *Manager) writer(warn func(text string)) apply.Writer {
	return apply.Writer{Manager: FieldManager, Before: []string{"helm", "helm-controller"}, Wrote: wroteAsHelm, Copied: copied, Warn: warn}
}

// wroteAsHelm says whether a manager has made the object as Helm does, under another name. People who name
// a release on an object by hand do not. Nor is what a hook has made another one's.
func wroteAsHelm(e metav1.ManagedFieldsEntry) bool {
	if strings.HasPrefix(e.Manager, hookManagers) {
		return true
	}
	if e.FieldsV1 == nil || strings.HasPrefix(e.Manager, "kubectl") {
		return false
	}
	fields := e.FieldsV1.GetRawString()
	return strings.Contains(fields, `"f:`+helmName+`"`) && strings.Contains(fields, `"f:`+helmManages+`"`)
}

// copied says whether a manager has made an object of a release from a copy, as a backup does.
func copied(e metav1.ManagedFieldsEntry) bool {
	return e.Manager != FieldManager && e.FieldsV1 != nil && strings.Contains(e.FieldsV1.GetRawString(), `"f:`+effect.ReleasedByLabel+`"`)
}

// NoteObjects keeps in the record of a release of what objects it consists. A record that is
// the same already costs nothing; without a digest nothing is kept.
func (m *Manager) NoteObjects(ctx context.Context, ref Ref, o Objects) (err error) {
	ctx, leave, err := m.enter(ctx, recordWrite)
	if err != nil {
		return err
	}
	defer leave(&err)
	rec, err := m.records.get(ctx, ref)
	if err != nil {
		return err
	}
	rec.Objects = o.kept()
	return m.records.set(ctx, rec)
}

// kept is what a record says of objects; nil: they are not known.
func (o Objects) kept() *Objects {
	if o.Digest == "" {
		return nil
	}
	return &o
}

// deployed is the revision that is deployed, as far as this process knows, and the digest of its inputs.
type deployed struct {
	number int
	uid    string
	inputs string
}

// noteObjects keeps in the record what an action has made, and the fields that the API server has dropped: it says so
// once.
func (r *reconcile) noteObjects(s *life, shown rendering) error {
	r.last.UID = s.uid
	if !r.t.IgnoreDrift {
		r.objects = Objects{Of: s.uid, Kinds: kindsOf(s.seen), Digest: DigestOf(s.seen, r.t.Ignore), Seen: s.seen}
	}
	rec, err := r.m.records.get(r.ctx, r.t.Ref())
	if err != nil {
		return err
	}
	s.mu.Lock()
	warnings := slices.Sorted(maps.Keys(s.warned))
	s.mu.Unlock()
	rec.Left = chart.Without(r.t.Namespace, rec.Left, r.m.placed(shown.objects))
	rec.Objects = r.objects.kept()
	rec.Unknown = append(chart.UnknownFields(r.t.Input, r.rendered.files, warnings), r.rendered.warnings...)
	rec.Unknown = append(rec.Unknown, slices.DeleteFunc(warnings, func(text string) bool { return !strings.Contains(text, changedByPolicy) })...)
	return r.m.records.set(r.ctx, rec)
}

func (r *reconcile) result(action, why string) Result {
	res := Result{Action: action, Reason: why, Revision: r.last.Number, Objects: r.objects}
	res.RolledBack = r.rolledBack()
	rec, _ := r.m.records.get(r.ctx, r.t.Ref()) // the next one says why not
	res.Unknown = rec.Unknown
	if action == ActionUnchanged && !r.t.IgnoreDrift {
		res.Objects = Objects{Of: r.last.UID}
		if rec.Objects != nil && rec.Objects.Of == r.last.UID {
			res.Objects = *rec.Objects
		}
	}
	if r.last.UID != "" {
		r.m.current.Store(r.t.Ref(), deployed{r.last.Number, r.last.UID, r.last.Labels[LabelInputs]})
	}
	return res
}

func kindsOf(objects []Object) []Scope {
	var kinds []Scope
	for _, o := range objects {
		kinds = append(kinds, Scope{APIVersion: o.APIVersion, Kind: o.Kind, Namespace: o.Namespace})
	}
	slices.SortFunc(kinds, Scope.Compare)
	return slices.Compact(kinds)
}

func observe(key Key, u *unstructured.Unstructured, ignore []owned.Path) Object {
	o := Object{Key: key, Version: u.GetResourceVersion()}
	o.Owned, _ = owned.Of(u.GetManagedFields(), FieldManager, ignore)
	return o
}

func keyOf(mapping *meta.RESTMapping, namespace, name string) Key {
	version, kind := mapping.GroupVersionKind.ToAPIVersionAndKind()
	if mapping.Scope.Name() == meta.RESTScopeNameRoot {
		namespace = ""
	}
	return Key{APIVersion: version, Kind: kind, Namespace: namespace, Name: name}
}
