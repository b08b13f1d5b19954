package builtins

import (
	"errors"
	"fmt"
	"math"
	"regexp"
	"strings"

	"go.starlark.net/starlark"

	"github.com/starling-operator/starling/runtime/effect"
)

// The hook's own metrics.

var (
	metricPattern = regexp.MustCompile(`^[a-zA-Z_:][a-zA-Z0-9_:]*$`)
	notOfMetrics  = regexp.MustCompile(`[^a-zA-Z0-9_:]+`)
	labelPattern  = regexp.MustCompile(`^[a-zA-Z_][a-zA-Z0-9_]*$`)
)

func metricsSpecs() []Spec {
	name := required("name", TypeString)
	labels := optional("labels", TypeDict, "{}")
	group := optional("group", TypeString, "None")
	spec := func(kind effect.MetricKind, more ...Param) Spec {
		return Spec{Name: "metrics." + string(kind), Phases: PhaseRun | PhaseReview, Effect: EffectWrite, call: callMetric(kind),
			Params: append([]Param{name, required("value", TypeNumber), labels, group}, more...)}
	}
	return []Spec{
		spec(effect.MetricSet),
		spec(effect.MetricAdd),
		spec(effect.MetricObserve, keyword("buckets", TypeList, "None")),
		{Name: "metrics.expire", Phases: PhaseRun | PhaseReview, Effect: EffectWrite, call: callExpire,
			Params: []Param{required("group", TypeString)}},
	}
}

// maxBuckets bounds the buckets of a histogram: each is a series.
const maxBuckets = 50

func callMetric(kind effect.MetricKind) func(*call) (starlark.Value, error) {
	return func(c *call) (starlark.Value, error) {
		m := effect.Metric{Kind: kind, Name: c.str("name")}
		if err := metricName(m.Name); err != nil {
			return nil, fmt.Errorf("name: %w", err)
		}
		m.Value, _ = starlark.AsFloat(c.arg("value"))
		switch {
		case math.IsNaN(m.Value) || math.IsInf(m.Value, 0):
			return nil, errors.New("value: must be a finite number")
		case kind == effect.MetricAdd && m.Value < 0:
			return nil, errors.New("value: a counter only grows; use metrics.set for what can fall")
		}
		size := len(m.Name)
		if v, ok := c.arg("labels").(starlark.IterableMapping); ok {
			m.Labels = map[string]string{}
			for k, e := range starlark.Entries(v) {
				label, err := metricLabel(k)
				if err == nil && label == "le" && kind == effect.MetricObserve {
					err = errors.New("le is the label of a histogram's buckets; take another")
				}
				if err != nil {
					return nil, fmt.Errorf("labels: %w", err)
				}
				value, ok := starlark.AsString(e)
				if !ok {
					return nil, fmt.Errorf("labels: %s: got %s, want string", label, e.Type())
				}
				m.Labels[label] = strings.ToValidUTF8(value, "\uFFFD")
				size += len(label) + len(value)
			}
		}
		if c.arg("group") != nil {
			if err := metricGroup(c.str("group")); err != nil {
				return nil, err
			}
			m.Group = c.str("group")
		}
		if kind == effect.MetricObserve {
			var err error
			if m.Buckets, err = c.buckets(); err != nil {
				return nil, fmt.Errorf("buckets: %w", err)
			}
		}
		return nil, c.change(m, size)
	}
}

func callExpire(c *call) (starlark.Value, error) {
	group := c.str("group")
	if err := metricGroup(group); err != nil {
		return nil, err
	}
	return nil, c.change(effect.Metric{Kind: effect.MetricExpire, Group: group}, 0)
}

func callTestMetric(c *call, t *Test) (starlark.Value, error) {
	labels := map[string]string{}
	if given, ok := c.arg("labels").(starlark.IterableMapping); ok {
		for k, v := range starlark.Entries(given) {
			label, err := metricLabel(k)
			if err != nil {
				return nil, fmt.Errorf("labels: %w", err)
			}
			labels[label] = textOf(v)
		}
	}
	for _, kv := range c.kwargs {
		name, _ := starlark.AsString(kv[0])
		if _, twice := labels[name]; twice {
			return nil, fmt.Errorf("labels: %s is given twice", name)
		}
		labels[name] = textOf(kv[1])
	}
	v, ok := t.World.Metric(c.str("name"), labels)
	if !ok {
		return starlark.None, nil
	}
	return starlark.Float(v), nil
}

func (c *call) change(m effect.Metric, size int) error {
	if err := c.run.spend(len(c.run.Effects.Metrics), "metric changes", size+len(m.Group)+8*len(m.Buckets)); err != nil {
		return err
	}
	c.run.Effects.Metrics = append(c.run.Effects.Metrics, m)
	return nil
}

// buckets reads buckets=, nil when it is not given.
func (c *call) buckets() ([]float64, error) {
	if c.arg("buckets") == nil {
		return nil, nil
	}
	list := c.arg("buckets").(starlark.Indexable)
	if n := list.Len(); n == 0 || n > maxBuckets {
		return nil, fmt.Errorf("got %d, want 1 to %d", n, maxBuckets)
	}
	out := make([]float64, list.Len())
	for i := range out {
		f, ok := starlark.AsFloat(list.Index(i))
		switch {
		case !ok:
			return nil, fmt.Errorf("element %d: got %s, want int or float", i, list.Index(i).Type())
		case math.IsNaN(f) || math.IsInf(f, 0):
			return nil, fmt.Errorf("element %d: must be a finite number", i)
		case i > 0 && f <= out[i-1]:
			return nil, fmt.Errorf("element %d: must be more than the one before it", i)
		}
		out[i] = f
	}
	return out, nil
}

func metricGroup(group string) error {
	if group == "" || len(group) > 100 {
		return fmt.Errorf("group: %q is no name: 1 to 100 characters", clip(group))
	}
	return nil
}

// ownMetrics are the beginnings of names that /metrics has without any hook. A hook's
// series would hide them.
func ownMetrics() map[string]string {
	return map[string]string{"starling_": "Starling's own", "go_": "those of Go's runtime", "process_": "those of the process"}
}

func metricName(name string) error {
	if !metricPattern.MatchString(name) {
		plain := notOfMetrics.ReplaceAllString(name, "_")
		if !metricPattern.MatchString(plain) {
			return fmt.Errorf("%q is no metric name: only letters, digits, _ and : may be in one", clip(name))
		}
		return fmt.Errorf("%q is no metric name: only letters, digits, _ and : may be in one; write %q", clip(name), clip(plain))
	}
	for prefix, whose := range ownMetrics() {
		if strings.HasPrefix(name, prefix) {
			return fmt.Errorf("%q: names that begin with %s are %s", clip(name), prefix, whose)
		}
	}
	return nil
}

func metricLabel(k starlark.Value) (string, error) {
	label, ok := starlark.AsString(k)
	if !ok {
		return "", fmt.Errorf("key: got %s, want string", k.Type())
	}
	if !labelPattern.MatchString(label) || strings.HasPrefix(label, "__") {
		return "", fmt.Errorf("%q is no label name: letters, digits and _", clip(label))
	}
	if label == "module" || label == "hook" {
		return "", fmt.Errorf("%s is added by Starling; leave it out", label)
	}
	return label, nil
}
