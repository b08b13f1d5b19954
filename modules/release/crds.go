package release

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/yaml"

	"github.com/starling-operator/starling/runtime/bounded"
	"github.com/starling-operator/starling/runtime/lane"
	"github.com/starling-operator/starling/runtime/message"
)

const (
	// fieldManager owns the fields of the CustomResourceDefinitions we apply.
	fieldManager = "starling"
	// crdTimeout bounds the wait for a new kind to be served.
	crdTimeout = time.Minute
	// crdPause lies between two looks at a new CustomResourceDefinition, which
	// takes the API server some tens of milliseconds.
	crdPause = 50 * time.Millisecond
)

// crdLooks spaces out the looks for a kind that discovery does not show yet.
var crdLooks = lane.Backoff{Min: crdPause, Max: time.Second, Factor: 2}

// crdMemory holds what this process has applied, so that a steady state writes
// nothing: whose it is → name of the definition. It is of a module's crds/, or of those of
// its chart, see ofChart.
type crdMemory struct {
	mu      sync.Mutex
	applied map[string]map[string]appliedCRD
	// serving lets one caller at a time wait for new kinds: one look at
	// discovery mostly serves all of them.
	serving sync.Mutex
}

// appliedCRD is a definition of a file, and what the API server made of it: another uid
// or generation means that somebody has removed or changed it.
type appliedCRD struct {
	sum        [sha256.Size]byte
	uid        types.UID
	generation int64
	// left to somebody else, see [crdMemory.before].
	left bool
}

// ofChart is whose definitions are that come with the chart of a module.
func ofChart(module string) string { return module + "/chart" }

// moduleOf is the module of whose a definition is.
func moduleOf(whose string) string { module, _, _ := strings.Cut(whose, "/"); return module }

// of returns what was applied.
func (c *crdMemory) of(module, name string) (appliedCRD, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	a, ok := c.applied[module][name]
	return a, ok
}

func (c *crdMemory) set(module, name string, a appliedCRD) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.applied == nil {
		c.applied = map[string]map[string]appliedCRD{}
	}
	if c.applied[module] == nil {
		c.applied[module] = map[string]appliedCRD{}
	}
	c.applied[module][name] = a
}

// before returns the first by name of those before this one who have applied another
// definition of the same name; "" for nobody. Without an order the two would write one over
// the other at each pass.
func (c *crdMemory) before(whose, name string, sum [sha256.Size]byte) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	first := ""
	for other, all := range c.applied {
		if a, ok := all[name]; ok && !a.left && a.sum != sum && other < whose && (first == "" || other < first) {
			first = other
		}
	}
	return first
}

func (c *crdMemory) forget(module string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.applied, module)
	delete(c.applied, ofChart(module))
}

// crd is one definition of a file.
type crd struct {
	object *unstructured.Unstructured
	group  string
	kind   string
	// versions that are served.
	versions []string
	sum      [sha256.Size]byte
}

// ApplyCRDs applies the CustomResourceDefinitions in files, updates included, and
// returns when they are served. Files are YAML, several documents are fine;
// anything but a CustomResourceDefinition (apiextensions.k8s.io/v1) is an error,
// and then nothing is applied. A CRD that this process has applied, and nobody has removed or
// changed since, is not written again; changed says that something was written.
// Definitions are never deleted.
func (m *Manager) ApplyCRDs(ctx context.Context, module string, files []File) (changed bool, err error) {
	ctx, leave, err := m.enter(ctx, defaultTimeout)
	if err != nil {
		return false, err
	}
	defer leave(&err)
	return m.applyCRDs(ctx, module, files)
}

