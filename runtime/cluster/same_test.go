package cluster

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/starling-operator/starling/runtime/effect"
	"github.com/starling-operator/starling/runtime/object"
	"github.com/starling-operator/starling/runtime/sim/store"
	"sigs.k8s.io/yaml"
)

func parse(t *testing.T, text string) map[string]any {
	t.Helper()
	body, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	obj, err := decodeObject(body)
	if err != nil {
		t.Fatal(err)
	}
	return obj
}

const deployment = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: x, namespace: a, labels: {app: x}}
spec:
  replicas: 2
  paused: false
  selector: {matchLabels: {app: x}}
  template:
    metadata: {labels: {app: x}}
    spec:
      tolerations: [{key: a, operator: Exists}]
      volumes: [{name: v, emptyDir: {}}, {name: c, configMap: {name: x, optional: false}}]
      containers:
      - name: x
        image: x:1
        args: [a, b]
        ports: [{containerPort: 80}, {containerPort: 81, protocol: UDP, name: other}]
        env: [{name: A, value: "1"}, {name: EMPTY}, {name: S, valueFrom: {secretKeyRef: {name: s, key: k}}}]
        volumeMounts: [{name: v, mountPath: /v, readOnly: false}]
        resources: {requests: {cpu: 500m, memory: 64Mi}}
        readinessProbe: {httpGet: {path: /, port: 80}, periodSeconds: 5}
