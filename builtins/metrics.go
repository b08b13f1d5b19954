package builtins

import (
	"errors"
	"fmt"
	"math"
	"regexp"
	"strings"

	"go.starlark.net/starlark"

	"github.com/starling-operator/starling/builtins/spec"
	"github.com/starling-operator/starling/runtime/effect"
)

// The hook's own metrics.

var (
	metricPattern = regexp.MustCompile(`^[a-zA-Z_:][a-zA-Z0-9_:]*$`)
	notOfMetrics  = regexp.MustCompile(`[^a-zA-Z0-9_:]+`)
	labelPattern  = regexp.MustCompile(`^[a-zA-Z_][a-zA-Z0-9_]*$`)
)

func metricsSpecs() []spec.Spec {
	name := spec.Required("name", spec.String)
	labels := spec.Optional("labels", spec.Dict, "{}")
	group := spec.Optional("group", spec.String, "None")
	row := func(kind effect.MetricKind, more ...spec.Param) spec.Spec {
		return declare("metrics."+string(kind), spec.InRun|spec.InReview, spec.Writes, callMetric(kind),
			append([]spec.Param{name, spec.Required("value", spec.Number), labels, group}, more...)...)
	}
	return []spec.Spec{
		row(effect.MetricSet),
		row(effect.MetricAdd),
		row(effect.MetricObserve, spec.Keyword("buckets", spec.List, "None")),
		declare("metrics.expire", spec.InRun|spec.InReview, spec.Writes, callExpire, spec.Required("group", spec.String)),
	}
}

// maxBuckets bounds the buckets of a histogram: each is a series.
const maxBuckets = 50

func callMetric(kind effect.MetricKind) func(*call) (starlark.Value, error) {
	return func(c *call) (starlark.Value, error) {
		m := effect.Metric{Kind: kind, Name: c.Str("name")}
		if err := metricName(m.Name); err != nil {
			return nil, fmt.Errorf("name: %w", err)
		}
		m.Value, _ = starlark.AsFloat(c.Arg("value"))
		switch {
		case math.IsNaN(m.Value) || math.IsInf(m.Value, 0):
			return nil, errors.New("value: must be a finite number")
		case kind == effect.MetricAdd && m.Value < 0:
			return nil, errors.New("value: a counter only grows; use metrics.set for what can fall")
		}
		size := len(m.Name)
		if v, ok := c.Arg("labels").(starlark.IterableMapping); ok {
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
				m.Labels[label] = validText(value)
				size += len(label) + len(value)
			}
		}
		if c.Arg("group") != nil {
			if err := metricGroup(c.Str("group")); err != nil {
				return nil, err
			}
			m.Group = c.Str("group")
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
	group := c.Str("group")
	if err := metricGroup(group); err != nil {
		return nil, err
	}
	return nil, c.change(effect.Metric{Kind: effect.MetricExpire, Group: group}, 0)
}

func callTestMetric(c *call, t *Test) (starlark.Value, error) {
	labels := map[string]string{}
	if given, ok := c.Arg("labels").(starlark.IterableMapping); ok {
		for k, v := range starlark.Entries(given) {
			label, err := metricLabel(k)
			if err != nil {
				return nil, fmt.Errorf("labels: %w", err)
			}
			labels[label] = textOf(v)
		}
	}
	for _, kv := range c.Kwargs {
		name, _ := starlark.AsString(kv[0])
		if _, twice := labels[name]; twice {
			return nil, fmt.Errorf("labels: %s is given twice", name)
		}
		labels[name] = textOf(kv[1])
	}
	v, ok := t.World.Metric(c.Str("name"), labels)
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
	if c.Arg("buckets") == nil {
		return nil, nil
	}
	list := c.Arg("buckets").(starlark.Indexable)
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
		return fmt.Errorf("group: %q is no name: 1 to 100 characters", spec.Clip(group))
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
			return fmt.Errorf("%q is no metric name: only letters, digits, _ and : may be in one", spec.Clip(name))
		}
		return fmt.Errorf("%q is no metric name: only letters, digits, _ and : may be in one; write %q", spec.Clip(name), spec.Clip(plain))
	}
	for prefix, whose := range ownMetrics() {
		if strings.HasPrefix(name, prefix) {
			return fmt.Errorf("%q: names that begin with %s are %s", spec.Clip(name), prefix, whose)
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
		return "", fmt.Errorf("%q is no label name: letters, digits and _", spec.Clip(label))
	}
	if label == "module" || label == "hook" {
		return "", fmt.Errorf("%s is added by Starling; leave it out", label)
	}
	return label, nil
}
