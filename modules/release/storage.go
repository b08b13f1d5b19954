package release

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/starling-operator/starling/modules/helm"
)

// store is where Helm keeps the revisions of a namespace.
func (m *Manager) store(namespace string) helm.Records {
	return helm.Records{Secrets: m.core.Secrets(namespace)}
}

// SecretOf is "namespace/name" of the Secret that holds a revision.
func SecretOf(ref Ref, revision int) string {
	return ref.Namespace + "/" + helm.Key(ref.Name, revision)
}

func secretsResource() schema.GroupVersionResource {
	return schema.GroupVersionResource{Version: "v1", Resource: "secrets"}
}

// latest reads the labels of the newest revision.
func (m *Manager) latest(ctx context.Context, ref Ref) (revision, error) {
	all, err := m.revisions(ctx, ref)
	if err != nil || len(all) == 0 {
		return revision{}, err
	}
	return all[0], nil
}

// lastDeployed is the number of the newest revision that is deployed; 0: none is.
func (m *Manager) lastDeployed(ctx context.Context, ref Ref) (int, error) {
	all, err := m.revisions(ctx, ref)
	if i := slices.IndexFunc(all, func(r revision) bool { return r.Status == helm.StatusDeployed }); i >= 0 {
		return all[i].Number, nil
	}
	return 0, err
}

// RevisionsOf selects the Secrets of all revisions of a release, in its namespace.
func RevisionsOf(ref Ref) string { return labels.Set{"owner": "helm", "name": ref.Name}.String() }

// revisions reads the labels of all revisions, the newest first: one list, metadata
// only, so that neither charts nor values travel.
func (m *Manager) revisions(ctx context.Context, ref Ref) ([]revision, error) {
	found, err := m.revisionsIn(ctx, ref.Namespace, metav1.ListOptions{LabelSelector: RevisionsOf(ref)})
	if err != nil {
		return nil, fmt.Errorf("reading the release: %w", err)
	}
	return found[releaseName{ref.Namespace, ref.Name}], nil
}

// revisionsIn lists revisions of releases, of each the newest first; older ones that are deployed, too, are noted there.
func (m *Manager) revisionsIn(ctx context.Context, namespace string, o metav1.ListOptions) (map[releaseName][]revision, error) {
	found := map[releaseName][]revision{}
	for {
		page, err := m.meta.Resource(secretsResource()).Namespace(namespace).List(ctx, o)
		if err != nil {
			return nil, err
		}
		for _, item := range page.Items {
			if n, err := strconv.Atoi(item.Labels["version"]); err == nil && n > 0 {
				at := releaseName{item.Namespace, item.Labels["name"]}
				found[at] = append(found[at], revision{
					Number: n, Status: helm.Status(item.Labels["status"]), Labels: item.Labels, UID: string(item.UID), Made: item.CreationTimestamp.Time,
				})
			}
		}
		if o.Continue = page.Continue; o.Continue == "" {
			break
		}
	}
	for _, all := range found {
		slices.SortFunc(all, func(a, b revision) int { return cmp.Compare(b.Number, a.Number) })
		for i, r := range all {
			if i > 0 && r.Status == helm.StatusDeployed {
				all[0].Also = append(all[0].Also, r.Number)
			}
		}
	}
	return found, nil
}

// Last returns the newest revision of a release as Helm keeps it; nil when there is none.
func (m *Manager) Last(ctx context.Context, namespace, name string) (*helm.Release, error) {
	last, err := m.latest(ctx, Ref{Name: name, Namespace: namespace})
	if err != nil || last.Number == 0 {
		return nil, err
	}
	rel, _, err := m.store(namespace).Get(ctx, name, last.Number)
	return rel, err
}

// read reads a revision, and the uid of its Secret.
func (m *Manager) read(ctx context.Context, ref Ref, number int) (rel *helm.Release, uid string, err error) {
	if rel, uid, err = m.store(ref.Namespace).Get(ctx, ref.Name, number); err != nil {
		return nil, "", fmt.Errorf("reading revision %d: %w", number, tidy(err))
	}
	return rel, uid, nil
}

// drop deletes a revision, if it is there.
func (m *Manager) drop(ctx context.Context, ref Ref, number int) error {
	if err := m.store(ref.Namespace).Delete(ctx, ref.Name, number); err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("deleting revision %d: %w", number, err)
	}
	return nil
}

// recover marks the newest revision failed if it is pending (install, upgrade or rollback): the process that worked on
// it is gone, since this one holds the Lease. If it is deployed, older ones that are deployed too get superseded.
func (m *Manager) recover(ctx context.Context, ref Ref, last revision, why string) error {
	switch last.Status {
	case helm.StatusDeployed:
		for _, number := range last.Also {
			if err := m.mark(ctx, ref, number, helm.StatusSuperseded, "superseded by a later revision"); err != nil {
				return err
			}
		}
		return nil
	case helm.StatusFailed, helm.StatusSuperseded, helm.StatusUninstalled:
		return nil
	}
	return m.mark(ctx, ref, last.Number, helm.StatusFailed, why)
}

// mark writes the status of a revision, and why it has that.
func (m *Manager) mark(ctx context.Context, ref Ref, number int, to helm.Status, why string) error {
	rel, _, err := m.store(ref.Namespace).Get(ctx, ref.Name, number)
	if err != nil {
		return fmt.Errorf("revision %d has to be marked as %s and cannot be read (%w); remove the Secret %s in namespace %s",
			number, to, err, helm.Key(ref.Name, number), ref.Namespace)
	}
	rel.SetStatus(to, why)
	if err := m.store(ref.Namespace).Update(ctx, rel); err != nil {
		return fmt.Errorf("marking revision %d as %s: %w", number, to, err)
	}
	return nil
}

// errForeign is the refusal to touch somebody else's release.
func errForeign(ref Ref, who string) error {
	return fmt.Errorf("release %s belongs to %s; starling does not take it over: uninstall it, give the module another namespace, or, of a release of helm, say module(adopt = True)", ref, who)
}