`

const service = `
apiVersion: v1
kind: Service
metadata: {name: x, namespace: a}
spec: {selector: {app: x}, ports: [{port: 80, targetPort: http, name: http}, {port: 53, protocol: UDP, name: dns}, {port: 53, protocol: TCP, name: dns-tcp}]}
`

// Fields that the API server fills in, or leaves out, are no difference. Of values that it keeps in another form people
// are told.
func TestWhatIsAsItShouldBe(t *testing.T) {
	for name, test := range map[string]struct {
		object string
		forms  string // each apply costs a request: these are kept in another form
	}{
		"deployment":       {deployment, ""},
		"service":          {service, ""},
		"role":             {"{apiVersion: rbac.authorization.k8s.io/v1, kind: Role, metadata: {name: x, namespace: a}, rules: [{apiGroups: [\"\"], resources: [pods], verbs: [get]}]}", ""},
		"secret":           {"{apiVersion: v1, kind: Secret, metadata: {name: x, namespace: a}, type: Opaque, data: {a: YQ==}, immutable: false}", ""},
		"finalizers":       {"{apiVersion: v1, kind: ConfigMap, metadata: {name: x, namespace: a, finalizers: [a/b, a/c]}}", ""},
		"numbers":          {"{apiVersion: example.com/v1, kind: Widget, metadata: {name: x, namespace: a}, spec: {a: 1.0, b: 9007199254740993, c: 0.5, d: [1, {e: f}], g: {}, h: []}}", ""},
		"another quantity": {"{apiVersion: v1, kind: LimitRange, metadata: {name: x, namespace: a}, spec: {limits: [{type: Pod, max: {cpu: 1000m}}]}}", `spec.limits[0].max.cpu as "1", not "1000m"`},
		"a number":         {"{apiVersion: v1, kind: ResourceQuota, metadata: {name: x, namespace: a}, spec: {hard: {pods: 20, requests.cpu: \"2\"}}}", `spec.hard.pods as "20", not 20`},
		"a whole list":     {"{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, metadata: {name: x, namespace: a}, roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: x}, subjects: [{kind: User, name: ann}]}", `subjects[0].apiGroup as "rbac.authorization.k8s.io", which is not given`},
		"filled in": {"{apiVersion: apps/v1, kind: DaemonSet, metadata: {name: x, namespace: a}, spec: {updateStrategy: {}, selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: b}}, spec: {containers: [{name: a, image: a}]}}}}",
			`spec.updateStrategy.rollingUpdate as {"maxSurge":0,"maxUnavailable":1}, which is not given, spec.updateStrategy.type as "RollingUpdate", which is not given`},
		"null": {"{apiVersion: v1, kind: ConfigMap, metadata: {name: x, namespace: a}, data: {a: null, b: b}}", `data.a as "", which is not given`},
	} {
		t.Run(name, func(t *testing.T) {
			w := newFarWorld(t)
			w.api.store.Serve(store.Kind{Group: "example.com", Version: "v1", Kind: "Widget", Plural: "widgets", Singular: "widget", Namespaced: true})
			obj := parse(t, test.object)
			if _, err := w.apply(obj); err != nil {
				t.Fatal(err)
			}
			want := []string{"GET x"}
			if test.forms != "" {
				want = append(want, "PATCH x")
			}
			live := w.get(effect.RefOf(obj))
			if got := strings.Join(OtherForms(obj, live, "starling/web/f"), ", "); got != test.forms {
				t.Errorf("in another form: %s", got)
			}
			w.want("again", []map[string]any{obj}, want...)
		})
	}
}

// However an object changes, by its hook or by others, it comes to be what an apply makes of
// it.
func TestSetsDoWhatAnApplyDoes(t *testing.T) {
	ctx := context.Background()
	quiet := 0
	for seed := range uint64(8) {
		random := rand.New(rand.NewPCG(seed, 1))
		set, plain := newFarWorld(t), newFarWorld(t)
		asked := parse(t, deployment)
		ref := effect.RefOf(asked)
		for step := range 12 {
			switch {
			case step == 0 || random.IntN(3) == 0: // as it was
			case random.IntN(2) == 0:
				asked, _ = vary(random, asked).(map[string]any)
			default:
				body := strategic(random)
				for _, w := range []*farWorld{set, plain} {
					_, err := w.write("them", effect.Write{Kind: effect.WritePatch, Ref: ref, Patch: &effect.Patch{Type: effect.PatchStrategic, Body: body}})
					if err != nil {
						t.Fatal(err)
					}
				}
			}
			for _, w := range []*farWorld{set, plain} {
				sameOfAPart(t, asked, ref, w)
			}
			requests, err := set.apply(asked)
			if err == nil && len(requests) == 1 {
				quiet++
			}
			wanted := effect.Write{Kind: effect.WriteApply, Ref: ref, Force: true, Object: set.writer.marksOf("starling/web/f", "children", false).on(asked)}
			_, plainErr := plain.writer.o.Client.Write(ctx, "starling/web/f", wanted)
			if (err == nil) != (plainErr == nil) {
				t.Fatalf("seed %d, step %d: %v, but an apply: %v", seed, step, err, plainErr)
			}
			if diff := cmp.Diff(bare(plain.get(ref)), bare(set.get(ref))); diff != "" {
				t.Fatalf("seed %d, step %d (-apply +set):\n%s", seed, step, diff)
			}
		}
	}
	if quiet == 0 {
		t.Error("each apply has cost a request")
	}
}

// The order of items that have names is asked for, too: an environment variable may use
// those before it.
func TestTheOrderOfItemsIsAskedFor(t *testing.T) {
	for name, text := range map[string]string{
		"keys":   "{apiVersion: v1, kind: Service, metadata: {name: x, namespace: a}, spec: {ports: [{name: %s, port: %s}, {name: %s, port: %s}]}}",
		"values": "{apiVersion: v1, kind: ConfigMap, metadata: {name: x, namespace: a, finalizers: [x.y/%s%s, x.y/%s%s]}}",
	} {
		w := newFarWorld(t)
		ab, ba := parse(t, fmt.Sprintf(text, "a", "1", "b", "2")), parse(t, fmt.Sprintf(text, "b", "2", "a", "1"))
		for _, obj := range []map[string]any{ab, ba, ab} {
			if _, err := w.apply(obj); err != nil {
				t.Fatal(err)
			}
			plain := newFarWorld(t)
			if _, err := plain.apply(obj); err != nil {
				t.Fatal(err)
			}
			got, want := w.get(effect.RefOf(obj)), plain.get(effect.RefOf(obj))
			for _, path := range [][]string{{"spec", "ports"}, {"metadata", "finalizers"}} {
				a, _ := object.Get(got, path)
				b, _ := object.Get(want, path)
				if diff := cmp.Diff(b, a); diff != "" {
					t.Errorf("%s (-want +got):\n%s", name, diff)
				}
			}
			w.want(name, []map[string]any{obj}, "GET x")
		}
	}
}

// vary returns a value in which something is another, or is gone.
func vary(random *rand.Rand, value any) any {
	switch value := value.(type) {
	case map[string]any:
		out := map[string]any{}
		var keys []string
		for key := range value {
			out[key] = value[key]
			if key != "apiVersion" && key != "kind" && key != "name" && key != "namespace" && key != "selector" {
				keys = append(keys, key)
			}
		}
		slices.Sort(keys)
		if len(keys) == 0 {
			return out
		}
		key := keys[random.IntN(len(keys))]
		if random.IntN(6) == 0 && key != "metadata" && key != "spec" && key != "template" && key != "containers" {
			delete(out, key)
		} else {
			out[key] = vary(random, value[key])
		}
		return out
	case []any:
		out := append([]any{}, value...)
		if len(out) == 0 {
			return out
		}
		i := random.IntN(len(out))
		switch random.IntN(6) {
		case 0:
			if len(out) > 1 {
				return append(out[:i], out[i+1:]...)
			}
		case 1:
			j := random.IntN(len(out))
			out[i], out[j] = out[j], out[i]
			return out
		}
		out[i] = vary(random, out[i])
		return out
	case string:
		return fmt.Sprint(value, random.IntN(3))
	case int64:
		return value + random.Int64N(2)
	case bool:
		return !value
	}
	return value
}

// strategic is a change by others.
func strategic(random *rand.Rand) any {
	container := func(fields map[string]any) any {
		fields["name"] = "x"
		return map[string]any{"spec": map[string]any{"template": map[string]any{"spec": map[string]any{"containers": []any{fields}}}}}
	}
	return []any{
		map[string]any{"spec": map[string]any{"replicas": random.Int64N(4)}},
		map[string]any{"spec": map[string]any{"paused": true}},
		map[string]any{"metadata": map[string]any{"labels": map[string]any{"app": nil}}},
		map[string]any{"metadata": map[string]any{"annotations": map[string]any{"theirs": "1"}}},
		container(map[string]any{"image": "theirs"}),
		container(map[string]any{"env": []any{map[string]any{"name": "A", "value": "theirs"}, map[string]any{"name": "B", "value": "theirs"}}}),
		container(map[string]any{"env": []any{map[string]any{"name": "A", "$patch": "delete"}}}),
		container(map[string]any{"args": []any{"a", "theirs"}}),
		container(map[string]any{"resources": map[string]any{"requests": map[string]any{"cpu": "1"}}}),
	}[random.IntN(9)]
}

// bare is an object without what differs from one server to the other.
func bare(obj map[string]any) map[string]any {
	out, metadata := effect.WithMetadata(obj)
	for _, key := range []string{"uid", "resourceVersion", "creationTimestamp"} {
		delete(metadata, key)
	}
	var entries []any
	list, _ := metadata["managedFields"].([]any)
	for _, e := range list {
		entry := map[string]any{}
		for key, value := range e.(map[string]any) {
			if key != "time" {
				entry[key] = value
			}
		}
		entries = append(entries, entry)
	}
	metadata["managedFields"] = entries
	return out
}
