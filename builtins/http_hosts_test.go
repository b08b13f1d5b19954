package builtins

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

func TestHostsOfObjects(t *testing.T) {
	for name, tt := range map[string]struct {
		source    HostSource
		obj, want string
	}{
		"a Pod":                        {HostSource{Kind: "Pod", Port: 80}, "status: {phase: Running, podIP: 10.1.2.3, podIPs: [{ip: 10.1.2.3}, {ip: 'fd12::5'}]}", "[10.1.2.3:80 [fd12::5]:80]"},
		"in the network of a Node":     {HostSource{Kind: "Pod"}, "spec: {hostNetwork: true}\nstatus: {phase: Running, podIP: 10.1.2.3}", "[]"},
		"one that has ended":           {HostSource{Kind: "Pod"}, "status: {phase: Succeeded, podIP: 10.1.2.3}", "[]"},
		"with the address of its Node": {HostSource{Kind: "Pod"}, "status: {phase: Running, hostIP: 10.0.0.7, hostIPs: [{ip: 10.0.0.7}], podIP: 10.0.0.7, podIPs: [{ip: 10.0.0.7}]}", "[]"},
		"one of the link":              {HostSource{Kind: "Pod"}, "status: {phase: Running, podIP: 169.254.169.254, podIPs: [{ip: 169.254.169.254}, {ip: 'fe80::1'}]}", "[]"},
		"one of this machine":          {HostSource{Kind: "Pod"}, "status: {phase: Running, podIP: 127.0.0.1}", "[]"},
		"a Service":                    {HostSource{Kind: "Service"}, "metadata: {name: db, namespace: shop}\nspec: {clusterIP: 10.96.0.9, clusterIPs: [10.96.0.9]}", "[10.96.0.9 db.shop db.shop.svc db.shop.svc.cluster.local]"},
		"one without an address":       {HostSource{Kind: "Service"}, "metadata: {name: db, namespace: shop}\nspec: {clusterIP: None}", "[db.shop db.shop.svc db.shop.svc.cluster.local]"},
		"a field":                      {HostSource{Kind: "Provider", Field: "spec.endpoints"}, "spec: {endpoints: [https://a.example.com/x, 'http://169.254.169.254', not a host]}", "[named a.example.com:443]"},
		"no such field":                {HostSource{Kind: "Provider", Field: "spec.endpoints"}, "spec: {}", "[]"},
	} {
		var obj map[string]any
		if err := yaml.Unmarshal([]byte(tt.obj), &obj); err != nil {
			t.Fatal(err)
		}
		if got := fmt.Sprint(tt.source.hostsIn(obj)); got != tt.want {
			t.Errorf("%s: %s, want %s", name, got, tt.want)
		}
	}
}

// podsOf answers each list with so many Pods, which have an address each.
type podsOf struct {
	Reader
	n, lists int
}

func (r *podsOf) List(context.Context, string, string, []string, string, string) ([]map[string]any, error) {
	r.lists++
	out := make([]map[string]any, r.n)
	for i := range out {
		ip := fmt.Sprintf("10.1.%d.%d", i/250, i%250+1)
		out[i] = map[string]any{"status": map[string]any{"phase": "Running", "podIP": ip, "podIPs": []any{map[string]any{"ip": ip}}}}
	}
	return out, nil
}

// Sources are looked at once in a run, and what leads to too many hosts is an error of the request.
func TestHostsThatAreFoundAreBounded(t *testing.T) {
	for n, want := range map[int]string{maxFound: "", 10_000: "module(http = […]) leads to more than 2000 hosts; say less with labels, namespaces"} {
		reader := &podsOf{n: n}
		c := &call{run: &Run{Reader: reader, HostSources: []HostSource{{APIVersion: "v1", Kind: "Pod"}}}}
		hosts, err := c.hosts()
		if want != "" {
			if err == nil || err.Error() != want {
				t.Errorf("%d Pods: %v", n, err)
			}
			continue
		}
		if again, err := c.hosts(); err != nil || len(hosts) != n || len(again) != n || reader.lists != 1 {
			t.Errorf("%d Pods: %d hosts, then %d, %d lists, %v", n, len(hosts), len(again), reader.lists, err)
		}
	}
	failing := &call{run: &Run{Reader: noList{}, HostSources: []HostSource{{APIVersion: "v1", Kind: "Pod"}}}}
	if _, err := failing.hosts(); err == nil || !strings.Contains(err.Error(), "cannot be found: forbidden") {
		t.Errorf("%v", err)
	}
}

type noList struct{ Reader }

func (noList) List(context.Context, string, string, []string, string, string) ([]map[string]any, error) {
	return nil, fmt.Errorf("forbidden")
}
