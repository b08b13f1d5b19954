package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/starling-operator/starling/runtime/message"
)

// observation is one thing seen in the cluster or in Starling's log.
type observation any

type (
	// sawNode: a node is there, Ready or not; or gone, then it is not Ready.
	sawNode struct {
		name  string
		ready bool
	}
	// sawValue: the hook counted the ready nodes and set the value.
	sawValue struct{ readyNodes int }
	// sawRelease: a revision of the release hello/hello has this state.
	sawRelease struct {
		revision int
		state    string
	}
	// sawNoRelease: no revision of the release is left.
	sawNoRelease struct{}
	// sawDeployment: what hello/hello wants and has.
	sawDeployment struct{ replicas, ready int }
	// sawConfigMap: what hello/hello shows.
	sawConfigMap struct {
		greeting string
		nodes    []string
	}
	// sawConfig: the user's ConfigMap, in this version.
	sawConfig struct{ version string }
)

// story turns observations into the lines that people read, each fact once.
type story struct {
	nodes    map[string]bool // the Ready ones
	value    int             // global.readyNodes as last set; -1 for never
	untold   bool            // no line has said so yet
	revision int             // of the release, deployed; 0 for none
	failed   int             // the revision whose failure was told
	replicas int             // of the Deployment; -1 for no Deployment
	ready    int
	shown    sawConfigMap
	config   string // version of the user's ConfigMap

	cause   string // what happened last from outside
	causeAt time.Time
}

func newStory() *story { return &story{nodes: map[string]bool{}, value: -1, replicas: -1, ready: -1} }

// begin takes the nodes that are there before anything happens.
func (s *story) begin(nodes []string) {
	for _, n := range nodes {
		s.nodes[n] = true
	}
}

// see takes one observation and returns the lines it is worth, mostly none.
func (s *story) see(o observation, now time.Time) []line {
	switch o := o.(type) {
	case sawNode:
		return s.seeNode(o, now)
	case sawValue:
		if o.readyNodes != s.value {
			s.value, s.untold = o.readyNodes, true
			return s.tellValue()
		}
	case sawRelease:
		return s.seeRelease(o, now)
	case sawNoRelease:
		if s.revision > 0 {
			s.revision = 0
			return []line{{good, "release uninstalled", "hello/hello" + s.after(now)}}
		}
	case sawDeployment:
		return s.seeDeployment(o)
	case sawConfigMap:
		old := s.shown
		s.shown = o
		if old.greeting != "" && o.greeting != old.greeting {
			return []line{{good, "configmap follows", "greeting: " + o.greeting}}
		}
	case sawConfig:
		if o.version != s.config {
			s.config, s.cause, s.causeAt = o.version, "the change", now
			return []line{{note, "config changed", "ConfigMap " + namespace + "/" + instance}}
		}
	}
	return nil
}

func (s *story) seeNode(o sawNode, now time.Time) []line {
	if s.nodes[o.name] == o.ready {
		return nil
	}
	s.cause, s.causeAt = "the node", now
	if o.ready {
		s.nodes[o.name] = true
		return append([]line{{note, "node ready", o.name}}, s.tellValue()...)
	}
	delete(s.nodes, o.name)
	return append([]line{{note, "node gone", o.name}}, s.tellValue()...)
}

// tellValue tells the value once its cause has been told: Starling is often faster
// than the demo's own watch.
func (s *story) tellValue() []line {
	if !s.untold || s.value != len(s.nodes) {
		return nil
	}
	s.untold = false
	return []line{{good, "value set", fmt.Sprintf("global.readyNodes = %d, by the hook in global/cluster.star", s.value)}}
}

func (s *story) seeRelease(o sawRelease, now time.Time) []line {
	switch {
	case o.state == "failed" && o.revision > s.failed:
		s.failed = o.revision
		return []line{{bad, "release failed", fmt.Sprintf("hello/hello, revision %d; ask: starling get modules", o.revision)}}
	case o.state != "deployed" || o.revision <= s.revision:
		return nil
	}
	what := "release upgraded"
	if s.revision == 0 {
		what = "release installed"
	}
	s.revision = o.revision
	return []line{{good, what, fmt.Sprintf("hello/hello, revision %d%s", o.revision, s.after(now))}}
}

func (s *story) seeDeployment(o sawDeployment) []line {
	var out []line
	if o.replicas != s.replicas && o.replicas >= 0 {
		out = append(out, line{good, "deployment follows", message.Count(o.replicas, "replica")})
	}
	if o.ready == o.replicas && o.replicas > 0 && (o.ready != s.ready || o.replicas != s.replicas) {
		out = append(out, line{good, "pods ready", fmt.Sprintf("%d of %d", o.ready, o.replicas)})
	}
	s.replicas, s.ready = o.replicas, o.ready
	return out
}

// after tells how long it took since the cause, once a cause is known.
func (s *story) after(now time.Time) string {
	if s.cause == "" {
		return ""
	}
	return fmt.Sprintf(", %d ms after %s", now.Sub(s.causeAt).Milliseconds(), s.cause)
}

// missing says what keeps the cluster from being as it should with so many nodes;
// "" when nothing does.
func (s *story) missing(nodes int) string {
	names := s.nodeNames()
	switch {
	case len(names) != nodes:
		return fmt.Sprintf("%s are Ready, not %d", message.Count(len(names), "node"), nodes)
	case s.revision == 0:
		return "the release hello/hello is not installed"
	case s.replicas != nodes:
		return fmt.Sprintf("the Deployment hello/hello wants %d replicas for %d ready nodes", max(s.replicas, 0), nodes)
	case s.ready != nodes:
		return fmt.Sprintf("%d of %d pods of hello/hello are ready", max(s.ready, 0), nodes)
	case !slices.Equal(s.shown.nodes, names):
		return fmt.Sprintf("the ConfigMap hello/hello shows the nodes %q, not %q", s.shown.nodes, names)
	}
	return ""
}

// missingGreeting is missing for the text in the ConfigMap.
func (s *story) missingGreeting(want string) string {
	if s.shown.greeting == want {
		return ""
	}
	return fmt.Sprintf("the ConfigMap hello/hello shows the greeting %q, not %q", s.shown.greeting, want)
}

// missingRevision is missing for the release; a later revision is fine.
func (s *story) missingRevision(want int) string {
	if s.revision >= want {
		return ""
	}
	return fmt.Sprintf("the release hello/hello has revision %d, not %d", s.revision, want)
}

func (s *story) nodeNames() []string { return slices.Sorted(maps.Keys(s.nodes)) }

// fromLog finds in Starling's log the line that the quickstart's hook writes when
// it has counted: {"message": "counted nodes", "ready": 2, …}.
func fromLog(text string) (observation, bool) {
	if !strings.HasPrefix(text, "{") || !strings.Contains(text, "counted nodes") {
		return nil, false
	}
	var entry struct {
		Message string `json:"message"`
		Ready   *int   `json:"ready"`
	}
	if json.Unmarshal([]byte(text), &entry) != nil || entry.Message != "counted nodes" || entry.Ready == nil {
		return nil, false
	}
	return sawValue{*entry.Ready}, true
}
