package builtins

import (
	"fmt"

	"go.starlark.net/starlark"

	"github.com/starling-operator/starling/builtins/spec"
	"github.com/starling-operator/starling/runtime/effect"
)

// ArgumentProblem says why a call fails that gives a parameter this value, whatever else it gives; "" when it may be
// right. Of the elements of dicts nothing is asked.
func ArgumentProblem(s *spec.Spec, param string, v starlark.Value) string {
	i := spec.ParamIndex(s.Params, param)
	if i < 0 {
		return ""
	}
	p := s.Params[i]
	if v == starlark.None && p.Default == "None" {
		return ""
	}
	err := p.Check(v)
	if text, is := v.(starlark.String); err == nil && is {
		if err = textProblem(s, param, string(text)); err != nil {
			return fmt.Sprintf("%s: %s", s.Name, err)
		}
	}
	if err != nil {
		return fmt.Sprintf("%s: %s: %s", s.Name, param, err)
	}
	return ""
}

// textProblem is what a builtin itself says of a text.
func textProblem(s *spec.Spec, param, text string) error {
	switch s.Name + " " + param {
	case "k8s.event reason":
		return eventReason(text)
	case "k8s.event type":
		return eventType(text)
	case "metrics.set name", "metrics.add name", "metrics.observe name":
		if err := metricName(text); err != nil {
			return fmt.Errorf("name: %w", err)
		}
	}
	return nil
}

// URLProblem says why a request to a URL fails that hooks make which reach these hosts; "" when it may be sent.
func URLProblem(url string, hosts effect.Hosts) string {
	if _, err := listedURL(url, false, hosts); err != nil {
		return "url: " + err.Error()
	}
	return ""
}
