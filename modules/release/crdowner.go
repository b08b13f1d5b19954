package release

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/starling-operator/starling/modules/chart"
	"github.com/starling-operator/starling/modules/tree"
	"github.com/starling-operator/starling/runtime/effect"
)

// A definition belongs to whoever has made it: what it lacks, all objects of its kind lose (docs/decisions/0087).

// definer is somebody else who has made a definition.
type definer struct {
	// name is for people.
	name string
	// instance is another Starling, as [effect.Instance.Mark] has it, or another module of this one; sum is what that
	// has applied.
	instance, sum string
	// module is that of this instance.
	module string
	// release is one of Helm that holds the definition.
	release Ref
}

// sumText is the digest of a definition as its annotation has it.
func sumText(sum [sha256.Size]byte) string { return hex.EncodeToString(sum[:8]) }

// definedBy says who else than a module has made a definition; zero: nobody who has it still. The annotation tells
// instances and modules apart, which write under one name. Definitions of versions without it are those of the first
// instance that looks.
func (m *Manager) definedBy(live *metav1.PartialObjectMetadata, own string) definer {
	mark, sum, _ := strings.Cut(live.Annotations[effect.DefinedByAnnotation], " ")
	instance, module := path.Split(mark)
	if mark != "" && instance != m.instance().Mark("") {
		return definer{name: "the starling instance of " + mark, instance: mark, sum: sum}
	}
	fields := specFields(live)
	if !fields.ours && mark == "" || !fields.version && (fields.declared != "" || live.Annotations[helmName] != "") {
		if name := live.Annotations[helmName]; name != "" {
			ref := Ref{Name: name, Namespace: live.Annotations[helmNamespace]}
			return definer{name: "release " + ref.String(), release: ref}
		}
		return definer{name: cmp.Or(fields.declared, fields.others, "somebody else")}
	}
	if module != own && !m.stillHas(module, live.Name) {
		module, sum = m.crds.heldBy(live.Name, own)
	}
	if module == own || module == "" {
		return definer{}
	}
	return definer{name: "module " + module, instance: m.instance().Mark(module), sum: sum, module: module}
}

// stillHas says whether a module has a definition. Before it was asked for its own once, its files say so: of a chart,
// and of a module that is broken, nobody knows what they have.
func (m *Manager) stillHas(module, name string) bool {
	_, has, known := m.crds.of(module, name)
	_, inChart, asked := m.crds.of(ofChart(module), name)
	if has || inChart || known && asked {
		return has || inChart
	}
	folder := m.folder(module)
	return folder != nil && (folder.Err != nil || !asked && folder.Chart != nil || !known && defines(folder.CRDs, name))
}

// folder is that of a module; nil: there is none.
func (m *Manager) folder(module string) *tree.Module {
	if m.o.Folders == nil {
		return nil
	}
	all := m.o.Folders()
	if i := slices.IndexFunc(all, func(f *tree.Module) bool { return f.Name == module }); i >= 0 {
		return all[i]
	}
	return nil
}

// giveBackCRDs leaves the definitions of a module that has left the tree to the instance that has it next: they lose
// its mark, and the conversions that nobody here has a hook for are free. Those of other modules stay as they are.
func (m *Manager) giveBackCRDs(ctx context.Context, module string) error {
	if m.o.Folders == nil || m.folder(module) != nil {
		return nil
	}
	crds, o := m.meta.Resource(crdResource()), metav1.ListOptions{Limit: crdPage}
	for {
		page, err := crds.List(ctx, o)
		if apierrors.IsForbidden(err) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("looking for the CustomResourceDefinitions of module %s: %w", module, tidy(err))
		}
		for _, live := range page.Items {
			mark, by := live.Annotations[effect.DefinedByAnnotation], live.Annotations[effect.ConvertedByAnnotation]
			of, _, _ := strings.Cut(mark, " ")
			if held, _ := m.crds.heldBy(live.Name, module); of != m.instance().Mark(module) || held != "" {
				continue
			}
			change := func(op, annotation, value string) map[string]string {
				return map[string]string{"op": op, "path": "/metadata/annotations/" + strings.ReplaceAll(annotation, "/", "~1"), "value": value}
			}
			defined := effect.DefinedByAnnotation
			all := []map[string]string{change("test", defined, mark), change("remove", defined, "")}
			if by == m.o.Instance && m.o.Converts != nil && !m.o.Converts(live.Name) {
				all = append(all, change("replace", effect.ConvertedByAnnotation, by+effect.GivenBack))
			}
			body, _ := json.Marshal(all)
			_, err := crds.Patch(ctx, live.Name, types.JSONPatchType, body, metav1.PatchOptions{FieldManager: FieldManager})
			if err != nil && !apierrors.IsNotFound(err) {
				return fmt.Errorf("giving CustomResourceDefinition %s back: %w", live.Name, tidy(err))
			}
		}
		if o.Continue = page.Continue; o.Continue == "" {
			return nil
		}
	}
}

