package metrics

import (
	"errors"
	"fmt"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
)

// Prefix is what the names of Starling's own metrics begin with. No metric of a hook may.
const Prefix = "starling_"

// Renamed returns the metrics of g, with another prefix in the place of [Prefix]. A metric of a
// hook that has such a name already is left out, and an error beside the others.
func Renamed(g prometheus.Gatherer, prefix string) prometheus.Gatherer {
	if prefix == Prefix {
		return g
	}
	return prometheus.GathererFunc(func() ([]*dto.MetricFamily, error) {
		families, err := g.Gather()
		errs := []error{err}
		own := map[string]bool{}
		for _, f := range families {
			if rest, ours := strings.CutPrefix(f.GetName(), Prefix); ours {
				own[prefix+rest] = true
			}
		}
		var out []*dto.MetricFamily
		for _, f := range families {
			name := f.GetName()
			if rest, ours := strings.CutPrefix(name, Prefix); ours {
				name = prefix + rest
				f.Name = &name
			} else if own[name] {
				errs = append(errs, fmt.Errorf("the metric %s of a hook is left out: with --metrics-prefix %s it has the name of one of Starling's own; rename it, or choose another prefix", name, prefix))
				continue
			}
			out = append(out, f)
		}
		return out, errors.Join(errs...)
	})
}
