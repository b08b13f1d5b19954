package helm

import (
	"context"
	"encoding/base64"
	"errors"
	"maps"
	"reflect"
	"strings"
	"testing"

	"helm.sh/helm/v3/pkg/action"
	"helm.sh/helm/v3/pkg/storage/driver"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/version"
	"k8s.io/client-go/discovery"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"

	helmtime "helm.sh/helm/v3/pkg/time"
)

// secrets are those of a namespace.
type secrets struct {
	corev1client.SecretInterface
	held map[string]*corev1.Secret
}

func (s secrets) Get(_ context.Context, name string, _ metav1.GetOptions) (*corev1.Secret, error) {
	if found := s.held[name].DeepCopy(); found != nil {
		found.Namespace = "shop"
		return found, nil
	}
	return nil, apierrors.NewNotFound(schema.GroupResource{Resource: "secrets"}, name)
}

func (s secrets) Create(_ context.Context, secret *corev1.Secret, _ metav1.CreateOptions) (*corev1.Secret, error) {
	return s.Update(context.Background(), secret, metav1.UpdateOptions{})
}

func (s secrets) Update(_ context.Context, secret *corev1.Secret, _ metav1.UpdateOptions) (*corev1.Secret, error) {
	s.held[secret.Name] = secret
	return secret, nil
}

func some() *Release {
	return &Release{
		Name: "web", Namespace: "shop", Version: 3, Manifest: strings.Repeat("a: b\n", 900),
		Labels: map[string]string{"team": "blue", "owner": "nobody"},
		Info:   &Info{Status: StatusDeployed, FirstDeployed: helmtime.Unix(1, 0), Notes: "\u2028<&>"},
		Hooks:  []*Hook{{Name: "a", Events: []HookEvent{HookPreInstall}}}, Config: map[string]any{"a": 1.5}, Chart: &Chart{},
	}
}

// Each reads what the other keeps, and both keep the same bytes.
func TestRecordsAsInHelm(t *testing.T) {
	for _, again := range []bool{false, true} {
		ours, theirs := secrets{held: map[string]*corev1.Secret{}}, secrets{held: map[string]*corev1.Secret{}}
		kept, helm := Records{ours}, driver.NewSecrets(theirs)
		key := Key("web", 3)
		var err error
		if again {
			err = errors.Join(kept.Update(t.Context(), some()), helm.Update(key, some()))
		} else {
			_, err = kept.Create(t.Context(), some())
			err = errors.Join(err, helm.Create(key, some()))
		}
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range []*corev1.Secret{ours.held[key], theirs.held[key]} {
			for _, stamp := range []string{"createdAt", "modifiedAt"} {
				if s.Labels[stamp] != "" {
					s.Labels[stamp] = "now"
				}
			}
		}
		if !reflect.DeepEqual(ours.held, theirs.held) {
			t.Errorf("again %t: %+v\nin Helm %+v", again, ours.held[key], theirs.held[key])
		}
		want, err := driver.NewSecrets(ours).Get(key)
		if err != nil {
			t.Fatal(err)
		}
		got, _, err := Records{theirs}.Get(t.Context(), "web", 3)
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("again %t: %+v %v\nin Helm %+v", again, got, err, want)
		}
	}
}

// Anybody who may write Secrets can write one that holds no revision, or half of one.
func TestRecordsThatAreBroken(t *testing.T) {
	of := func(data string) (*Release, error) {
		held := map[string]*corev1.Secret{Key("web", 1): {Data: map[string][]byte{"release": []byte(data)}}}
		rel, _, err := Records{secrets{held: held}}.Get(t.Context(), "web", 1)
		return rel, err
	}
	b64 := base64.StdEncoding.EncodeToString
	bomb, err := encode(&Release{Manifest: strings.Repeat("a", maxRecord)})
	if err != nil {
		t.Fatal(err)
	}
	for name, data := range map[string]string{
		"nothing": "", "no base64": "?", "no gzip": b64([]byte("\x1f\x8b\x08 no")), "no JSON": b64([]byte("{")),
		"a list": b64([]byte("[]")), "a bomb": string(bomb),
	} {
		_, err := of(data)
		if _, is := errors.AsType[*Unreadable](err); !is {
			t.Errorf("%s: %v", name, err)
		}
	}
	half := `{"name": "db", "namespace": "kube-system", "version": 9, "hooks": [null, {"name": "a"}]}`
	rel, err := of(b64([]byte(half)))
	if err != nil || rel.Info.Status == StatusDeployed || len(rel.Hooks) != 1 ||
		rel.Name != "web" || rel.Namespace != "shop" || rel.Version != 1 {
		t.Errorf("half of one: %+v %v", rel, err)
	}
	if _, _, err := (Records{secrets{}}).Get(t.Context(), "web", 1); !apierrors.IsNotFound(err) {
		t.Error(err)
	}
}

