package release

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/starling-operator/starling/modules/helm"
	"github.com/starling-operator/starling/runtime/effect"
)

// GiveBack makes a release one that no instance has, and leaves all of it as it is: an instance with a
// module of that name takes it over. Done says that it was this instance's. An uninstall that was
// cut off is brought to its end instead. timeout 0 means 10 minutes.
func (m *Manager) GiveBack(ctx context.Context, ref Ref, timeout time.Duration) (done bool, err error) {
	ctx, leave, err := m.enter(ctx, timeout)
	if err != nil {
		return false, err
	}
	defer leave(&err)
	defer m.glances.forget(ref)
	last, err := m.latest(ctx, ref)
	if err != nil {
		return false, err
	}
	if ours := last.Number > 0 && owner(last.Labels, m.o.Instance, ref.Module) == ""; ours {
		if last.Status == helm.StatusUninstalling {
			if err := m.uninstall(ctx, ref, last, false, timeout); err != nil {
				return false, err
			}
		} else if err := m.giveBack(ctx, ref, last.Number); err != nil {
			return false, err
		}
		done = true
	}
	return done, m.forget(ctx, ref)
}

// giveBack takes the instance off a revision, which nobody works on once it is marked so.
func (m *Manager) giveBack(ctx context.Context, ref Ref, number int) error {
	if err := m.recover(ctx, ref, "given back: the process that worked on it ended early"); err != nil {
		return err
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"labels": map[string]any{effect.InstanceLabel: nil}}})
	if err != nil {
		return err
	}
	_, err = m.meta.Resource(secretsResource()).Namespace(ref.Namespace).
		Patch(ctx, helm.Key(ref.Name, number), types.MergePatchType, patch, metav1.PatchOptions{})
	if err != nil {
		return fmt.Errorf("giving the release back: %w", err)
	}
	return nil
}
