package object

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

func TestOnePerKey(t *testing.T) {
	const pod = "{apiVersion: v1, kind: Pod, metadata: {name: p}, spec: {containers: [{name: a, %}]}}"
	const spec = "{apiVersion: v1, kind: Pod, metadata: {name: p}, spec: {%}}"
	for name, c := range map[string]struct {
		in, part, want string // want is "" when nothing differs
		says           string // "" for nothing
		refused        bool
	}{
		"nothing twice": {in: pod, part: "env: [{name: A, value: x}, {name: B}]"},
		"the last variable counts, at its place": {in: pod, part: "env: [{name: A, value: x}, {name: B}, {name: A, value: y}]",
			want: "env: [{name: B}, {name: A, value: y}]", says: "spec.containers[0].env has name A twice: the last one counts"},
		"three times, and another one twice": {in: pod, part: "env: [{name: A, value: '1'}, {name: A, value: '2'}, {name: B}, {name: A}, {name: B, value: b}]",
			want: "env: [{name: A}, {name: B, value: b}]", says: "name A 3 times"},
		"a value of elsewhere counts": {in: pod, part: "env: [{name: A, value: x}, {name: A, valueFrom: {fieldRef: {fieldPath: metadata.name}}}]",
			want: "env: [{name: A, valueFrom: {fieldRef: {fieldPath: metadata.name}}}]", says: "the last one counts"},
		"a value of elsewhere may be absent": {in: pod, part: "env: [{name: A, value: x}, {name: A, valueFrom: {secretKeyRef: {name: s, key: k, optional: true}}}]",
			says: "then the one before counts", refused: true},
		"it adds to itself": {in: pod, part: "env: [{name: A, value: /bin}, {name: A, value: '$(A):/usr/bin'}, {name: A, value: '$(A):/opt'}]",
			want: "env: [{name: A, value: '/bin:/usr/bin:/opt'}]", says: "the last one counts"},
		"another one refers to the first": {in: pod, part: "env: [{name: A, value: x}, {name: B, value: 'b-$(A)-$$(A)'}, {name: A, value: y}, {name: C, value: $(A)}]",
			want: "env: [{name: B, value: 'b-x-$$(A)'}, {name: A, value: y}, {name: C, value: $(A)}]", says: "the last one counts"},
		"what it refers to is read from elsewhere": {in: pod, part: "env: [{name: A, valueFrom: {fieldRef: {fieldPath: metadata.name}}}, {name: B, value: $(A)}, {name: A, value: y}]",
			says: "B refers to the one before", refused: true},
		"a name that is a number": {in: pod, part: "env: [{name: 1, value: x}, {name: 1, value: y}]", want: "env: [{name: 1, value: y}]", says: "name 1 twice"},
		"no list of objects":      {in: pod, part: "env: [x, null, {value: y}, {name: [A]}, {name: [A]}]"},
		"two protocols":           {in: pod, part: "ports: [{containerPort: 53, protocol: TCP}, {containerPort: 53, protocol: UDP}]"},
		"a port with another name": {in: pod, part: "ports: [{containerPort: 80, name: http}, {containerPort: 80, name: web, protocol: TCP}]",
			want: "ports: [{containerPort: 80, name: web, protocol: TCP}]", says: "containerPort/protocol 80/TCP twice: the last one is applied, named web"},
		"a probe of a port whose name goes": {in: pod, part: "ports: [{containerPort: 80, name: http}, {containerPort: 80, name: web}], livenessProbe: {httpGet: {port: http}}, readinessProbe: {tcpSocket: {port: web}}",
			want: "ports: [{containerPort: 80, name: web}], livenessProbe: {httpGet: {port: 80}}, readinessProbe: {tcpSocket: {port: web}}", says: "named web"},
		"one port says the name, one the host's": {in: pod, part: "ports: [{containerPort: 80, name: http}, {containerPort: 80, hostPort: 80}]",
			want: "ports: [{containerPort: 80, hostPort: 80, name: http}]", says: "one port is applied"},
		"two ports of the host": {in: pod, part: "ports: [{containerPort: 80, hostPort: 80}, {containerPort: 80, hostPort: 81}]", says: "differ in hostPort", refused: true},
		"one path of two volumes": {in: pod, part: "volumeMounts: [{name: a, mountPath: /x}, {name: b, mountPath: /x}]",
			says: "spec.containers[0].volumeMounts has mountPath /x twice: the API server refuses it", refused: true},
		"one volume at two paths": {in: pod, part: "volumeMounts: [{name: a, mountPath: /x}, {name: a, mountPath: /y}]"},
		"volumes":                 {in: spec, part: "volumes: [{name: a}, {name: a}]", says: "spec.volumes has name a twice", refused: true},
		"containers":              {in: spec, part: "initContainers: [{name: a}, {name: a}]", says: "spec.initContainers has name a twice", refused: true},
		"secrets of images":       {in: spec, part: "imagePullSecrets: [{name: a}, {name: b}, {name: a}]", want: "imagePullSecrets: [{name: a}, {name: b}]", says: "applied once"},
		"secrets without a name":  {in: spec, part: "imagePullSecrets: [{}, {name: ''}]", want: "imagePullSecrets: [{name: ''}]", says: "spec.imagePullSecrets has name "},
		"hosts": {in: spec, part: "hostAliases: [{ip: 1.1.1.1, hostnames: [a]}, {ip: 2.2.2.2}, {ip: 1.1.1.1, hostnames: [b]}]",
			want: "hostAliases: [{ip: 1.1.1.1, hostnames: [a, b]}, {ip: 2.2.2.2}]", says: "one entry with the names of all"},
		"spread":             {in: spec, part: "topologySpreadConstraints: [{topologyKey: z, whenUnsatisfiable: x}, {topologyKey: z, whenUnsatisfiable: x}]", says: "z/x twice", refused: true},
		"spread in two ways": {in: spec, part: "topologySpreadConstraints: [{topologyKey: z, whenUnsatisfiable: x}, {topologyKey: z, whenUnsatisfiable: y}]"},
		"finalizers":         {in: "{apiVersion: example.com/v1, kind: X, metadata: {name: p, %}}", part: "finalizers: [a/b, a/b]", want: "finalizers: [a/b]", says: "metadata.finalizers has a/b twice"},
		"a CronJob": {in: "{apiVersion: batch/v1, kind: CronJob, spec: {jobTemplate: {spec: {template: {spec: {containers: [{%}]}}}}}}", part: "env: [{name: A}, {name: A}]",
			want: "env: [{name: A}]", says: "spec.jobTemplate.spec.template.spec.containers[0].env has name A twice"},
		"a Service":           {in: "{apiVersion: v1, kind: Service, spec: {%}}", part: "ports: [{port: 53}, {port: 53, protocol: TCP}]", says: "53/TCP twice", refused: true},
		"a Service of UDP":    {in: "{apiVersion: v1, kind: Service, spec: {%}}", part: "ports: [{port: 53}, {port: 53, protocol: UDP}]"},
		"a kind of others":    {in: "{apiVersion: example.com/v1, kind: Service, spec: {%}}", part: "ports: [{port: 53}, {port: 53}]"},
		"a NetworkPolicy":     {in: "{apiVersion: networking.k8s.io/v1, kind: NetworkPolicy, spec: {ingress: [{%}]}}", part: "ports: [{port: 53}, {port: 53}]"},
		"an empty object":     {in: "{%}", part: ""},
		"a spec that is none": {in: "{apiVersion: v1, kind: Pod, spec: {%}}", part: "containers: {env: [{name: A}, {name: A}]}"},
	} {
		t.Run(name, func(t *testing.T) {
			read := func(part string) (obj map[string]any) {
				if err := yaml.Unmarshal([]byte(strings.ReplaceAll(c.in, "%", part)), &obj); err != nil {
					t.Fatal(err)
				}
				return obj
			}
			in := read(c.part)
			out, found := OnePerKey(in, nil)
			if before := read(c.part); !reflect.DeepEqual(in, before) {
				t.Errorf("it has changed what it was given: %v", in)
			}
			want := read(c.part)
			if c.want != "" {
				want = read(c.want)
			}
			if fmt.Sprint(out) != fmt.Sprint(want) { // a number may be of another type
				got, _ := json.Marshal(out)
				t.Errorf("gives %s", got)
			}
			switch {
			case c.says == "" && len(found) > 0:
				t.Errorf("says %v", found)
			case c.says == "":
			case len(found) == 0 || !strings.Contains(found[0].String(), c.says) || found[0].Refused != c.refused:
				t.Errorf("says %v, not %q (refused: %v)", found, c.says, c.refused)
			}
		})
	}
}

