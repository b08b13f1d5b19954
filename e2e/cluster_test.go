package e2e

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"helm.sh/helm/v3/pkg/action"
	"helm.sh/helm/v3/pkg/kube"
	"helm.sh/helm/v3/pkg/release"
	"helm.sh/helm/v3/pkg/storage"
	"helm.sh/helm/v3/pkg/storage/driver"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/cli-runtime/pkg/genericclioptions"
)

// helm is Helm's own library, as another user of the cluster has it.
func helm(ns string) *action.Configuration {
	flags := genericclioptions.NewConfigFlags(false)
	flags.KubeConfig, flags.Namespace = &shared.Kubeconfig, &ns
	return &action.Configuration{
		RESTClientGetter: flags,
		KubeClient:       kube.New(flags),
		Releases:         storage.Init(driver.NewSecrets(shared.Client.CoreV1().Secrets(ns))),
		Log:              func(string, ...any) {},
	}
}

// history returns all revisions of a release, oldest first.
func history(ns, name string) ([]*release.Release, error) {
	all, err := helm(ns).Releases.History(name)
	if err != nil {
		return nil, err
	}
	slices.SortFunc(all, func(a, b *release.Release) int { return a.Version - b.Version })
	return all, nil
}

// waitRevision waits until a release has been deployed as revision n, and fails the
// test when it is beyond that.
func (f *fixture) waitRevision(ns, name string, n int) *release.Release {
	f.t.Helper()
	var last *release.Release
	f.eventually(fmt.Sprintf("release %s is deployed as revision %d", name, n), func() error {
		all, err := history(ns, name)
		if err != nil {
			return err
		}
		last = all[len(all)-1]
		if last.Version < n || last.Info.Status != release.StatusDeployed {
			return fmt.Errorf("revision %d is %s: %s", last.Version, last.Info.Status, last.Info.Description)
		}
		return nil
	})
	if last.Version != n {
		f.t.Fatalf("release %s is at revision %d, want %d", name, last.Version, n)
	}
	return last
}

// noRelease fails the test when there is a release of that name.
func noRelease(t *testing.T, ns, name string) {
	t.Helper()
	if all, err := history(ns, name); len(all) > 0 {
		t.Errorf("release %s is there, at revision %d (%s)", name, len(all), all[len(all)-1].Info.Status)
	} else if err == nil || !apierrors.IsNotFound(err) && err.Error() != driver.ErrReleaseNotFound.Error() {
		t.Errorf("release %s: %v", name, err)
	}
}

// configMap returns the data of a ConfigMap.
func configMap(t *testing.T, ns, name string) (map[string]string, error) {
	cm, err := shared.Client.CoreV1().ConfigMaps(ns).Get(t.Context(), name, metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	return cm.Data, nil
}

// waitData waits until a ConfigMap of f's namespace has just this data.
func (f *fixture) waitData(name string, want map[string]string) {
	f.t.Helper()
	f.eventually("ConfigMap "+name, func() error {
		got, err := configMap(f.t, f.ns, name)
		if err != nil {
			return err
		}
		if !maps.Equal(got, want) {
			return fmt.Errorf("it holds %v, want %v", got, want)
		}
		return nil
	})
}

// configure makes data the whole of the user's ConfigMap.
func (f *fixture) configure(data map[string]string) {
	f.t.Helper()
	cms := shared.Client.CoreV1().ConfigMaps(f.ns)
	cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: f.name}, Data: data}
	_, err := cms.Update(f.t.Context(), cm, metav1.UpdateOptions{})
	if apierrors.IsNotFound(err) {
		_, err = cms.Create(f.t.Context(), cm, metav1.CreateOptions{})
	}
	if err != nil {
		f.t.Fatal(err)
	}
}

// touch makes or changes a ConfigMap that hooks of the tests watch.
func (f *fixture) touch(name, data string) {
	f.t.Helper()
	shared.Apply(f.t, fmt.Sprintf("{apiVersion: v1, kind: ConfigMap, metadata: {name: %s, namespace: %s, labels: {e2e: %s}}, data: {text: %s}}",
		name, f.ns, f.ns, strconv.Quote(data)))
}

// deleteConfigMap deletes a ConfigMap of f's namespace.
func (f *fixture) deleteConfigMap(name string) {
	f.t.Helper()
	if err := shared.Client.CoreV1().ConfigMaps(f.ns).Delete(f.t.Context(), name, metav1.DeleteOptions{}); err != nil {
		f.t.Fatal(err)
	}
}

// picture is what a namespace holds, byte for byte: "Kind/name" → uid and version,
// of ConfigMaps, and Secrets: with them all of Helm's releases and all that is kept.
type picture map[string]string

func takePicture(t *testing.T, ns string) picture {
	t.Helper()
	out := picture{}
	for _, resource := range []string{"configmaps", "secrets"} {
		list, err := shared.Dynamic.Resource(schema.GroupVersionResource{Version: "v1", Resource: resource}).
			Namespace(ns).List(t.Context(), metav1.ListOptions{LabelSelector: "!starling.dev/copied-by"})
		if err != nil {
			t.Fatal(err)
		}
		for _, o := range list.Items {
			if o.GetName() == "e2e-probe" || o.GetName() == "kube-root-ca.crt" { // what changed so that time passed
				continue
			}
			out[resource+"/"+o.GetName()] = string(o.GetUID()) + " " + o.GetResourceVersion()
		}
	}
	return out
}

// restingPicture is the picture once it has been the same for a second: what is noted of a release
// may come a moment after its objects.
func restingPicture(t *testing.T, ns string) picture {
	t.Helper()
	for p := takePicture(t, ns); ; {
		time.Sleep(time.Second)
		next := takePicture(t, ns)
		if maps.Equal(p, next) {
			return p
		}
		p = next
	}
}

// same fails the test when something of the picture has changed, came or went.
func (p picture) same(t *testing.T, ns string) {
	t.Helper()
	if diff := cmp.Diff(p, takePicture(t, ns)); diff != "" {
		t.Errorf("namespace %s has changed (-before +after):\n%s", ns, diff)
	}
}

// patch merges a patch into an object of the core group, in JSON.
func patch(t *testing.T, resource, ns, name string, with map[string]any) {
	t.Helper()
	data, err := json.Marshal(with)
	if err != nil {
		t.Fatal(err)
	}
	_, err = shared.Dynamic.Resource(schema.GroupVersionResource{Version: "v1", Resource: resource}).
		Namespace(ns).Patch(t.Context(), name, types.MergePatchType, data, metav1.PatchOptions{})
	if err != nil {
		t.Fatal(err)
	}
}

func readAll(r io.Reader) string {
	data, err := io.ReadAll(io.LimitReader(r, 1<<20))
	if err != nil {
		return err.Error()
	}
	return string(data)
}