type server struct {
	discovery.DiscoveryInterface
	groups []*metav1.APIGroup
	lists  []*metav1.APIResourceList
	err    error
}

func (s server) ServerVersion() (*version.Info, error) {
	return &version.Info{GitVersion: "v1.37.1", Major: "1", Minor: "37"}, nil
}

func (s server) ServerGroupsAndResources() ([]*metav1.APIGroup, []*metav1.APIResourceList, error) {
	return s.groups, s.lists, s.err
}

// Capabilities are as Helm sees them, and name the groups that the API server does not tell of.
func TestCapabilitiesAsInHelm(t *testing.T) {
	full := server{
		groups: []*metav1.APIGroup{{
			Versions: []metav1.GroupVersionForDiscovery{{GroupVersion: "apps/v1"}, {GroupVersion: "a/v1"}},
		}},
		lists: []*metav1.APIResourceList{{
			GroupVersion: "apps/v1", APIResources: []metav1.APIResource{{Kind: "Deployment"}, {Kind: "Deployment"}},
		}},
	}
	partly := full
	away := map[schema.GroupVersion]error{{Group: "a", Version: "v1"}: errors.New("away")}
	partly.err = &discovery.ErrGroupDiscoveryFailed{Groups: away}
	for _, s := range []server{{}, full, partly, {err: errors.New("down")}} {
		caps, failed, err := CapabilitiesOf(s, nil)
		want, wantErr := action.GetVersionSet(s)
		if (err != nil) != (wantErr != nil) {
			t.Errorf("%v, in Helm %v", err, wantErr)
		}
		if err != nil {
			continue
		}
		set := map[string]bool{}
		for _, one := range want {
			set[one] = true
		}
		got := map[string]bool{}
		for _, one := range caps.APIVersions {
			got[one] = true
		}
		if !maps.Equal(got, set) || (failed["a/v1"] != nil) != (s.err != nil) || caps.KubeVersion.Version != "v1.37.1" {
			t.Errorf("%v %v, in Helm %v", caps, failed, want)
		}
	}
}

// Kinds of a group that the API server does not tell of count as before.
func TestCapabilitiesOfAGroupThatIsAway(t *testing.T) {
	s := server{groups: []*metav1.APIGroup{{}}, err: &discovery.ErrGroupDiscoveryFailed{Groups: map[schema.GroupVersion]error{{Group: "a", Version: "v1"}: errors.New("away")}}}
	caps, _, err := CapabilitiesOf(s, &Capabilities{APIVersions: []string{"a/v1", "a/v1/A", "a/v10/A", "b/v1/B"}})
	if err != nil || !caps.APIVersions.Has("a/v1/A") || caps.APIVersions.Has("a/v10/A") || caps.APIVersions.Has("b/v1/B") {
		t.Errorf("%v, %v", caps.APIVersions, err)
	}
}

// A lookup that finds nothing is empty, one of a list has items, and one that fails is an error.
func TestLookup(t *testing.T) {
	ch, err := Load([]File{
		{"Chart.yaml", []byte("apiVersion: v2\nname: web\nversion: 1.0.0\n")},
		{"templates/a", []byte(`{{ lookup "v1" "Secret" "a" .Values.name | toJson }}`)},
	})
	if err != nil {
		t.Fatal(err)
	}
	find := func(_, kind, namespace, name string) (map[string]any, error) {
		switch name {
		case "gone":
			return nil, apierrors.NewNotFound(schema.GroupResource{}, name)
		case "bad":
			return nil, errors.New("no")
		case "":
			return map[string]any{}, nil
		}
		return map[string]any{namespace + "/" + kind: name}, nil
	}
	wants := map[string]string{"there": `{"a/Secret":"there"}`, "gone": "{}", "": `{"items":[]}`, "bad": "no"}
	for name, want := range wants {
		files, err := Render(ch, map[string]any{"name": name}, Options{}, &Capabilities{}, find)
		if got := files["web/templates/a"]; got != want && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%q: %q %v, want %q", name, got, err, want)
		}
	}
	if missing := Missing(&Chart{Metadata: ch.Metadata}); missing != nil {
		t.Error(missing)
	}
	ch.Metadata.Dependencies = []*Dependency{{Name: "db"}}
	if got, want := Missing(ch), action.CheckDependencies(ch, ch.Metadata.Dependencies); got.Error() != want.Error() {
		t.Errorf("%v, in Helm %v", got, want)
	}
}
