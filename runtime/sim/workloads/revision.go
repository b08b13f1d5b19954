package workloads

import (
	"cmp"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"maps"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/utils/ptr"
)

// freeHash is a hash that names what an owner makes of a value, such as a template: with it
// the name of the owner makes a name that none of some objects has. It is not the number that
// a real cluster makes of it. How often it met a name that was taken is counted from a number.
func freeHash[T metav1.Object](by metav1.Object, v any, collisions int32, taken []T) string {
	data, err := json.Marshal(v)
	if err != nil {
		data = []byte(err.Error())
	}
	for ; ; collisions++ {
		h := fnv.New32a()
		h.Write(data)
		_ = binary.Write(h, binary.LittleEndian, uint32(collisions)) // a hash takes all
		hash := rand.SafeEncodeString(fmt.Sprint(h.Sum32()))
		if !slices.ContainsFunc(taken, func(o T) bool { return o.GetNamespace() == by.GetNamespace() && o.GetName() == by.GetName()+"-"+hash }) {
			return hash
		}
	}
}

// revisions are the ControllerRevisions of a StatefulSet or DaemonSet, oldest first.
type revisions struct {
	all    []*appsv1.ControllerRevision // of all owners
	list   []*appsv1.ControllerRevision
	update *appsv1.ControllerRevision // of the template as it is now; nil: it must be made
	data   []byte
}

func (s *State) revisionsOf(by owner, template *corev1.PodTemplateSpec, out *Result) (r revisions) {
	// As a patch, which is how they are stored in a real cluster, too.
	r.data, _ = json.Marshal(map[string]any{"spec": map[string]any{"template": patchOf(template)}})
	r.all, r.list = s.Revisions, owned(out, s.Revisions, by, nil)
	slices.SortStableFunc(r.list, func(a, b *appsv1.ControllerRevision) int { return cmp.Compare(a.Revision, b.Revision) })
	for _, one := range r.list {
		if sameTemplate(templateOf(one), template) {
			r.update = one
		}
	}
	return r
}

// patchOf is a template as a patch that replaces all of it.
func patchOf(template *corev1.PodTemplateSpec) map[string]any {
	m, err := runtime.DefaultUnstructuredConverter.ToUnstructured(template)
	if err != nil {
		return nil
	}
	m["$patch"] = "replace"
	return m
}

// templateOf is the template that a revision holds.
func templateOf(one *appsv1.ControllerRevision) *corev1.PodTemplateSpec {
	var held struct {
		Spec struct {
			Template corev1.PodTemplateSpec `json:"template"`
		} `json:"spec"`
	}
	_ = json.Unmarshal(one.Data.Raw, &held) // one that is not ours equals no template
	return &held.Spec.Template
}

// last is the number of the newest revision.
func (r *revisions) last() int64 {
	if len(r.list) == 0 {
		return 0
	}
	return r.list[len(r.list)-1].Revision
}

// keep makes the revision of the template, or has it be the newest again; it says whether
// that was to do. The label is the one that holds the hash.
func (r *revisions) keep(by owner, labels map[string]string, label string, out *Result) bool {
	if r.update == nil {
		hash := freeHash(by, by.kind.Kind+string(r.data), 0, r.all)
		out.create(&appsv1.ControllerRevision{
			TypeMeta: typeMeta(kindRevision),
			ObjectMeta: metav1.ObjectMeta{
				Name: by.GetName() + "-" + hash, Namespace: by.GetNamespace(),
				Labels: with(labels, label, hash), Annotations: maps.Clone(by.GetAnnotations()),
				OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(by, by.kind)},
			},
			Data: runtime.RawExtension{Raw: r.data}, Revision: r.last() + 1,
		})
		return true
	}
	if r.update.Revision < r.last() {
		changed := r.update.DeepCopy()
		changed.Revision = r.last() + 1
		out.update(changed)
		return true
	}
	return false
}

// trim deletes the oldest revisions that nobody uses, beyond the history.
func (r *revisions) trim(limit *int32, used func(name string) bool, out *Result) {
	unused := slices.DeleteFunc(slices.Clone(r.list), func(one *appsv1.ControllerRevision) bool { return one == r.update || used(one.Name) })
	for _, one := range unused[:max(0, len(unused)-int(ptr.Deref(limit, 10)))] {
		out.delete(one)
	}
}
