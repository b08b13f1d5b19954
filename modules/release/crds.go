package release

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/starling-operator/starling/modules/chart"
	"github.com/starling-operator/starling/runtime/cluster"
	"github.com/starling-operator/starling/runtime/effect"
	"github.com/starling-operator/starling/runtime/kstatus"
	"github.com/starling-operator/starling/runtime/lane"
)

const (
	// crdTimeout bounds the wait for a new kind to be served.
	crdTimeout = time.Minute
	// crdPause lies between two looks at a new CustomResourceDefinition, which
	// takes the API server some tens of milliseconds.
	crdPause = 50 * time.Millisecond
)

// crdLooks spaces out the looks for a kind that discovery does not show yet.
var crdLooks = lane.Backoff{Min: crdPause, Max: time.Second, Factor: 2}

// crdOwner is whose definitions are, and what they may replace.
type crdOwner struct {
	// whose is a module, or its chart, see ofChart.
	whose string
	// release is that of the module.
	release Ref
	CRDOptions
}

// CRDOptions say what definitions may do to what is there.
type CRDOptions struct {
	// Adopt takes over definitions of others, unless these still stand for them.
	Adopt bool
	// Force has objects lose what the new definition does not have.
	Force bool
}

// ofChart is whose definitions are that come with the chart of a module.
func ofChart(module string) string { return module + "/chart" }

// moduleOf is the module of whose a definition is.
func moduleOf(whose string) string { module, _, _ := strings.Cut(whose, "/"); return module }

// crd is one definition of a file.
type crd struct {
	chart.Definition
	of crdOwner
}

// ApplyCRDs applies the CustomResourceDefinitions in files, which are all of the crds/ of the
// module of a release, updates included, and returns when they are served. Files are YAML,
// several documents are fine; anything but a CustomResourceDefinition
// (apiextensions.k8s.io/v1) is an error, and then nothing is applied. A CRD that this process
// has applied, and nobody has removed or changed since, is not written again; changed says that
// something was written. A definition of others that differs is an error; with
// Adopt it is taken over if its owner is gone. So is an update that its objects do not survive, without Force.
// Definitions are never deleted.
func (m *Manager) ApplyCRDs(ctx context.Context, ref Ref, o CRDOptions, files []chart.File) (changed bool, err error) {
	ctx, leave, err := m.enter(ctx, 0)
	if err != nil {
		return false, err
	}
	defer leave(&err)
	ref.Namespace = cmp.Or(ref.Namespace, m.o.Namespace)
	return m.applyCRDs(ctx, crdOwner{whose: ref.Module, release: ref, CRDOptions: o}, files)
}

// Left lists the definitions of a module in whose place others are there and stay, for people.
func (m *Manager) Left(module string) (out []string) {
	for _, k := range m.crds.all() {
		if moduleOf(k.whose) == module && k.left != nil {
			out = append(out, leftText(k.name, k.leftTo))
		}
	}
	return out
}

// ForgetCRDs drops what is remembered of the definitions of a module that does not run any more,
// and applies those of others that were left to it.
func (m *Manager) ForgetCRDs(ctx context.Context, module string) (err error) {
	m.crds.forget(module, m.folder(module) != nil)
	ctx, leave, err := m.enter(ctx, crdTimeout)
	if err != nil {
		return err
	}
	defer leave(&err)
	_, err = m.applyYielded(ctx)
	unread := m.records.inTurn(ctx, m.records.loadOnce)
	if err = cmp.Or(err, unread); err != nil || slices.ContainsFunc(m.installed(), func(r Ref) bool { return r.Module == module }) {
		return err // they go with the release
	}
	return m.giveBackCRDs(ctx, module)
}

// applyCRDs is ApplyCRDs for the definitions of a module's crds/ or chart. Of several of one
// name the first counts.
func (m *Manager) applyCRDs(ctx context.Context, of crdOwner, files []chart.File) (changed bool, err error) {
	var all []*crd
	seen := map[string]bool{}
	for _, f := range files {
		found, err := chart.Definitions(f)
		if err != nil {
			return false, err
		}
		for _, d := range found {
			if name := d.Object.GetName(); !seen[name] {
				seen[name] = true
				all = append(all, &crd{d, of})
			}
		}
	}
	m.crds.keep(of.whose, seen)
	if changed, err = m.bringCRDs(ctx, all...); err != nil {
		return changed, err
	}
	wrote, err := m.applyYielded(ctx)
	return changed || wrote, err
}