func TestOnePerKeyOfCustomKinds(t *testing.T) {
	var schema map[string]any
	if err := yaml.Unmarshal([]byte(`
properties:
  spec:
    properties:
      rules:
        x-kubernetes-list-type: map
        x-kubernetes-list-map-keys: [name, side]
        items:
          properties:
            name: {}
            side: {default: left}
            tags: {x-kubernetes-list-type: set}
      plain: {items: {}}
      byTeam:
        additionalProperties: {x-kubernetes-list-type: set}
`), &schema); err != nil {
		t.Fatal(err)
	}
	for in, want := range map[string]string{
		"rules: [{name: a}, {name: a, side: right}]": "",
		"plain: [a, a]": "",
		"rules: [{name: a}, {name: a, side: left}]":               "spec.rules has name/side a/left twice",
		"rules: [{name: a, tags: [x, y, x]}]":                     "spec.rules[0].tags has x twice",
		"byTeam: {one: [1, 2], 'two.b': [1, 1]}":                  `spec.byTeam["two.b"] has 1 twice`,
		"rules: {name: a}\n  plain: x\n  byTeam: [{one: [1, 1]}]": "",
	} {
		obj := map[string]any{}
		if err := yaml.Unmarshal([]byte("apiVersion: example.com/v1\nkind: Lamp\nspec:\n  "+in), &obj); err != nil {
			t.Fatal(err)
		}
		_, found := OnePerKey(obj, schema)
		if (len(found) > 0) != (want != "") || want != "" && (!found[0].Refused || !strings.HasPrefix(found[0].String(), want)) {
			t.Errorf("%s: says %v, not %q", in, found, want)
		}
	}
}
