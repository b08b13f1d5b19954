package replicas

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// place is what one pod is in the tests.
type place struct {
	name, role, phase string
	ready             bool
	command, args     []any
	env               []any
}

func (p place) object() map[string]any {
	labels, is := map[string]any{}, "False"
	if p.role != "" {
		labels[RoleLabel] = p.role
	}
	if p.ready {
		is = "True"
	}
	starling := map[string]any{"name": "starling", "image": "starling:v1", "args": p.args, "env": p.env}
	if p.command != nil {
		starling["command"] = p.command
	}
	return map[string]any{
		"apiVersion": "v1", "kind": "Pod", "metadata": map[string]any{"namespace": "ops", "name": p.name, "labels": labels},
		"spec":   map[string]any{"nodeName": "n1", "containers": []any{map[string]any{"name": "sidecar", "args": []any{"--run"}}, starling}},
		"status": map[string]any{"phase": p.phase, "conditions": []any{map[string]any{"type": "Ready", "status": is}}},
	}
}

func find(t *testing.T, name string, places ...place) ([]Pod, error) {
	t.Helper()
	c := collected{Options: Options{Namespace: "ops", Name: name}}
	for _, p := range places {
		if err := c.add(p.object()); err != nil {
			t.Fatal(err)
		}
	}
	return c.sorted()
}

// The pods of an instance are those that run it, by the flags of their containers; what connects to one has the flags
// by which it finds the socket.
func TestFind(t *testing.T) {
	args := []any{"run", "--modules=/modules", "--state-dir=/state"}
	found, err := find(t, "starling",
		place{name: "a", role: Standby, phase: "Running", args: args},
		place{name: "b", role: Standby, phase: "Running", ready: true, args: args},
		place{name: "c", role: Leader, phase: "Running", ready: true, args: args},
		place{name: "d", role: Standby, phase: "Failed", args: args},
		place{name: "e", role: Leader, phase: "Running", ready: true, args: append(args, "--name", "edge")},
		place{name: "g", role: Standby, phase: "Running", ready: true, args: []any{"dance"}},
		place{name: "h", role: Standby, phase: "Running", ready: true, command: []any{"/bin/star"}, args: []any{"run", "--state-dir", "/s", "-n", "ops"}},
		place{name: "i", role: Standby, phase: "Running", args: []any{"run", "--namespace=$(POD_NAMESPACE)", "--state-dir", "$(STATE)/$(NAME)/$(OTHER)/$$(STATE)"}, env: []any{
			map[string]any{"name": "POD_NAMESPACE", "valueFrom": map[string]any{"fieldRef": map[string]any{"fieldPath": "metadata.namespace"}}},
			map[string]any{"name": "NAME", "valueFrom": map[string]any{"configMapKeyRef": map[string]any{"name": "a", "key": "b"}}},
			map[string]any{"name": "ROOT", "value": "/s"},
			map[string]any{"name": "STATE", "value": "$(ROOT)/i"},
		}},
	)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, p := range found {
		got = append(got, fmt.Sprint(p.Name, " ", p.Leads, " ", p.Ready, " ", p.Container, " ", strings.Join(p.Argv, " ")))
	}
	if diff := cmp.Diff([]string{
		"c true true starling starling admin-socket --state-dir=/state",
		"b false true starling starling admin-socket --state-dir=/state",
		"h false true starling /bin/star admin-socket --namespace=ops --state-dir=/s",
		"a false false starling starling admin-socket --state-dir=/state",
		"i false false starling starling admin-socket --namespace=ops --state-dir=/s/i/$(NAME)/$(OTHER)/$(STATE)",
	}, got); diff != "" {
		t.Error(diff)
	}
	for want, places := range map[string][]place{
		"no pod of starling ops/starling runs in namespace ops; there are those of ops/edge; give --namespace and --name":                                     {{name: "e", role: Leader, phase: "Running", args: append(args, "--name=edge")}},
		"no pod of starling ops/starling is in namespace ops: none that has the label starling.dev/role and runs `starling run`; give --namespace and --name": {{name: "f", role: Standby, phase: "Running", args: []any{"sleep"}}},
	} {
		if _, err := find(t, "starling", places...); err == nil || err.Error() != want {
			t.Errorf("error is %v, want %s", err, want)
		}
	}
}