// bringCRDs has the API server hold definitions as they are in their files. All are looked at before the first one is
// written.
func (m *Manager) bringCRDs(ctx context.Context, all ...*crd) (changed bool, err error) {
	var due []dueCRD
	for _, c := range all {
		d, err := m.lookAtCRD(ctx, c)
		if err != nil {
			return false, err
		}
		if d != nil {
			due = append(due, *d)
		}
	}
	for _, d := range due {
		wrote, err := m.applyCRD(ctx, d)
		if changed = changed || wrote; err != nil {
			return changed, err
		}
	}
	return changed, nil
}

// applyYielded applies definitions that were left to somebody who has them no more, the first one of each name.
func (m *Manager) applyYielded(ctx context.Context) (changed bool, err error) {
	all, held := m.crds.all(), map[string]bool{}
	for _, k := range all {
		held[k.name] = held[k.name] || k.applied()
	}
	for _, k := range all {
		if k.left == nil || held[k.name] {
			continue
		}
		held[k.name] = true
		wrote, err := m.bringCRDs(ctx, k.left)
		changed = changed || wrote
		if err != nil { // its module applies it at the next pass, or says why not
			m.crds.set(k.whose, k.name, knownCRD{})
			m.o.Log.Warn().Str("module", moduleOf(k.whose)).Err(err).Msg("a CustomResourceDefinition that was left to another module is not applied")
		}
	}
	return changed, ctx.Err()
}

// dueCRD is a definition that has to be brought; live is what is there, nil for nothing, and by who has made that.
type dueCRD struct {
	*crd
	live *metav1.PartialObjectMetadata
	by   definer
}

// lookAtCRD says whether a definition has to be brought: it is neither as in the file nor left to somebody else.
func (m *Manager) lookAtCRD(ctx context.Context, c *crd) (*dueCRD, error) {
	name, whose := c.Object.GetName(), c.of.whose
	live, err := m.meta.Resource(crdResource()).Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return &dueCRD{crd: c}, nil
	}
	if err != nil {
		return nil, fmt.Errorf("looking for CustomResourceDefinition %s: %w", name, tidy(err))
	}
	before, _, _ := m.crds.of(whose, name)
	by := m.definedBy(live, moduleOf(whose))
	if live.DeletionTimestamp != nil {
		return nil, &lane.Awaits{Err: errors.New(deletedDefinition(name) + "; it is applied again once it is gone"), For: lane.AwaitsEnd}
	}
	if to := m.staying(c, by); to != "" {
		m.crds.set(whose, name, knownCRD{sum: c.Sum, left: c, leftTo: to})
		if before.left == nil || before.sum != c.Sum {
			m.o.Log.Warn().Str("module", moduleOf(whose)).Str("crd", name).Msg(leftText(name, to))
		}
		return nil, nil
	}
	if before.left == nil && before.sum == c.Sum && live.UID == before.uid && live.Generation == before.generation {
		return nil, nil
	}
	_, sum, _ := strings.Cut(live.GetAnnotations()[effect.DefinedByAnnotation], " ")
	if by == (definer{}) && sum != "" && sum != sumText(c.Sum) {
		if until := m.o.Older(); until != "" {
			m.o.Log.Info().Str("module", moduleOf(whose)).Str("crd", name).Msg("a definition of a newer module tree stays as it is until " + until)
			return nil, nil
		}
	}
	written := by == (definer{}) || c.of.Adopt
	if written && (sum != sumText(c.Sum) || !specFields(live).version) { // else its versions are those of the file
		if err := m.keepsObjects(ctx, c); err != nil {
			return nil, err
		}
	}
	return &dueCRD{c, live, by}, nil
}

func deletedDefinition(name string) string {
	return "CustomResourceDefinition " + name + " is being deleted"
}

func crdResource() schema.GroupVersionResource {
	return apiextensionsv1.SchemeGroupVersion.WithResource("customresourcedefinitions")
}

