package sim

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/starling-operator/starling/runtime/effect"
	"github.com/starling-operator/starling/runtime/engine"
)

// series says who has set a series of [World.Metrics] last.
type series struct{ module, hook, key, group string }

// publish does what a registry of metrics would, as far as tests look at it.
func (w *World) publish(a engine.Publish) {
	for _, m := range a.Metrics {
		if m.Kind == effect.MetricExpire {
			w.dropSeries(func(s series) bool { return s == series{a.Module, a.Hook, a.Key, m.Group} })
		}
	}
	for _, m := range a.Metrics {
		name := MetricKey(a.Hook, m.Name, m.Labels)
		switch m.Kind {
		case effect.MetricSet:
			w.Metrics[name] = m.Value
		case effect.MetricAdd, effect.MetricObserve:
			w.Metrics[name] += m.Value
		default:
			continue
		}
		w.series[name] = series{a.Module, a.Hook, a.Key, m.Group}
	}
}

// unpublish takes away what hooks of a module have set: those of one hook, and of one
// object of it, unless these are "".
func (w *World) unpublish(module, hook, key string) {
	w.dropSeries(func(s series) bool {
		return s.module == module && (hook == "" || s.hook == hook) && (key == "" || s.key == key)
	})
}

func (w *World) dropSeries(gone func(series) bool) {
	maps.DeleteFunc(w.series, func(name string, s series) bool {
		if gone(s) {
			delete(w.Metrics, name)
			return true
		}
		return false
	})
}

// MetricKey names one series of a hook: "web/hooks/a.star:f ready{pool=a}".
func MetricKey(hook, name string, labels map[string]string) string {
	pairs := make([]string, 0, len(labels))
	for k, v := range labels {
		pairs = append(pairs, k+"="+v)
	}
	slices.Sort(pairs)
	return fmt.Sprintf("%s %s{%s}", hook, name, strings.Join(pairs, ","))
}