// applyCRDs is ApplyCRDs for the definitions of a module's crds/ or chart. Of several of one
// name the first counts.
func (m *Manager) applyCRDs(ctx context.Context, whose string, files []File) (changed bool, err error) {
	var all []crd
	seen := map[string]bool{}
	for _, f := range files {
		found, err := parseCRDs(f)
		if err != nil {
			return false, err
		}
		for _, c := range found {
			if name := c.object.GetName(); !seen[name] {
				seen[name] = true
				all = append(all, c)
			}
		}
	}
	for _, c := range all {
		same, err := m.isApplied(ctx, whose, c)
		if err != nil {
			return changed, err
		}
		if same {
			continue
		}
		changed = true
		live, err := m.applyCRD(ctx, c)
		if err != nil {
			return changed, err
		}
		m.crds.set(whose, c.object.GetName(), appliedCRD{sum: c.sum, uid: live.GetUID(), generation: live.GetGeneration()})
	}
	return changed, nil
}

// isApplied says that the API server holds the definition as this process has applied it, or
// one that it is left to.
func (m *Manager) isApplied(ctx context.Context, whose string, c crd) (bool, error) {
	name := c.object.GetName()
	before, ok := m.crds.of(whose, name)
	first := m.crds.before(whose, name, c.sum)
	if first == "" && (!ok || before.sum != c.sum || before.left) {
		return false, nil
	}
	live, err := m.meta.Resource(apiextensionsv1.SchemeGroupVersion.WithResource("customresourcedefinitions")).Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("looking for CustomResourceDefinition %s: %s", name, tidy(err.Error()))
	}
	if live.DeletionTimestamp != nil {
		return false, fmt.Errorf("CustomResourceDefinition %s is being deleted; it is applied again once it is gone", name)
	}
	if first == "" {
		return live.UID == before.uid && live.Generation == before.generation, nil
	}
	if !before.left || before.sum != c.sum {
		m.crds.set(whose, name, appliedCRD{sum: c.sum, left: true})
		m.o.Log.Warn().Str("module", moduleOf(whose)).Str("crd", name).
			Msg("another CustomResourceDefinition of this name is applied, that of " + first + ", which comes first by name; leave one of them out")
	}
	return true, nil
}

func (m *Manager) applyCRD(ctx context.Context, c crd) (*unstructured.Unstructured, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, crdTimeout, errTimeout(crdTimeout))
	defer cancel()
	name := c.object.GetName()
	if m.o.Converts != nil && m.o.Converts(name) {
		// The controller that converts its objects sets this; a value of ours would undo that at
		// each start.
		unstructured.RemoveNestedField(c.object.Object, "spec", "conversion")
	}
	data, err := c.object.MarshalJSON()
	if err != nil {
		return nil, err
	}
	client := m.dynamic.Resource(apiextensionsv1.SchemeGroupVersion.WithResource("customresourcedefinitions"))
	force := true
	live, err := client.Patch(ctx, name, types.ApplyPatchType, data, metav1.PatchOptions{FieldManager: fieldManager, Force: &force})
	if err != nil {
		return nil, fmt.Errorf("applying CustomResourceDefinition %s: %s", name, tidy(err.Error()))
	}
	if err := established(ctx, client, live); err != nil {
		return nil, fmt.Errorf("CustomResourceDefinition %s: %w", name, err)
	}
	return live, m.served(ctx, c)
}

// established waits until the API server has accepted the definition's names and
// serves them.
func established(ctx context.Context, client dynamic.ResourceInterface, live *unstructured.Unstructured) error {
	for {
		var typed apiextensionsv1.CustomResourceDefinition
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(live.Object, &typed); err != nil {
			return fmt.Errorf("what the API server holds cannot be read: %s", tidy(err.Error()))
		}
		for _, c := range typed.Status.Conditions {
			switch {
			case c.Type == apiextensionsv1.Established && c.Status == apiextensionsv1.ConditionTrue:
				return nil
			case c.Type == apiextensionsv1.NamesAccepted && c.Status == apiextensionsv1.ConditionFalse:
				return fmt.Errorf("its names are not accepted: %s", c.Message)
			}
		}
		if err := pause(ctx, crdPause); err != nil {
			return fmt.Errorf("not established: %w", err)
		}
		next, err := client.Get(ctx, live.GetName(), metav1.GetOptions{})
		if err != nil {
			return fmt.Errorf("not established: %s", tidy(err.Error()))
		}
		live = next
	}
}