// defines says whether files have a definition, or one cannot be read that may.
func defines(files []chart.File, name string) bool {
	return slices.ContainsFunc(files, func(f chart.File) bool {
		all, err := chart.Definitions(f)
		return err != nil || slices.ContainsFunc(all, func(d chart.Definition) bool { return d.Object.GetName() == name })
	})
}

// defined says whether somebody has a definition in crds/: a module, or its chart, that was asked for its definitions
// since the start, or has them in the tree.
func (m *Manager) defined(name string) bool {
	known := slices.ContainsFunc(m.crds.all(), func(k knownCRD) bool { return k.name == name })
	return known || m.o.Folders != nil && slices.ContainsFunc(m.o.Folders(), func(f *tree.Module) bool {
		files := f.CRDs
		if f.Chart != nil {
			files = slices.Concat(files, slices.DeleteFunc(slices.Clone(f.Chart.Files), func(f chart.File) bool {
				return !strings.HasPrefix(f.Path, "crds/") && !strings.Contains(f.Path, "/crds/")
			}))
		}
		return defines(files, name)
	})
}

// staying is whose definition stays in the place of one that differs; "" for nobody's. Among modules that which is
// there stays, in one module its own crds/ come before those of its chart.
func (m *Manager) staying(c *crd, by definer) string {
	module := moduleOf(c.of.whose)
	if by.module != "" && by.sum != sumText(c.Sum) {
		return by.name
	}
	if own, _, _ := m.crds.of(module, c.Object.GetName()); c.of.whose != module && own.applied() && own.sum != c.Sum {
		return "the crds/ of module " + module
	}
	return ""
}

// Annotations and label of objects of Helm's releases.
const (
	helmName      = "meta.helm.sh/release-name"
	helmNamespace = "meta.helm.sh/release-namespace"
	helmManages   = "app.kubernetes.io/managed-by"
)

// specOwners is who owns the spec of a definition.
type specOwners struct {
	// ours says that Starling has applied it, version that its versions are as Starling has applied them.
	ours, version bool
	// declared is a manager that applies the versions, too, others one that has written them.
	declared, others string
}

func specFields(live *metav1.PartialObjectMetadata) (out specOwners) {
	for _, f := range live.ManagedFields {
		var set struct {
			Spec map[string]json.RawMessage `json:"f:spec"`
		}
		if f.Subresource != "" || f.FieldsV1 == nil || json.Unmarshal(f.FieldsV1.GetRawBytes(), &set) != nil || len(set.Spec) == 0 {
			continue
		}
		_, versions := set.Spec["f:versions"]
		applies := f.Operation == metav1.ManagedFieldsOperationApply
		switch {
		case applies && f.Manager == FieldManager:
			out.ours, out.version = true, versions
		case versions && applies:
			out.declared = f.Manager
		case versions:
			out.others = f.Manager
		}
	}
	return out
}

