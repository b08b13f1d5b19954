package main

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestStory(t *testing.T) {
	at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	s := newStory()
	s.begin([]string{"fake-0", "fake-1"})
	for _, step := range []struct {
		name    string
		see     observation
		want    []line
		missing string
	}{
		{"known node", sawNode{"fake-0", true}, nil, "the release hello/hello is not installed"},
		{"value", sawValue{2}, []line{{good, "value set", "global.readyNodes = 2, by the hook in global/cluster.star"}}, "the release hello/hello is not installed"},
		{"the same value", sawValue{2}, nil, "the release hello/hello is not installed"},
		{"pending", sawRelease{1, "pending-install"}, nil, "the release hello/hello is not installed"},
		{"installed", sawRelease{1, "deployed"}, []line{{good, "release installed", "hello/hello, revision 1"}}, "the Deployment hello/hello wants 0 replicas for 2 ready nodes"},
		{"no status yet", sawDeployment{2, -1}, []line{{good, "deployment follows", "2 replicas"}}, "0 of 2 pods of hello/hello are ready"},
		{"one pod", sawDeployment{2, 1}, nil, "1 of 2 pods of hello/hello are ready"},
		{"all pods", sawDeployment{2, 2}, []line{{good, "pods ready", "2 of 2"}}, `the ConfigMap hello/hello shows the nodes [], not ["fake-0" "fake-1"]`},
		{"config map", sawConfigMap{"Hello", []string{"fake-0", "fake-1"}}, nil, ""},
		{"node", sawNode{"extra", true}, []line{{note, "node ready", "extra"}}, "3 nodes are Ready, not 2"},
		{"upgraded", sawRelease{2, "deployed"}, []line{{good, "release upgraded", "hello/hello, revision 2, 50 ms after the node"}}, "3 nodes are Ready, not 2"},
		{"an old revision", sawRelease{1, "superseded"}, nil, "3 nodes are Ready, not 2"},
		{"value after its cause", sawValue{3}, []line{{good, "value set", "global.readyNodes = 3, by the hook in global/cluster.star"}}, "3 nodes are Ready, not 2"},
		{"value before its cause", sawValue{2}, nil, "3 nodes are Ready, not 2"},
		{"node goes", sawNode{"extra", false}, []line{{note, "node gone", "extra"}, {good, "value set", "global.readyNodes = 2, by the hook in global/cluster.star"}}, ""},
		{"config", sawConfig{"7"}, []line{{note, "config changed", "ConfigMap starling-system/starling"}}, ""},
		{"failed", sawRelease{3, "failed"}, []line{{bad, "release failed", "hello/hello, revision 3; ask: starling get modules"}}, ""},
		{"greeting", sawConfigMap{"Ahoy", []string{"fake-0", "fake-1"}}, []line{{good, "configmap follows", "greeting: Ahoy"}}, ""},
		{"uninstalled", sawNoRelease{}, []line{{good, "release uninstalled", "hello/hello, 50 ms after the change"}}, "the release hello/hello is not installed"},
	} {
		// A cause and its effect are 50 ms apart in this story.
		now := at
		if _, isRelease := step.see.(sawRelease); isRelease {
			now = at.Add(50 * time.Millisecond)
		}
		if _, gone := step.see.(sawNoRelease); gone {
			now = at.Add(50 * time.Millisecond)
		}
		if diff := cmp.Diff(step.want, s.see(step.see, now), cmp.AllowUnexported(line{})); diff != "" {
			t.Errorf("%s: %s", step.name, diff)
		}
		if got := s.missing(2); got != step.missing {
			t.Errorf("%s: missing %q, want %q", step.name, got, step.missing)
		}
	}
}

func TestFromLog(t *testing.T) {
	for text, want := range map[string]observation{
		`{"level":"info","hook":"cluster.star:count_nodes","ready":2,"all":3,"time":"…","message":"counted nodes"}`: sawValue{2},
		`{"level":"info","message":"counted nodes"}`:                                                                nil,
		`{"level":"info","message":"other","text":"counted nodes"}`:                                                 nil,
		`{"level":"info","ready":"two","message":"counted nodes"}`:                                                  nil,
		`12:00 INF counted nodes ready=2`:                                                                           nil,
		`{"level":"info","ready":2,"message":"counted nodes"`:                                                       nil,
	} {
		got, ok := fromLog(text)
		if ok != (want != nil) || got != want {
			t.Errorf("%s: got %v, %v, want %v", text, got, ok, want)
		}
	}
}
