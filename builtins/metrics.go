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
	labelPattern  = regexp.MustCompile(`^[a-zA-Z_][a-zA-Z0-9_]*$`)
)

func metricsSpecs() []Spec {
	name := Param{Name: "name", Type: TypeString, Doc: "Name as Prometheus takes it; it stays as written. Names that begin with starling_ are ours."}
	labels := Param{Name: "labels", Type: TypeDict, Default: "{}", Doc: "Labels, text to text. module and hook are added."}
	return []Spec{
		{Name: "metrics.set", Phases: PhaseRun, Effect: EffectWrite, call: callMetric(effect.MetricSet),
			Doc:    "Sets a gauge.",
			Params: []Param{name, {Name: "value", Type: TypeNumber, Doc: "The new value."}, labels}},
		{Name: "metrics.add", Phases: PhaseRun, Effect: EffectWrite, call: callMetric(effect.MetricAdd),
			Doc:    "Adds to a counter.",
			Params: []Param{name, {Name: "value", Type: TypeNumber, Doc: "How much to add, 0 or more."}, labels}},
	}
}

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
		if err := c.run.spend(len(c.run.Effects.Metrics), "metric changes", size); err != nil {
			return nil, err
		}
		c.run.Effects.Metrics = append(c.run.Effects.Metrics, m)
		return nil, nil
	}
}

func metricName(name string) error {
	if !metricPattern.MatchString(name) {
		return fmt.Errorf("%q is no metric name: only letters, digits, _ and : may be in one", clip(name))
	}
	if strings.HasPrefix(name, "starling_") {
		return fmt.Errorf("%q: names that begin with starling_ are Starling's own", clip(name))
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