// applyCRD writes a definition, unless what is there is the same.
func (m *Manager) applyCRD(ctx context.Context, d dueCRD) (wrote bool, err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, crdTimeout, errTimeout(crdTimeout))
	defer cancel()
	c, by, name := d.crd, d.by, d.Object.GetName()
	if m.o.Converts != nil && m.o.Converts(name) {
		// The controller that converts its objects sets this; a value of ours would undo that at
		// each start.
		unstructured.RemoveNestedField(c.Object.Object, "spec", "conversion")
	}
	var next *unstructured.Unstructured
	client := m.dynamic.Resource(crdResource())
	mine := by == (definer{})
	same := by.instance != "" && by.sum == sumText(c.Sum)
	if !mine && !same && c.of.Adopt && !m.definerIsThere(ctx, by, c.of.release) {
		m.o.Log.Warn().Str("module", moduleOf(c.of.whose)).Str("crd", name).Msg("a CustomResourceDefinition is taken over from " + by.name)
		mine = true
	}
	switch object := c.Object.DeepCopy(); {
	case mine:
		mark := m.instance().Mark(moduleOf(c.of.whose)) + " " + sumText(c.Sum)
		object.SetAnnotations(labels.Merge(object.GetAnnotations(), labels.Set{effect.DefinedByAnnotation: mark}))
		wrote = true
		// Somebody may make it now: what is not there is not forced.
		next, err = client.Apply(ctx, name, object, metav1.ApplyOptions{FieldManager: FieldManager, Force: d.live != nil})
	case same:
		next, err = client.Get(ctx, name, metav1.GetOptions{})
	case by.instance != "":
		return false, m.notReplaced(c, by)
	default: // the same fields need no other owner
		next, err = client.Apply(ctx, name, object, metav1.ApplyOptions{FieldManager: FieldManager, DryRun: []string{metav1.DryRunAll}})
		if apierrors.IsConflict(err) {
			return false, m.notReplaced(c, by)
		}
	}
	if err != nil {
		return wrote, fmt.Errorf("applying CustomResourceDefinition %s: %w", name, tidy(err))
	}
	if err := established(ctx, client, next); err != nil {
		return wrote, fmt.Errorf("CustomResourceDefinition %s: %w", name, err)
	}
	if err := m.served(ctx, c); err != nil {
		return wrote, err
	}
	a := knownCRD{sum: c.Sum, uid: next.GetUID(), generation: next.GetGeneration()}
	if !wrote {
		a.generation = d.live.Generation // next may be what would be there
	}
	m.crds.set(c.of.whose, name, a)
	return wrote, nil
}

// established waits until the API server has accepted the definition's names and serves them.
func established(ctx context.Context, client dynamic.ResourceInterface, live *unstructured.Unstructured) error {
	for {
		switch status := kstatus.Of(live.Object); {
		case status.Ready:
			return nil
		case status.Stalled:
			return fmt.Errorf("its names are not accepted: %s", status.Reason)
		}
		if err := cluster.Pause(ctx, crdPause); err != nil {
			return fmt.Errorf("not established: %w", err)
		}
		next, err := client.Get(ctx, live.GetName(), metav1.GetOptions{})
		if err != nil {
			return fmt.Errorf("not established: %w", tidy(err))
		}
		live = next
	}
}

// served makes the shared mapper know the definition's kind in all its versions.
// Discovery follows a definition that is established after a moment only.
func (m *Manager) served(ctx context.Context, c *crd) error {
	m.crds.serving.Lock()
	defer m.crds.serving.Unlock()
	for looks := 1; ; looks++ {
		missing := ""
		for _, version := range c.Versions {
			_, err := m.o.Mapper.RESTMapping(schema.GroupKind{Group: c.Group, Kind: c.Kind}, version)
			if err != nil && !meta.IsNoMatchError(err) {
				return fmt.Errorf("asking whether %s is served: %w", c.Kind, err)
			}
			if err != nil {
				missing = version
			}
		}
		if missing == "" {
			return nil
		}
		m.ResetDiscovery()
		if _, err := m.o.Mapper.RESTMapping(schema.GroupKind{Group: c.Group, Kind: c.Kind}, missing); err == nil {
			continue
		}
		if err := cluster.Pause(ctx, crdLooks.Delay(looks, 0)); err != nil {
			return fmt.Errorf("%s of %s/%s is not served: %w", c.Kind, c.Group, missing, err)
		}
	}
}