// definerIsThere says whether somebody is still there who has made a definition: it is not taken over
// then. Of a tool without a trace in the cluster nobody can say that.
func (m *Manager) definerIsThere(ctx context.Context, by definer, own Ref) bool {
	switch {
	case by.instance != "":
		at := strings.Split(by.instance, "/")
		if len(at) != 3 {
			return true
		}
		lease := schema.GroupVersionResource{Group: "coordination.k8s.io", Version: "v1", Resource: "leases"}
		_, err := m.meta.Resource(lease).Namespace(at[0]).Get(ctx, at[1], metav1.GetOptions{})
		return !apierrors.IsNotFound(err)
	case by.release.Name != "" && (by.release.Name != own.Name || by.release.Namespace != own.Namespace):
		last, err := m.latest(ctx, by.release)
		return err != nil || last.Number > 0
	}
	return false
}

// notReplaced is the error about a definition of somebody else.
func (m *Manager) notReplaced(c *crd, by definer) error {
	do := "leave out one of the two or, once nobody needs that one, take it over with module(adopt = True)"
	if c.of.Adopt {
		do = "leave out one of the two, or remove that one first"
	}
	return fmt.Errorf("CustomResourceDefinition %s is there, differs, and belongs to %s: %s", c.Object.GetName(), by.name, do)
}

// crdMemory holds the definitions of all who were asked for theirs since the start, so that a steady state writes
// nothing: whose they are → name → what is there. They are of a module's crds/, or of those of its chart, see ofChart.
type crdMemory struct {
	mu    sync.Mutex
	known map[string]map[string]knownCRD
	// serving lets one caller at a time wait for new kinds: one look at discovery mostly serves all of them.
	serving sync.Mutex
}

// knownCRD is a definition of a file, and what the API server made of it: another uid or generation means that
// somebody has removed or changed it. The zero value is one that nobody has looked at.
type knownCRD struct {
	whose, name string // as they are told by all
	sum         [sha256.Size]byte
	uid         types.UID
	generation  int64
	// left is the definition where it is left to somebody else, see [Manager.staying], and nil
	// where it is applied; leftTo is whose is there.
	left   *crd
	leftTo string
}

func (k knownCRD) applied() bool { return k.left == nil && k.sum != [sha256.Size]byte{} }

// begin forgets all. It is asked at the same time: people are shown what was left.
func (c *crdMemory) begin() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.known = map[string]map[string]knownCRD{}
}

// of returns what is known; has: there is such a definition; asked: somebody was asked for theirs since the start.
func (c *crdMemory) of(whose, name string) (k knownCRD, has, asked bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	all, asked := c.known[whose]
	k, has = all[name]
	return k, has, asked
}

func (c *crdMemory) set(whose, name string, k knownCRD) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.known[whose] == nil {
		c.known[whose] = map[string]knownCRD{}
	}
	c.known[whose][name] = k
}

// all are the definitions, in the order of their owners and names.
func (c *crdMemory) all() (out []knownCRD) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, whose := range slices.Sorted(maps.Keys(c.known)) {
		for _, name := range slices.Sorted(maps.Keys(c.known[whose])) {
			k := c.known[whose][name]
			k.whose, k.name = whose, name
			out = append(out, k)
		}
	}
	return out
}

// heldBy is the first of the other modules whose definition of this name is there, with its digest.
func (c *crdMemory) heldBy(name, than string) (module, sum string) {
	for _, k := range c.all() {
		if k.name == name && k.applied() && moduleOf(k.whose) != than {
			return moduleOf(k.whose), sumText(k.sum)
		}
	}
	return "", ""
}

func leftText(name, to string) string {
	return fmt.Sprintf("CustomResourceDefinition %s is there, differs, and is that of %s, which stays: leave out one of the two", name, to)
}

// keep notes which definitions somebody has, as soon as that is known, and drops all others.
func (c *crdMemory) keep(whose string, names map[string]bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	next := map[string]knownCRD{}
	for name := range names {
		next[name] = c.known[whose][name]
	}
	c.known[whose] = next
}

// forget notes that a module has no definitions any more. Nothing is kept of one that is not there.
func (c *crdMemory) forget(module string, there bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, whose := range []string{module, ofChart(module)} {
		if delete(c.known, whose); there {
			c.known[whose] = map[string]knownCRD{}
		}
	}
}