// served makes the shared mapper know the definition's kind in all its versions.
// Discovery follows a definition that is established after a moment only.
func (m *Manager) served(ctx context.Context, c crd) error {
	m.crds.serving.Lock()
	defer m.crds.serving.Unlock()
	for looks := 1; ; looks++ {
		missing := ""
		for _, version := range c.versions {
			_, err := m.o.Mapper.RESTMapping(schema.GroupKind{Group: c.group, Kind: c.kind}, version)
			if err != nil && !meta.IsNoMatchError(err) {
				return fmt.Errorf("asking whether %s is served: %w", c.kind, err)
			}
			if err != nil {
				missing = version
			}
		}
		if missing == "" {
			return nil
		}
		m.ResetDiscovery()
		if _, err := m.o.Mapper.RESTMapping(schema.GroupKind{Group: c.group, Kind: c.kind}, missing); err == nil {
			continue
		}
		if err := pause(ctx, crdLooks.Delay(looks, 0)); err != nil {
			return fmt.Errorf("%s of %s/%s is not served: %w", c.kind, c.group, missing, err)
		}
	}
}

func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// CheckCRDs says what is wrong with one file of crds/, as far as it shows without a
// cluster; for people, with the file's path. It returns the sums of its definitions by
// their names: those that differ are not the same definition.
func CheckCRDs(f File) (sums map[string][sha256.Size]byte, err error) {
	found, err := parseCRDs(f)
	sums = map[string][sha256.Size]byte{}
	for _, c := range found {
		sums[c.object.GetName()] = c.sum
	}
	return sums, err
}

// parseCRDs reads the documents of one file.
func parseCRDs(f File) ([]crd, error) {
	docs, err := bounded.YAMLDocuments(f.Data)
	if err != nil {
		return nil, fmt.Errorf("%s: %s", f.Path, tidy(err.Error()))
	}
	var found []crd
	for i, doc := range docs {
		data, err := yaml.YAMLToJSONStrict(doc)
		if err != nil {
			return nil, fmt.Errorf("%s: document %d: %s", f.Path, i+1, tidy(message.YAML(err.Error(), doc)))
		}
		if string(data) == "null" { // comments only
			continue
		}
		c, err := parseCRD(data)
		if err != nil {
			return nil, fmt.Errorf("%s: document %d: %w", f.Path, i+1, err)
		}
		found = append(found, c)
	}
	return found, nil
}

func parseCRD(data []byte) (crd, error) {
	object := &unstructured.Unstructured{}
	var head metav1.PartialObjectMetadata
	if err := yaml.Unmarshal(data, &head); err != nil {
		return crd{}, errors.New("not an object of Kubernetes")
	}
	if head.Kind != "CustomResourceDefinition" {
		return crd{}, fmt.Errorf("kind is %q; crds/ holds CustomResourceDefinitions only, other objects belong to the chart's templates", head.Kind)
	}
	if head.APIVersion != apiextensionsv1.SchemeGroupVersion.String() {
		return crd{}, fmt.Errorf("apiVersion is %q, not %s", head.APIVersion, apiextensionsv1.SchemeGroupVersion)
	}
	if head.Name == "" {
		return crd{}, errors.New("metadata.name is missing")
	}
	if err := object.UnmarshalJSON(data); err != nil {
		return crd{}, errors.New("not an object of Kubernetes")
	}
	unstructured.RemoveNestedField(object.Object, "status") // generators leave one behind
	unstructured.RemoveNestedField(object.Object, "metadata", "creationTimestamp")
	c := crd{object: object, sum: sha256.Sum256(data)}
	c.group, _, _ = unstructured.NestedString(object.Object, "spec", "group")
	c.kind, _, _ = unstructured.NestedString(object.Object, "spec", "names", "kind")
	versions, _, _ := unstructured.NestedSlice(object.Object, "spec", "versions")
	for _, v := range versions {
		if v, ok := v.(map[string]any); ok && v["served"] == true {
			if name, ok := v["name"].(string); ok {
				c.versions = append(c.versions, name)
			}
		}
	}
	return c, nil
}
